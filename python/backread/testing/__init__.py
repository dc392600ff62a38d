"""A service to test against: `World` holds the rows, `MockServer` answers for them on a port.

The server runs in this process, on its own thread, and answers the documented interface strictly:
401 without the right bearer, 406 for another Accept, 422 for a limit outside 1 to 99 or an unknown
query parameter, 404, 405. What the interface leaves open it answers by guess; a `Dialect` guesses
otherwise, a `Fault` breaks an answer, a `Rate` refuses what comes too fast, and a `Lane` of its own
keeps one test apart from another.
"""

from __future__ import annotations

from backread._backread import Clock, World, WorldSnapshot
from backread.testing.audit import Audit, LostRow, RepeatedRow
from backread.testing.dialect import Dialect
from backread.testing.fault import Fault
from backread.testing.journal import Calls, JournalEntry
from backread.testing.lane import Lane
from backread.testing.rate import Rate
from backread.testing.server import MockServer
from backread.testing.unexpected import UnexpectedRequestError

__all__ = [
    "Audit",
    "Calls",
    "Clock",
    "Dialect",
    "Fault",
    "JournalEntry",
    "Lane",
    "LostRow",
    "MockServer",
    "Rate",
    "RepeatedRow",
    "UnexpectedRequestError",
    "World",
    "WorldSnapshot",
]
