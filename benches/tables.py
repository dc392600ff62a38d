"""Tables in Markdown, and pages of docs/ that hold them between two markers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def between(name: str) -> re.Pattern[str]:
    """What stands between the two markers of that name in a page."""
    return re.compile(f"(?<=<!-- {name} -->\n\n).*?(?=\n<!-- end of {name} -->)", re.DOTALL)


def filled(page: str, name: str, content: str) -> str:
    """The page with other content between the two markers of that name."""
    changed, count = between(name).subn(lambda _: content, page)
    if count != 1:
        raise SystemExit(f"the page needs the markers of {name!r} just once, and has {count}")
    return changed


def write(path: Path, contents: dict[str, str]) -> None:
    """Puts each content between the markers of its name."""
    page = path.read_text(encoding="utf-8")
    for name, content in contents.items():
        page = filled(page, name, content)
    path.write_text(page, encoding="utf-8")


def expect_places(path: Path, names: Iterable[str]) -> None:
    """Ends the program where the page lacks a place: minutes of measuring would be lost."""
    page = path.read_text(encoding="utf-8")
    for name in names:
        filled(page, name, "")
