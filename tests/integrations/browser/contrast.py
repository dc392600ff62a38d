"""The contrast of every text that a page shows with what is behind it."""

from typing import Any

from selenium.webdriver import Chrome

LEAST = 4.5
"""What WCAG 2 asks of text."""

CONTRASTS = """
const parts = (colour) => {
  const numbers = colour.match(/[\\d.]+/g).map(Number);
  return numbers.length < 4 ? [...numbers, 1] : numbers;
};
const over = (above, below) => above.slice(0, 3).map(
  (value, index) => value * above[3] + below[index] * (1 - above[3]));
const luminance = (colour) => {
  const [red, green, blue] = colour.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const page = arguments[0];
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const holder = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !holder.getClientRects().length) continue;
  const chain = [];
  for (let each = holder; each; each = each.parentElement) chain.unshift(getComputedStyle(each));
  let behind = page, opacity = 1;
  for (const style of chain) {
    opacity *= Number(style.opacity);
    behind = over(parts(style.backgroundColor), behind);
  }
  const drawn = holder.namespaceURI.endsWith("svg");
  const ink = parts(drawn ? chain.at(-1).fill : chain.at(-1).color);
  ink[3] *= opacity;
  const [first, second] = [luminance(over(ink, behind)), luminance(behind)];
  const ratio = (Math.max(first, second) + 0.05) / (Math.min(first, second) + 0.05);
  found.push([ratio, walker.currentNode.data.trim().slice(0, 40)]);
}
return found;
"""


def unreadable(browser: Chrome, behind: list[int]) -> list[Any]:
    """The texts whose contrast is too low, given the colour behind the page: red, green, blue.

    axe would take a minute for a page of a thousand texts, and a dark canvas for a white one.
    """
    contrasts = browser.execute_script(CONTRASTS, behind)
    assert contrasts, "the page has no text"
    return [each for each in contrasts if each[0] < LEAST]
