"""A service to test against: `World` holds the rows, `MockServer` answers for them on a port.

The server runs in this process, on its own thread, and answers the documented interface strictly:
401 without the right bearer, 406 for another Accept, 422 for a limit outside 1 to 99 or an unknown
query parameter, 404, 405. What the interface leaves open it answers by guess; a `Dialect` guesses
otherwise, a `Fault` breaks an answer, a `Rate` refuses what comes too fast, and a `Lane` of its own
keeps one test apart from another. `record` makes a world of a real service's rows, with fakes in
place of what they hold, and `learn` a dialect of its habits.
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


# Each test run imports this package, and few of them make a record.
_ELSEWHERE = {
    **dict.fromkeys(("Learned", "learn"), "learning"),
    **dict.fromkeys(("About", "Record", "record"), "recording"),
}


def __getattr__(name: str) -> object:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_ELSEWHERE})
