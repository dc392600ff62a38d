"""What was asked of a lane, and what it answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, overload

from backread.testing.requests import READS

if TYPE_CHECKING:
    from backread._backread import NativeLane
    from backread.testing.requests import Requests

__all__ = ["Calls", "JournalEntry", "entries_of", "entry_of"]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One request, and its answer."""

    number: int
    """From 1 on, in the order of arrival at the lane."""
    at: datetime
    """When it came, in UTC, by the lane's clock."""
    method: str
    path: str
    """Path and query, as they came; empty where there was none, as in what is no HTTP."""
    route: str
    """``users``, ``user``, ``messages``, ``message``, ``openapi`` or ``other``."""
    user: int | None
    message: int | None
    offset: int | None
    """Where the list was asked from, and how much of it, as applied; None for single items."""
    limit: int | None
    attempt: int
    """Which request for this item or page it was, from 1 on; 0 where it made no sense."""
    status: int
    """Of the answer, also where a fault kept it from arriving: ``faults`` tells."""
    rows: int | None
    """How many rows a list was answered with."""
    faults: tuple[str, ...]
    """The rules that bent the answer, as `Lane.faults` shows them."""
    unexpected: str | None
    """One word for why no client should have sent this, such as ``unknown_argument``."""

    def __str__(self) -> str:
        bent = f" ({', '.join(self.faults)})" if self.faults else ""
        asked = f"{self.method} {self.path or '(no path)'}"
        if self.unexpected == "malformed":
            asked = "no HTTP"
        return f"request {self.number}: {asked} -> {self.status}{bent}"


class Calls:
    """The requests that fit a choice, oldest first: a view that goes on as more are sent.

    ``count`` and ``len()`` are exact. By route alone, or by status alone, they come from counters;
    otherwise, and for the entries themselves, from the journal, which keeps the last 10,000
    requests unless the server was told otherwise: RuntimeError if it had to forget some.
    """

    __slots__ = ("_native", "_wanted")

    def __init__(self, native: NativeLane, wanted: Requests) -> None:
        self._native = native
        self._wanted = wanted

    @property
    def count(self) -> int:
        """How many there were so far."""
        wanted = self._wanted
        if not wanted.counted:
            return len(self._entries())
        if wanted.status is not None:
            return self._native.statuses().get(wanted.status, 0)
        counts = self._native.counts()
        if wanted.route is None:
            return sum(counts.values())
        routes = READS if wanted.route == "any" else (wanted.route,)
        return sum(counts[route] for route in routes)

    def _entries(self) -> list[JournalEntry]:
        entries, forgotten = entries_of(self._native)
        if forgotten:
            raise RuntimeError(
                f"the journal keeps the last {len(entries)} requests, and more came: count by "
                "route alone or by status alone, call forget() before the part that matters, or "
                "give the MockServer a longer journal="
            )
        return [entry for entry in entries if self._wanted.match(entry)]

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[JournalEntry]:
        return iter(self._entries())

    @overload
    def __getitem__(self, index: int) -> JournalEntry: ...
    @overload
    def __getitem__(self, index: slice) -> list[JournalEntry]: ...
    def __getitem__(self, index: int | slice) -> JournalEntry | list[JournalEntry]:
        return self._entries()[index]

    def __repr__(self) -> str:
        wanted = self._wanted
        named = {"route": wanted.route, "user": wanted.user, "message": wanted.message}
        named |= {"offset": wanted.offset, "status": wanted.status}
        shown = ", ".join(f"{name}={value!r}" for name, value in named.items() if value is not None)
        return f"Calls({shown})"


def entries_of(native: NativeLane, after: int = 0) -> tuple[list[JournalEntry], bool]:
    """The entries numbered above ``after``, and whether some of them were forgotten already."""
    entries, forgotten = native.journal(after)
    return [entry_of(each) for each in entries], forgotten


def entry_of(fields: dict[str, Any]) -> JournalEntry:
    """The entry that the native module describes."""
    at = datetime.fromtimestamp(fields["at"], UTC)
    return JournalEntry(**{**fields, "at": at, "faults": tuple(fields["faults"])})
