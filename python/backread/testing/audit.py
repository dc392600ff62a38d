"""Compares the ids that a reader has with the rows that existed."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

from backread.testing.journal import entries_of, number

if TYPE_CHECKING:
    from backread._backread import NativeLane
    from backread.testing.journal import JournalEntry

__all__ = ["Audit", "LostRow", "RepeatedRow", "audit", "failed_audits", "first_lines"]

MOST_LINES = 50

LARGEST = 2**64 - 1


@dataclass(frozen=True, slots=True, repr=False)
class LostRow:
    """A row that existed from the first request until now, and that the reader does not have."""

    id: int
    """The id of the row."""
    request: JournalEntry | None
    """The request that lost it; None if none covered its position."""
    why: str
    """An explanation in words."""

    def __str__(self) -> str:
        if self.request is None:
            return f"{self.id} is missing: {self.why}"
        return f"{self.id} is missing: {_shown(self.request)} lost it: {self.why}"

    def __repr__(self) -> str:
        # pytest shows this for `assert not audit.missing`.
        return f"<LostRow {self}>"


@dataclass(frozen=True, slots=True, repr=False)
class RepeatedRow:
    """A row that the reader has more than once."""

    id: int
    """The id of the row."""
    times: int
    """How often the reader has it."""
    requests: tuple[JournalEntry, ...]
    """The requests whose responses contained it."""

    def __str__(self) -> str:
        came = ", ".join(_shown(each) for each in self.requests)
        return f"{self.id} was read {self.times} times: it came with {came or 'no request'}"

    def __repr__(self) -> str:
        return f"<RepeatedRow {self}>"


@dataclass(frozen=True, slots=True, repr=False)
class Audit:
    """What is wrong with a reader's ids; ``str()`` has one line per row.

    In pytest ``assert audit.ok`` is enough: a failing test shows these lines.
    """

    missing: tuple[LostRow, ...]
    """Rows that existed all the time and that the reader lacks, in the order of the world."""
    repeated: tuple[RepeatedRow, ...]
    """Rows that the reader has more than once, by id."""
    unexpected: tuple[int, ...]
    """Ids that no response can have contained, ascending."""
    expected: int
    """How many rows existed all the time."""
    of: str = "user"
    """The kind of the rows, in words."""

    @property
    def ok(self) -> bool:
        """Whether nothing is missing, repeated or unexpected."""
        return not (self.missing or self.repeated or self.unexpected)

    def check(self) -> None:
        """Raises AssertionError that names the first wrong rows, unless it is ``ok``."""
        if not self.ok:
            # The error has the text, so pytest need not repeat it, nor show this function.
            if self in failed_audits:
                failed_audits.remove(self)
            __tracebackhide__ = True
            raise AssertionError(first_lines(str(self).splitlines()))

    def __str__(self) -> str:
        if self.ok:
            return f"{self.expected} rows existed all the time, and the reader has each once"
        lines = [f"{self.of} {row}" for row in (*self.missing, *self.repeated)]
        lines += [f"{self.of} {each} was read but never existed" for each in self.unexpected]
        return "\n".join(lines)

    def __repr__(self) -> str:
        # pytest shows this for `assert audit.ok`, cut after 240 characters.
        wrong = [
            f"{len(rows)} {words}"
            for rows, words in (
                (self.missing, "missing"),
                (self.repeated, "read more than once"),
                (self.unexpected, "never existed"),
            )
            if rows
        ]
        return f"<Audit of {self.expected} rows: {', '.join(wrong) or 'each read once'}>"


failed_audits: deque[Audit] = deque(maxlen=5)
"""The last audits that were not ok, which pytest shows for a failing test."""


def first_lines(lines: list[str]) -> str:
    """The first lines, and the number of the others."""
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"... {len(lines) - MOST_LINES:,} more rows"]
    return "\n".join(lines)


def audit(native: NativeLane, ids: Iterable[int], messages_of: int | None) -> Audit:
    """Audits the ids of users, or of one user's messages."""
    user = None if messages_of is None else number("messages_of", messages_of)
    if not hasattr(ids, "__iter__"):
        raise TypeError(f"ids must be an iterable of ids such as [42], not {ids!r}")
    given = [_id(place, each) for place, each in enumerate(ids)]
    # Ids out of range cannot have been in a response.
    found = native.audit([each for each in given if 0 <= each <= LARGEST], user)
    strange = {each for each in given if not 0 <= each <= LARGEST}
    entries = {entry.number: entry for entry in entries_of(native)[0]}
    made = Audit(
        missing=tuple(
            LostRow(lost["id"], entries.get(lost["request"]), lost["why"])
            for lost in found["missing"]
        ),
        repeated=tuple(
            RepeatedRow(
                row["id"],
                row["times"],
                tuple(entries[each] for each in row["requests"] if each in entries),
            )
            for row in found["repeated"]
        ),
        unexpected=tuple(sorted({*found["unexpected"], *strange})),
        expected=found["expected"],
        of="user" if user is None else f"user {user}: message",
    )
    if not made.ok:
        failed_audits.append(made)
    return made


def _id(place: int, value: SupportsIndex) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        hint = "; audit(row.id for row in ...)" if hasattr(value, "id") else ""
        raise TypeError(f"ids[{place}] must be an int, not {type(value).__name__}{hint}")
    return operator.index(value)


def _shown(entry: JournalEntry) -> str:
    return f"request {entry.number} ({entry.method} {entry.path})"
