"""Writes llms.txt into the built site: an index of its pages for language models.

And llms-full.txt, with the sources of all pages. Usage: ``python tools/docs/llms.py``, after
``zensical build``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
from check_names import DIRECTIVE, load
from check_site import ROOT, entries, project

OPTIONS = re.compile(r"(?<=\n)    options:\n(?:      .*\n?)+")


def first_paragraph(text: str) -> str:
    """What a page says first, on one line."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for part in text.partition("\n")[2].split("\n\n"):
        words = " ".join(part.split())
        is_code = part.strip("\n").startswith("    ")
        if words and not is_code and not words.startswith(("#", "|", "<", ":::", "!", "-")):
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", words)
            return re.split(r"(?<=[.:]) ", plain)[0].rstrip(":")
    return ""


def index(settings: dict[str, Any], docs: Path) -> str:
    """The text of llms.txt: https://llmstxt.org."""
    lines = [f"# {settings['site_name']}", "", f"> {settings['site_description']}"]
    last = ""
    for section, title, file in entries(settings["nav"]):
        group = section.partition(":")[0] or "Start"
        if group != last:
            lines += ["", f"## {group}", ""]
            last = group
        about = first_paragraph((docs / file).read_text(encoding="utf-8"))
        lines.append(
            f"- [{title}]({Path(file).with_suffix('.html').as_posix()})"
            + f": {about}" * bool(about)
        )
    return "\n".join(lines) + "\n"


def everything(settings: dict[str, Any], docs: Path) -> str:
    """The text of llms-full.txt: all pages, in the order of the navigation."""
    package = load()

    def description(match: re.Match[str]) -> str:
        found = package[match[1].removeprefix("backread.")]
        return "\n\n".join(described(found.final_target if found.is_alias else found))

    pages = []
    for _, _, file in entries(settings["nav"]):
        text = OPTIONS.sub("", (docs / file).read_text(encoding="utf-8"))
        pages.append(f"<!-- {file} -->\n\n{DIRECTIVE.sub(description, text).strip()}\n")
    return "\n".join(pages)


def described(found: griffe.Object) -> Iterator[str]:
    """The signature and the docstring of an object, and those of its public methods."""
    text = found.docstring.value if found.docstring else ""
    if isinstance(found, griffe.Function):
        yield f"`{found.signature()}`\n\n{text}"
    else:
        yield f"## {found.path}\n\n{text}"
    for name, member in found.members.items():
        if not name.startswith("_") and not member.is_alias and member.docstring:
            yield from described(member)


def main() -> None:
    """Writes both files."""
    settings = project()
    docs, site = ROOT / settings["docs_dir"], ROOT / settings["site_dir"]
    (site / "llms.txt").write_text(index(settings, docs), encoding="utf-8")
    (site / "llms-full.txt").write_text(everything(settings, docs), encoding="utf-8")


if __name__ == "__main__":
    main()
