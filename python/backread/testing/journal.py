"""The journal of a lane: requests and their responses, and which of them are meant."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias, overload

if TYPE_CHECKING:
    from backread._backread import NativeLane

__all__ = ["READS", "ListRoute", "Requests", "Route", "number"]

Route: TypeAlias = Literal["users", "user", "messages", "message", "any"]
"""One of the API's four reads, or any."""
ListRoute: TypeAlias = Literal["users", "messages"]

READS: dict[str, tuple[str, ...]] = {
    "users": ("offset",),
    "user": ("user",),
    "messages": ("user", "offset"),
    "message": ("user", "message"),
}
"""The four reads, and the arguments that distinguish their requests."""
_KNOWN: dict[str, tuple[str, ...]] = {
    **READS,
    "any": ("user", "message", "offset"),
    "openapi": (),
    "file": (),
    "other": (),
}


@dataclass(frozen=True, slots=True)
class Requests:
    """A filter for requests; None, also as route, matches anything."""

    route: str | None
    user: int | None = None
    message: int | None = None
    offset: int | None = None
    status: int | None = None

    def __post_init__(self) -> None:
        parts = _KNOWN.get("any" if self.route is None else self.route)
        if parts is None:
            raise ValueError(f"there is no route {self.route!r}; there are {', '.join(_KNOWN)}")
        for name in ("user", "message", "offset", "status"):
            value = getattr(self, name)
            if value is None:
                continue
            object.__setattr__(self, name, number(name, value))
            if name != "status" and name not in parts:
                raise ValueError(f"requests of the route {self.route} have no {name}")

    @property
    def counted(self) -> bool:
        """Whether the counters by route or by status can answer it."""
        single = self.user is None and self.message is None and self.offset is None
        return single and (self.route is None or self.status is None)

    def __str__(self) -> str:
        """The start of a rule in the mock's grammar."""
        parts = (f" {name}={getattr(self, name)}" for name in ("user", "message", "offset"))
        return f"{self.route}" + "".join(part for part in parts if not part.endswith("=None"))


def number(name: str, value: SupportsIndex, least: int = 0) -> int:
    """The value as an int, from any integer type (numpy's too), not below ``least``."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    checked = operator.index(value)
    if checked < least:
        raise ValueError(f"{name} must be {least} or more, not {checked}")
    return checked


__all__ = ["Calls", "JournalEntry", "entries_of", "entry_of"]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One request and its response."""

    number: int
    """Counts from 1, in the order of arrival at the lane."""
    at: datetime
    """The time of arrival, in UTC, by the lane's clock."""
    method: str
    """The method of the request, such as ``GET``."""
    path: str
    """Path and query as received; empty if there was none, as in a malformed request."""
    route: str
    """``users``, ``user``, ``messages``, ``message``, ``openapi``, ``file`` or ``other``."""
    user: int | None
    """The user's id in the path; None without one."""
    message: int | None
    """The message's id in the path; None without one."""
    offset: int | None
    """The offset as requested, 0 by default; None for single items."""
    limit: int | None
    """The limit as applied; None for single items."""
    attempt: int
    """Counts the requests for this item or page from 1; 0 for an invalid request."""
    status: int
    """Of the response, even if a fault kept it from arriving: see ``faults``."""
    rows: int | None
    """The number of rows in a list response."""
    faults: tuple[str, ...]
    """The rules that affected the response, as in `Lane.faults`."""
    unexpected: str | None
    """One word for why no client should have sent this, such as ``unknown_argument``."""

    def __str__(self) -> str:
        faults = f" ({', '.join(self.faults)})" if self.faults else ""
        request = f"{self.method} {self.path or '(no path)'}"
        if self.unexpected == "malformed":
            request = "not HTTP"
        return f"request {self.number}: {request} -> {self.status}{faults}"


class Calls:
    """The matching requests, oldest first; a live view.

    ``count`` and ``len()`` are exact. If selected only by route or only by status, they come from
    counters; otherwise, and for the entries themselves, from the journal, which by default keeps
    the last 10,000 requests: RuntimeError if it no longer has all.
    """

    __slots__ = ("_native", "_wanted")

    def __init__(self, native: NativeLane, wanted: Requests) -> None:
        self._native = native
        self._wanted = wanted

    @property
    def count(self) -> int:
        """The number of requests so far."""
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
        return [entry for entry in entries if _matches(entry, self._wanted)]

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


def _matches(entry: JournalEntry, wanted: Requests) -> bool:
    routes = READS if wanted.route == "any" else (wanted.route,)
    return (wanted.route is None or entry.route in routes) and all(
        getattr(wanted, name) in (None, getattr(entry, name))
        for name in ("user", "message", "offset", "status")
    )


def entries_of(native: NativeLane) -> tuple[list[JournalEntry], bool]:
    """The entries, and whether some of them were already dropped."""
    entries, forgotten = native.journal(0)
    return [entry_of(each) for each in entries], forgotten


def entry_of(fields: dict[str, Any]) -> JournalEntry:
    """Builds an entry from the native module's fields."""
    at = datetime.fromisoformat(fields["at"])
    return JournalEntry(**{**fields, "at": at, "faults": tuple(fields["faults"])})
