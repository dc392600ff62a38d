"""Paths as people write them: with ``~``, relative, or by mistake the URI of an object store."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["is_utf8", "local_path", "shown"]

# Two letters at least: C:/ is a drive. A Path has made one slash of two.
URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def local_path(path: str | os.PathLike[str], instead: str) -> Path:
    """The path with ``~`` as the home folder; ValueError where none on this machine is meant.

    ``instead`` is what the error tells the owner of an object store to do.
    """
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"a path must be a str or a Path, not {type(text).__name__}")
    if not text:
        raise ValueError("the path is empty; give a name")
    if "\0" in text:
        raise ValueError(f"{shown(text)}: a path cannot hold NUL; give another name")
    if (uri := URI.match(text)) is not None:
        if uri[1].lower() == "file":
            raise ValueError(f"{shown(text)} is a URI; give the path in it alone")
        raise ValueError(f"{shown(text)} is not on this machine, and must be; {instead}")
    if not text.startswith("~"):
        return Path(text)
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError(
            f"{shown(text)}: the home folder of that user is not known; give the whole path, or "
            f"./{shown(text)} for a name that begins with ~"
        ) from None


def shown(path: str | os.PathLike[str]) -> str:
    """The path on one line that can be printed: with escapes for bytes that are not UTF-8."""
    text = os.fspath(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def is_utf8(path: str | os.PathLike[str]) -> bool:
    """Whether libraries that take paths as text can use it."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        return False
    return True
