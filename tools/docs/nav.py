"""The settings of the site and the pages of its navigation, from zensical.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


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
