"""One call of backread, or a plain loop, and the figures of it."""

import contextlib
import http.client
import json
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

from nginx import Front
from origin import MEDIA_TYPE, SECRET, VENDOR, Origin

from backread import BackreadError, Client, Listing
from backread.models import Message, User, WalkReport

PAGE = 99


def client(front: Front | Origin, **options: Any) -> Client:
    """A client of the service behind a proxy, or of the service."""
    bundle = front.ca_bundle if isinstance(front, Front) else None
    return Client(front.url, SECRET, VENDOR, ca_bundle=bundle, **options)


class Retries(logging.Handler):
    """Counts the requests that backread logs as retried, in its ``with`` block."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.texts: list[str] = []
        self._logger = logging.getLogger("backread")
        self._before = self._logger.level, self._logger.propagate

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.count += getattr(record, "again_in", None) is not None

    def __enter__(self) -> Self:
        self._logger.setLevel(logging.INFO)
        # pytest would show each of them with a test that fails.
        self._logger.propagate = False
        self._logger.addHandler(self)
        return self

    def __exit__(self, *raised: object) -> None:
        self._logger.removeHandler(self)
        level, self._logger.propagate = self._before
        self._logger.setLevel(level)


@dataclass(frozen=True)
class Read:
    """What one call came to; ``retries`` are those that were logged."""

    held: set[int]
    requests: int
    seconds: float
    error: BackreadError | None = None
    report: WalkReport | None = None
    retries: int = 0
    log: Sequence[str] = ()

    def missed(self, expected: Iterable[int]) -> int:
        """How many of these ids are not held."""
        return len(set(expected) - self.held)


def read_all(listing: Listing[User] | Listing[Message]) -> Read:
    """Reads a listing to its end, or to an error."""
    held: set[int] = set()
    error = None
    started = time.monotonic()
    with Retries() as retries:
        try:
            for row in listing:
                held.add(row.id)
        except BackreadError as raised:
            error = raised
    seconds = time.monotonic() - started
    report = listing.report
    return Read(held, report.requests, seconds, error, report, retries.count, retries.texts)


def plain_loop(url: str) -> Read:
    """Reads the users page after page up to the total, as a short program would."""
    address = urlsplit(url)
    headers = {"Authorization": f"Bearer {SECRET}", "Accept": MEDIA_TYPE}
    held: set[int] = set()
    offset = requests = 0
    started = time.monotonic()
    with contextlib.closing(http.client.HTTPConnection(address.netloc)) as connection:
        while True:
            path = f"/external/users?offset={offset}&limit={PAGE}"
            connection.request("GET", path, headers=headers)
            page = json.loads(connection.getresponse().read())
            requests += 1
            held.update(row["id"] for row in page["users"])
            offset += PAGE
            total = page.get("total")
            if len(page["users"]) < PAGE if total is None else offset >= total:
                break
    return Read(held, requests, time.monotonic() - started)
