"""Faults for selected requests of a lane, and changes between two pages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from backread._client.arguments import known_options
from backread.testing.fault import Fault
from backread.testing.journal import Calls, number

if TYPE_CHECKING:
    from backread._backread import NativeLane
    from backread.testing.journal import ListRoute, Requests

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
        each: bool = False,
        attempt: int | None = None,
        every: int | None = None,
        p: float | None = None,
    ) -> Self:
        """Applies the fault to these requests from now on, and returns the selection.

        ``times``: the first n of these requests, or with ``each`` the first n attempts of each
        distinct request (route, user, message, offset, limit), which requests in parallel cannot
        change. ``attempt``: only that attempt of each, from 1. ``every``: one request in n, and not
        the retry right after it. ``p``: the probability, 0 to 1, drawn from the lane's seed. Raises
        ValueError for invalid values, and for ``each`` without ``times``.
        """
        if each and times is None:
            raise ValueError("each=True needs times=, the number of attempts of each request")
        fault = fault if isinstance(fault, Fault) else Fault(fault)
        chosen = {"attempt": attempt, "every": every, "p": p}
        conditions = "".join(
            f" {name}={value}" for name, value in chosen.items() if value is not None
        )
        last = "" if times is None else f" x{times}{' each' if each else ''}"
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
        return self._change(delete=_which(first, last, ids))

    def add(self, count: int = 1) -> Self:
        """Adds ``count`` rows to the world, newer than all existing ones."""
        return self._change(add=number("count", count, least=1))

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
        return self._change(edit={"rows": _which(first, last, ids), "fields": fields})

    def _change(self, **change: Any) -> Self:
        drift = {"route": self._route, "user": self._user, "after": self._after, **change}
        try:
            text = json.dumps(drift, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the fields must be JSON: {error}") from None
        self._native.drift(text)
        return self

    def __repr__(self) -> str:
        user = "" if self._user is None else f" of user {self._user}"
        return f"<Drift of {self._route}{user} after page {self._after}>"


def _which(
    first: int | None, last: int | None, ids: Iterable[int] | None
) -> dict[str, int | list[int]]:
    given: dict[str, int | list[int]] = {}
    if first is not None:
        given["first"] = number("first", first, least=1)
    if last is not None:
        given["last"] = number("last", last, least=1)
    if ids is not None:
        given["ids"] = _ids(ids)
    if len(given) != 1:
        raise TypeError("pass exactly one of first=, last= and ids= to choose the rows")
    return given


def _ids(ids: Iterable[int]) -> list[int]:
    if isinstance(ids, (str, bytes)) or not hasattr(ids, "__iter__"):
        raise TypeError(f"ids must be an iterable of ids such as [42], not {ids!r}")
    read = [number(f"ids[{place}]", each) for place, each in enumerate(ids)]
    if not read:
        raise ValueError("ids must have at least one id")
    return read
