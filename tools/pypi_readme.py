"""Gives README.md the links that work on PyPI, where there are no files beside it.

Usage: ``python tools/pypi_readme.py REPOSITORY REF``, such as ``https://forge.example/us/backread
v0.1.0``. The release workflow runs it before it builds: links lead to the page at that tag, and the
picture is the raw file. It rewrites README.md in place, so do not commit what it leaves.
"""

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
LINK = re.compile(r"(?P<picture>!?)\[(?P<words>[^\]]*)\]\((?!https?://|#)(?P<target>[^)]+)\)")


def absolute(text: str, repository: str, ref: str) -> str:
    """The text with absolute links instead of relative ones."""

    def link(match: re.Match[str]) -> str:
        kind = "raw" if match["picture"] else "blob"
        target = f"{repository}/{kind}/{ref}/{match['target']}"
        return f"{match['picture']}[{match['words']}]({target})"

    return LINK.sub(link, text)


def main(arguments: list[str]) -> None:
    """Rewrites README.md."""
    repository, ref = arguments
    text = README.read_text(encoding="utf-8")
    README.write_text(absolute(text, repository.rstrip("/"), ref), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
