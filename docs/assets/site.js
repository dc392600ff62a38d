// What scrolls sideways can also be reached, and then scrolled, by keyboard.
const mark = () => {
  for (const box of document.querySelectorAll("pre > code, .md-typeset__scrollwrap, .md-typeset__table")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};
addEventListener("load", mark);
addEventListener("resize", mark);
