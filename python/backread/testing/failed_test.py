"""Report sections of a failed test in pytest: the received requests and the audits' findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backread._display.words import plain
from backread.testing.audit import failed_audits, first_lines
from backread.testing.journal import entry_of

if TYPE_CHECKING:
    from backread.testing.lane import Lane

__all__ = ["audits_shown", "requests_shown"]

MOST_AT_EACH_END = 25
LONGEST_LINE = 300


def requests_shown(lane: Lane, after: int = 0) -> str:
    """The requests numbered above ``after``, one per line; of many the first and the last."""
    last = lane._last_number
    if last <= after:
        return "no request came"
    tail = max(after, last - MOST_AT_EACH_END)
    head, _ = lane._native.journal(after, min(MOST_AT_EACH_END, tail - after))
    rest, _ = lane._native.journal(tail)
    between = last - after - len(head) - len(rest)
    lines = [_cut(str(entry_of(each))) for each in head]
    if between > 0:
        lines.append(f"... {between:,} more ...")
    lines += (_cut(str(entry_of(each))) for each in rest)
    return "\n".join(lines)


def audits_shown() -> str:
    """The findings of the last audits, one row per line; empty if there are none."""
    return first_lines([_cut(line) for each in failed_audits for line in str(each).splitlines()])


def _cut(text: str) -> str:
    line = plain(text)
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}..."
