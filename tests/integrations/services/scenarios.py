"""Bad days, each as a function that reads once and returns figures; tests and bench share them.

Nothing here knows which backread is installed, except `given`: an older one lacks some options.
"""

from __future__ import annotations

import contextlib
import http.client
import inspect
import json
import logging
import random
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

from database import Table
from haproxy import haproxy
from nginx import Front, nginx
from origin import (
    MEDIA_TYPE,
    SECRET,
    VENDOR,
    App,
    Cached,
    Memory,
    Origin,
    Row,
    Store,
    newest_first,
    user,
)

from backread import BackreadError, Client, Listing
from backread.models import Message, User, WalkReport

PAGE = 99
BURST = 20
LATENCY = (0.005, 0.015)


class Growing(Store, Protocol):
    """A store to which rows are added."""

    async def add(self, rows: Sequence[Row]) -> None:
        """Adds rows; those that are newest come first in the list."""


def given(**options: Any) -> dict[str, Any]:
    """The options that the installed backread has."""
    names = inspect.signature(Client.__init__).parameters
    return {name: value for name, value in options.items() if name in names}


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


# --- an import at the front -------------------------------------------------------------------


def import_at_front(store: Growing, users: int, after: int, rows: int, *, plain: bool) -> Read:
    """Rows arrive at the front of a list, newest first, after so many pages."""
    app = App(store)
    app.after(after, lambda: store.add(newest_first(rows, users + 1)))
    with Origin(app) as origin:
        if plain:
            return plain_loop(origin.url)
        with client(origin) as reader:
            return read_all(reader.users.list())


# --- a limit on the rate ----------------------------------------------------------------------


@dataclass(frozen=True)
class Paced:
    """What became of a limit: its share that was used, and the share of rejected requests."""

    read: Read
    served: int
    rejected: int
    seconds: float
    used: float

    @property
    def rejected_share(self) -> float:
        return self.rejected / max(self.served + self.rejected, 1)


def limited(
    folder: Path,
    rate: int,
    status: int,
    *,
    retry_after: bool,
    seconds: float,
    burst: int = BURST,
    **options: Any,
) -> Paced:
    """One call reads everything through nginx's ``limit_req``, which takes about that long."""
    users = burst + int(rate * seconds)
    zone = (
        f"limit_req_zone $binary_remote_addr zone=all:1m rate={rate}r/s; limit_req_status {status};"
    )
    limit = f"limit_req zone=all burst={burst} nodelay;" if burst else "limit_req zone=all;"
    locations = f"location / {{ {limit} proxy_pass http://origin; }}"
    server = ""
    if retry_after:
        server = f"error_page {status} @too_fast;"
        locations += f"location @too_fast {{ add_header Retry-After 1 always; return {status}; }}"
    app = App(Memory(newest_first(users)), delay=LATENCY)
    with (
        Origin(app, folder / "origin") as origin,
        nginx(folder, [origin.path], locations=locations, http=zone, server=server) as front,
        client(front, **options) as reader,
    ):
        read = read_all(reader.messages.all())
    answered = front.answered()
    served, rejected = front.count(200), front.count(status)
    took = max(answered[-1].at - answered[0].at, 0.001)
    return Paced(read, served, rejected, took, served / (burst + rate * took))


def unhealthy_pool(folder: Path, users: int, *, unhealthy: bool, **options: Any) -> Paced:
    """One call through a pool of three upstreams, one of which may answer 503 to everything."""
    dead = folder / "dead"
    http = f"server {{ listen unix:{dead}; access_log off; return 503; }}"
    app = App(Memory(newest_first(users)), delay=LATENCY)
    with Origin(app, folder / "origin") as origin:
        healthy = origin.path
        upstream = [healthy, healthy, dead if unhealthy else healthy]
        with (
            nginx(folder, upstream, http=http) as front,
            client(front, **options) as reader,
        ):
            read = read_all(reader.messages.all())
    answered = front.answered()
    served = sum(one.status == 200 for one in answered)
    took = max(answered[-1].at - answered[0].at, 0.001)
    return Paced(read, served, len(answered) - served, took, served / took)


# --- an outage --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outage:
    """``sent`` requests reached the proxy during it; the first success came ``resumed`` s later."""

    read: Read
    sent: int
    resumed: float | None
    lasted: float


Proxy = Callable[[Path, Path], contextlib.AbstractContextManager[Front]]


def behind_nginx(folder: Path, socket: Path) -> contextlib.AbstractContextManager[Front]:
    """Answers 502 while the upstream is down."""
    return nginx(folder, [socket])


def behind_haproxy(folder: Path, socket: Path) -> contextlib.AbstractContextManager[Front]:
    """Answers 503 while the upstream is down."""
    return haproxy(folder, socket)


