"""Progress as a line with a bar."""

from __future__ import annotations

from collections.abc import Iterable

from backread._display.markup import output, safe
from backread._display.style import BAR

__all__ = ["progress_html"]


def progress_html(label: str, fraction: float | None, parts: Iterable[str], *, live: bool) -> str:
    """A label, a bar while it is ``live`` (without a ``fraction`` one of no length), numbers."""
    bar = ""
    if live:
        state = "" if fraction is None else f' value="{fraction:.4f}"'
        bar = f'<progress max="1"{state} aria-label="{safe(label)}"></progress>'
    text = " · ".join(parts)
    return output(f"{BAR}<b>{safe(label)}</b> {bar}<span>{safe(text)}</span>", " br-progress")
