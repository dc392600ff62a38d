"""Faults for selected requests of a lane, and changes between two pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from backread._client.arguments import known_options
from backread.testing.fault import Fault
from backread.testing.journal import Calls
from backread.testing.requests import number

if TYPE_CHECKING:
    from backread._backread import NativeLane
    from backread.testing.requests import ListRoute, Requests

__all__ = ["Drift", "Selection"]


class Selection:
    """Selected requests of a lane; made by `Lane.on`."""

    __slots__ = ("_native", "_wanted")

    def __init__(self, native: NativeLane, wanted: Requests) -> None:
        self._native = native
        self._wanted = wanted

    @known_options
    def fail(
        self,
        fault: Fault | str,
        *,
        times: int | None = None,
        attempt: int | None = None,
        every: int | None = None,
        p: float | None = None,
    ) -> Self:
        """Applies the fault to these requests from now on, and returns the selection.

        ``times`` (the first n attempts) and ``attempt`` (only that attempt, from 1) count each
        distinct request (route, user, message, offset) separately, so that concurrency does not
        change the result. ``every``: one request in n, and not the retry right after it. ``p``: the
        probability, 0 to 1, drawn from the lane's seed. Raises ValueError for invalid values.
        """
        fault = fault if isinstance(fault, Fault) else Fault(fault)
        chosen = {"attempt": attempt, "every": every, "p": p}
        conditions = "".join(
            f" {name}={value}" for name, value in chosen.items() if value is not None
        )
        last = "" if times is None else f" x{times}"
        self._native.add_rules(f"{self._wanted}{conditions}: {fault}{last}")
        return self

    @property
    def calls(self) -> Calls:
        """The requests of the selection so far; a live view."""
        return Calls(self._native, self._wanted)

    def __repr__(self) -> str:
        return f"<Selection {self._wanted}>"


class Drift:
    """Changes to the world after a number of pages of a list; made by `Lane.between_pages`.

    ``first=N`` and ``last=N`` are rows of the list in its order at that moment, ``ids`` names rows.
    Each method returns the drift, for another change at the same moment.
    """

    __slots__ = ("_after", "_native", "_route", "_user")

    def __init__(self, native: NativeLane, route: ListRoute, user: int | None, after: int) -> None:
        self._native = native
        self._route = route
        self._user = user
        self._after = after

    def delete(
        self,
        *,
        first: int | None = None,
        last: int | None = None,
        ids: Iterable[int] | None = None,
    ) -> Self:
        """Removes rows: the ``first`` or the ``last`` ones, or those with these ``ids``.

        TypeError unless exactly one of the arguments is given.

        ValueError for ``ids`` without an id.
        """
        which = _which(first, last, ids)
        self._native.delete_after(self._route, self._user, self._after, which)
        return self

    def add(self, count: int = 1) -> Self:
        """Adds ``count`` rows to the world, newer than all existing ones."""
        count = number("count", count, least=1)
        self._native.add_after(self._route, self._user, self._after, count)
        return self

    def edit(
        self,
        *,
        first: int | None = None,
        last: int | None = None,
        ids: Iterable[int] | None = None,
        **fields: Any,
    ) -> Self:
        """Sets fields of rows. TypeError unless exactly one of first, last and ids is given.

        ValueError for ``ids`` without an id, for ``id``, or for a value that is not JSON.
        """
        if not fields:
            raise TypeError("edit() needs a field to set, such as name='Ada'")
        which = _which(first, last, ids)
        self._native.edit_after(self._route, self._user, self._after, which, fields)
        return self

    def __repr__(self) -> str:
        user = "" if self._user is None else f" of user {self._user}"
        return f"<Drift of {self._route}{user} after page {self._after}>"


def _which(
    first: int | None, last: int | None, ids: Iterable[int] | None
) -> tuple[str, int | list[int]]:
    given: list[tuple[str, int | list[int]]] = []
    if first is not None:
        given.append(("first", number("first", first, least=1)))
    if last is not None:
        given.append(("last", number("last", last, least=1)))
    if ids is not None:
        given.append(("ids", _ids(ids)))
    if len(given) != 1:
        raise TypeError("pass exactly one of first=, last= and ids= to choose the rows")
    return given[0]


def _ids(ids: Iterable[int]) -> list[int]:
    if isinstance(ids, (str, bytes)) or not hasattr(ids, "__iter__"):
        raise TypeError(f"ids must be an iterable of ids such as [42], not {ids!r}")
    read = [number(f"ids[{place}]", each) for place, each in enumerate(ids)]
    if not read:
        raise ValueError("ids must have at least one id")
    return read