def outage(
    folder: Path,
    proxy: Proxy,
    seconds: float,
    *,
    users: int = 400,
    after: int = 100,
    **options: Any,
) -> Outage:
    """The upstream goes down after so many requests of a read, for so long."""
    app = App(Memory(newest_first(users)), delay=LATENCY)
    reached = threading.Event()
    app.after_request(after, reached.set)
    origin = Origin(app, folder / "origin")
    times: list[float] = []
    over = threading.Event()

    def interrupt() -> None:
        reached.wait()
        times.append(time.time())
        origin.down()
        # The read may end before: then there is nothing to wait for.
        over.wait(times[0] + seconds - time.time())
        origin.up()
        times.append(time.time())

    controller = threading.Thread(target=interrupt)
    with origin, proxy(folder, origin.path) as front, client(front, **options) as reader:
        controller.start()
        try:
            read = read_all(reader.messages.all())
        finally:
            over.set()
            reached.set()
            controller.join()
    answered = front.answered()
    down, up = times
    sent = sum(down <= one.at < up for one in answered)
    resumed = [one.at - up for one in answered if one.status == 200 and one.at >= up]
    return Outage(read, sent, min(resumed, default=None), up - down)


# --- connections that the server closes -------------------------------------------------------


@dataclass(frozen=True)
class Closed:
    """Requests over connections that nginx closes; ``failed`` calls raised ``error``."""

    requests: int
    answered: int
    retries: int
    failed: int = 0
    error: BackreadError | None = None


def closing(folder: Path, users: int, server: str, *, tls: bool, **options: Any) -> Closed:
    """Reads each user's messages in one call, with these lines for nginx's connections."""
    with served_by_nginx(folder, server, tls=tls) as front, client(front, **options) as reader:
        read = read_all(reader.messages.all(users=range(1, users + 1)))
    return Closed(
        read.requests, front.count(200), read.retries, int(read.error is not None), read.error
    )


