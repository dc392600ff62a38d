"""A fake of the service for tests: `World` holds the rows, `MockServer` serves them on a port.

The server runs in this process, in a separate thread, and enforces the documented API: 401 without
the right bearer token, 406 for another Accept, 422 for a limit outside 1 to 99 or an unknown query
parameter, 404, 405. Where the API is unspecified it guesses. A `Dialect` changes the guesses, a
`Fault` breaks a response, a `Rate` limits requests, and separate `Lane` objects isolate tests.
"""

from __future__ import annotations

import backread.testing.jsonl  # noqa: F401  World.from_jsonl imports it
from backread._backread import Clock, World, WorldSnapshot
from backread.testing.audit import Audit, LostRow, RepeatedRow
from backread.testing.dialect import Dialect
from backread.testing.fault import Fault
from backread.testing.journal import Calls, JournalEntry
from backread.testing.lane import Lane, UnfiredError
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
    "UnfiredError",
    "World",
    "WorldSnapshot",
]
