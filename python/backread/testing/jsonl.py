"""The JSON lines that a world is read from."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

Line: TypeAlias = str | bytes | dict[str, Any]


def lines_of(
    source: str | os.PathLike[str] | bytes | Iterable[Line],
) -> tuple[str, Iterable[bytes]]:
    """The lines of a file, of its content as bytes, or of an iterable; `World.from_jsonl` calls it.

    Errors about one of them begin with the text before them, which names the file.
    """
    if isinstance(source, bytes):
        return "", io.BytesIO(source)
    if not isinstance(source, (str, os.PathLike)):
        return "", map(_line, source)
    path = os.fspath(source)
    if path.lstrip().startswith("{"):
        raise ValueError(
            "lines: a str is the path of a file, but this is JSON; use text.encode() instead"
        )
    return f"{path}: ", _file_lines(Path(path))


def _file_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _line(line: Line) -> bytes:
    if isinstance(line, str):
        return line.encode()
    if isinstance(line, dict):
        return json.dumps(line, allow_nan=False).encode()
    if isinstance(line, (bytes, bytearray)):
        return bytes(line)
    kind = type(line).__name__
    raise TypeError(f"lines: each must be a dict, or JSON text as str or bytes, not {kind}")
