"""Checks the built site: ``python tools/docs/check_site.py``, after ``zensical build``.

Fails if a link leads nowhere, if a page would load something from elsewhere, if a page is not in
the navigation, or if Markdown is left over in the HTML. Prints one line for each.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]

LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("link", "href"),
}
"""What a browser requests when it opens a page."""

LEFT_OVER = re.compile(r"^:::|^```|\]\(\S+\)|\]\[backread", re.MULTILINE)
"""Markdown that was not understood."""


def project() -> dict[str, Any]:
    """The settings of the site."""
    settings: dict[str, Any] = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    return dict(settings["project"])


def entries(nav: list[Any], section: str = "") -> Iterator[tuple[str, str, str]]:
    """The section, the title and the file of each page of the navigation."""
    for entry in nav:
        if isinstance(entry, str):
            yield section, section, entry
            continue
        [(title, below)] = entry.items()
        if isinstance(below, str):
            yield section, title, below
        else:
            yield from entries(below, f"{section}: {title}" if section else title)


class Page(HTMLParser):
    """The links, the anchors and the text of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.text: list[str] = []
        self._code = 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects ids and addresses."""
        if tag in ("code", "script", "style"):
            self._code += 1
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif (tag, name) in LOADED and value:
                self.loads.append(value)
            elif (tag, name) == ("a", "href") and value:
                self.links.append(value)

    def handle_endtag(self, tag: str) -> None:
        """Leaves code."""
        if tag in ("code", "script", "style"):
            self._code -= 1

    def handle_data(self, data: str) -> None:
        """Collects text outside of code."""
        if not self._code:
            self.text.append(data)


def problems(site: Path) -> Iterator[str]:
    """What is wrong with the pages of a site."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        where = path.relative_to(site).as_posix()
        # Addresses in it begin with the root of the server, which nobody knows.
        if where == "404.html":
            continue
        for address in page.loads:
            if urlsplit(address).netloc:
                yield f"{where}: loads {address}"
        for address in [*page.links, *page.loads]:
            if complaint := broken(address, path, pages):
                yield f"{where}: {address}: {complaint}"
        for found in LEFT_OVER.findall("".join(page.text)):
            yield f"{where}: shows Markdown: {found}"


def broken(address: str, path: Path, pages: dict[Path, Page]) -> str | None:
    """Why a link leads nowhere, if it does. Other sites are not asked."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "there is no such file"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return "the page has no such anchor"
    return None


def main() -> int:
    """Prints what is wrong; the exit code."""
    settings = project()
    docs, site = ROOT / settings["docs_dir"], ROOT / settings["site_dir"]
    listed = {file for _, _, file in entries(settings["nav"])}
    found = [
        f"{page}: is not in the navigation of zensical.toml"
        for page in sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
        if page not in listed
    ]
    found += problems(site)
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"{len(listed)} pages, {len(found)} problems: {site.relative_to(ROOT)}/index.html")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