def closing_curl(folder: Path, users: int, server: str) -> Closed:
    """The same requests by curl over HTTP/2, with as many in flight."""
    with served_by_nginx(folder, server, tls=True) as front:
        urls = "".join(
            f'url = "{front.url}/external/users/{one}/messages?limit={PAGE}"\noutput = /dev/null\n'
            for one in range(1, users + 1)
        )
        (folder / "curl").write_text(urls, "utf-8")
        headers = ["-H", f"Authorization: Bearer {SECRET}", "-H", f"Accept: {MEDIA_TYPE}"]
        parallel = ["--http2", "--parallel", "--parallel-max", "16", "--write-out", "%{http_code} "]
        tls = ["--cacert", str(front.ca_bundle)]
        command = [
            "curl",
            "-q",
            "-sS",
            "--noproxy",
            "*",
            *parallel,
            *tls,
            *headers,
            "-K",
            str(folder / "curl"),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
    codes = done.stdout.split()
    return Closed(users, codes.count("200"), 0, users - codes.count("200"))


def idle(folder: Path, gets: int, timeout_ms: int, **options: Any) -> Closed:
    """Fetches users one by one, as nginx closes the connection because it was idle."""
    pauses = random.Random(7)
    failed, error = 0, None
    server = f"keepalive_timeout {timeout_ms}ms;"
    with (
        served_by_nginx(folder, server, tls=False) as front,
        client(front, **options) as reader,
        Retries() as retries,
    ):
        for _ in range(gets):
            try:
                reader.users.get(7)
            except BackreadError as raised:
                failed, error = failed + 1, raised
            # Around the timeout, where a request and the end of the connection cross.
            end = time.perf_counter() + timeout_ms / 1_000 * pauses.uniform(0.9, 1.4)
            while time.perf_counter() < end:
                time.sleep(0.0002)
    return Closed(gets, front.count(200), retries.count, failed, error)


@contextlib.contextmanager
def served_by_nginx(folder: Path, server: str, *, tls: bool) -> Iterator[Front]:
    """nginx before ten users, or any user's messages."""
    app = App(Memory(newest_first(10)))
    with (
        Origin(app, folder / "origin"),
        nginx(folder, [folder / "origin"], server=server, tls=tls) as front,
    ):
        yield front


# --- a proxy that wants another password ------------------------------------------------------


@dataclass(frozen=True)
class Refused:
    """What the proxy was sent, and the error."""

    sent: int
    error: BackreadError

    @property
    def hinted(self) -> bool:
        """The message says what to do, as it does for a 407 to plain http."""
        return "user name and password" in str(self.error)


def refused_by_proxy(folder: Path) -> Refused:
    """One call over a tunnel that HAProxy refuses with 407."""
    challenge = "http-request return status 407 hdr Proxy-Authenticate 'Basic realm=proxy'"
    with haproxy(folder, folder / "origin", frontend=challenge) as front:
        proxy = front.url.replace("//", "//someone:wrong@")
        with Client("https://chat.example.com", SECRET, VENDOR, proxy=proxy) as reader:
            error = failing(lambda: reader.users.get(7))
    return Refused(front.count(407), error)


def failing(call: Callable[[], object]) -> BackreadError:
    """The error that a call raises, which it must."""
    try:
        call()
    except BackreadError as raised:
        return raised
    raise AssertionError("no error was raised")


# --- many walks over a list that changes -------------------------------------------------------


@dataclass
class Walks:
    """Many walks, and a plain loop after each: ``false`` were certified and missed a row."""

    walks: int = 0
    certified: int = 0
    false: int = 0
    complete: int = 0
    missed: int = 0
    rows: int = 0
    requests: int = 0
    plain_missed: int = 0
    plain_requests: int = 0
    reasons: list[str] = field(default_factory=list)


class Churn:
    """Rows that come at the front and go anywhere, in half of the gaps between requests."""

    def __init__(self, seed: int, users: int) -> None:
        self._random = random.Random(seed)
        self._next = users + 1
        self.there = list(range(1, users + 1))

    def step(self) -> tuple[int | None, int | None]:
        """The id that is added and the one that is deleted, if any."""
        added = deleted = None
        if self._random.random() < 0.5:
            if self._random.random() < 0.6:
                added = self._next
                self.there.append(added)
                self._next += 1
            else:
                deleted = self.there.pop(self._random.randrange(len(self.there)))
        return added, deleted


def walks(
    store: Store,
    count: int,
    there: Callable[[], Iterable[int]],
    change: Callable[[], Awaitable[None]] | None = None,
    moved: set[int] | None = None,
) -> Walks:
    """Walks over a list that ``change`` changes after each page; ``there`` are its ids now.

    ``change`` adds to ``moved`` what need not be held: rows that moved while they were read.
    """
    moved = set() if moved is None else moved
    app = App(store)
    app.after_each = change
    result = Walks()
    with Origin(app) as origin:
        for _ in range(count):
            before = set(there())
            moved.clear()
            # A new client has learned nothing of the service.
            with client(origin) as reader:
                read = read_all(reader.users.list())
            stayed = (before & set(there())) - moved
            report, missed = read.report, read.missed(stayed)
            assert report is not None
            certified = report.certificate != "uncertified"
            result.walks += 1
            result.certified += certified
            result.false += certified and missed > 0
            result.complete += missed == 0
            result.missed += missed
            result.rows += len(stayed)
            result.requests += read.requests
            if report.reason:
                result.reasons.append(report.reason)
            before = set(there())
            moved.clear()
            loop = plain_loop(origin.url)
            result.plain_missed += loop.missed((before & set(there())) - moved)
            result.plain_requests += loop.requests
    return result


def counted_late(table: Table, users: int, cached: float, count: int, seed: int) -> Walks:
    """Rows come and go while the total is cached for some seconds, or missing with 0."""
    churn = Churn(seed, users)

    async def change() -> None:
        added, deleted = churn.step()
        if added is not None:
            await table.add([user(added)])
        if deleted is not None:
            await table.execute("DELETE FROM {users} WHERE id = $1", deleted)

    return walks(Cached(table, cached), count, lambda: churn.there, change)


def tied(
    database: Path, users: int, count: int, seed: int, *, updates: int, values: int = 5
) -> Walks:
    """Lists sorted by a column of few values; so many rows are updated after each page."""
    pick = random.Random(seed)
    rows = [user(one, reference=str(pick.randrange(values))) for one in range(1, users + 1)]
    pick.shuffle(rows)
    table = Table(database, rows, "reference")

    async def change() -> None:
        for _ in range(updates):
            # PostgreSQL writes the row anew elsewhere in the table.
            one = pick.randrange(users) + 1
            await table.execute("UPDATE {users} SET updated_at = now() WHERE id = $1", one)

    return walks(table, count, lambda: range(1, users + 1), change if updates else None)


def moving(database: Path, order: str | None, users: int, count: int, seed: int) -> Walks:
    """One row is updated after each page, and moves where the order says so, or none is given."""
    pick = random.Random(seed)
    table = Table(database, newest_first(users), order)
    moved: set[int] = set()

    async def change() -> None:
        one = pick.randrange(users) + 1
        moved.add(one)
        await table.execute("UPDATE {users} SET updated_at = now() WHERE id = $1", one)

    return walks(table, count, lambda: range(1, users + 1), change, moved)


def updated_in_overlap(database: Path, position: int) -> Read:
    """200 users by ``updated_at``; one near the end of page 1 is updated after it was read."""
    table = Table(database, newest_first(200), "updated_at")
    app = App(table)
    app.after(1, table.later("UPDATE {users} SET updated_at = now() WHERE id = $1", position + 1))
    with Origin(app) as origin, client(origin) as reader:
        return read_all(reader.users.list())
