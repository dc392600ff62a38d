"""A response of the page's server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

__all__ = ["Reply", "attached"]


@dataclass(frozen=True, slots=True)
class Reply:
    """A response: its body, or the file that has it."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None


def attached(name: str) -> dict[str, str]:
    """The headers of what a browser saves under a name (RFC 6266), and never shows as a page."""
    return {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
    }
