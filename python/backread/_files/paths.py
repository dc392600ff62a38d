"""Parses paths given by users: with ``~``, relative, or by mistake a URI."""

from __future__ import annotations

import os
import re
from pathlib import Path

# At least two letters, since C:/ is a drive. pathlib collapses the two slashes into one.
URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def local_path(path: str | os.PathLike[str], instead: str) -> Path:
    """The path with ``~`` expanded.

    Raises ValueError for a path that cannot be local. If it is the URI of an object store, the
    message ends with the advice in ``instead``.
    """
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"a path must be a str or a Path, not {type(text).__name__}")
    if not text:
        raise ValueError("the path is empty")
    if "\0" in text:
        raise ValueError(f"{shown(text)}: a path cannot contain NUL")
    if (uri := URI.match(text)) is not None:
        if uri[1].lower() == "file":
            raise ValueError(f"{shown(text)} is a URI; pass only its path")
        raise ValueError(f"{shown(text)} is not a local path; {instead}")
    if not text.startswith("~"):
        plain = Path(text)
        # pathlib drops the "./" of "./~", and the rest would be expanded if it is parsed again.
        return plain.absolute() if str(plain).startswith("~") else plain
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError(
            f"{shown(text)}: the home folder of that user is unknown; pass the whole path, or "
            f"./{shown(text)} for a name that begins with ~"
        ) from None


def shown(path: str | os.PathLike[str]) -> str:
    """The path as printable text on one line, with escapes for bytes that are not UTF-8."""
    text = os.fspath(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def is_utf8(path: str | os.PathLike[str]) -> bool:
    """Whether libraries that take paths as UTF-8 text can open the path."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        return False
    return True
