"""A fake of the service for tests: `World` holds the rows, `MockServer` serves them on a port.

The server runs in this process, in a separate thread, and enforces the documented API: 401 without
the right bearer token, 406 for another Accept, 422 for a limit outside 1 to 99 or an unknown query
parameter, 404, 405. Where the API is unspecified it guesses. A `Dialect` changes the guesses, a
`Fault` breaks a response, a `Rate` limits requests, and separate `Lane` objects isolate tests.
`record` makes a world from a real service's rows, with fake values, and `learn` a dialect from its
behaviour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backread._backread import Clock, World, WorldSnapshot
from backread.testing.audit import Audit, LostRow, RepeatedRow
from backread.testing.dialect import Dialect
from backread.testing.fault import Fault
from backread.testing.journal import Calls, JournalEntry
from backread.testing.lane import Lane
from backread.testing.rate import Rate
from backread.testing.server import MockServer
from backread.testing.unexpected import UnexpectedRequestError
from backread.testing.unfired import UnfiredError

if TYPE_CHECKING:
    from backread.testing.learning import Learned, learn
    from backread.testing.recording import About, Record, record

__all__ = [
    "About",
    "Audit",
    "Calls",
    "Clock",
    "Dialect",
    "Fault",
    "JournalEntry",
    "Lane",
    "Learned",
    "LostRow",
    "MockServer",
    "Rate",
    "Record",
    "RepeatedRow",
    "UnexpectedRequestError",
    "UnfiredError",
    "World",
    "WorldSnapshot",
    "learn",
    "record",
]


# Imported lazily: each test run imports this package, but few make a record.
_ELSEWHERE = {
    **dict.fromkeys(("Learned", "learn"), "learning"),
    **dict.fromkeys(("About", "Record", "record"), "recording"),
}


# Not for type checkers, which would take it that any name is there.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _ELSEWHERE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ELSEWHERE})
