"""Bad days behind a proxy, each as a function that reads once and returns figures."""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from haproxy import haproxy
from nginx import Front, nginx
from origin import SECRET, VENDOR, App, Memory, Origin, newest_first
from reading import Read, Retries, client, read_all

from backread import BackreadError, Client

BURST = 20
LATENCY = (0.005, 0.015)


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
    **options: Any,
) -> Paced:
    """One call reads everything through nginx's ``limit_req``, which takes about that long."""
    users = BURST + int(rate * seconds)
    zone = (
        f"limit_req_zone $binary_remote_addr zone=all:1m rate={rate}r/s; limit_req_status {status};"
    )
    limit = f"limit_req zone=all burst={BURST} nodelay;"
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
    return Paced(read, served, rejected, took, served / (BURST + rate * took))


def unhealthy_pool(folder: Path, users: int, **options: Any) -> Paced:
    """One call through a pool of three upstreams, one of which answers 503 to everything."""
    dead = folder / "dead"
    http = f"server {{ listen unix:{dead}; access_log off; return 503; }}"
    app = App(Memory(newest_first(users)), delay=LATENCY)
    with Origin(app, folder / "origin") as origin:
        healthy = origin.path
        upstream = [healthy, healthy, dead]
        with (
            nginx(folder, upstream, http=http) as front,
            client(front, **options) as reader,
        ):
            read = read_all(reader.messages.all())
    answered = front.answered()
    served = sum(one.status == 200 for one in answered)
    took = max(answered[-1].at - answered[0].at, 0.001)
    return Paced(read, served, len(answered) - served, took, served / took)


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
    """One call over a tunnel that HAProxy refuses with 407, which must raise an error."""
    challenge = "http-request return status 407 hdr Proxy-Authenticate 'Basic realm=proxy'"
    with haproxy(folder, folder / "origin", frontend=challenge) as front:
        proxy = front.url.replace("//", "//someone:wrong@")
        with Client("https://chat.example.com", SECRET, VENDOR, proxy=proxy) as reader:
            try:
                reader.users.get(7)
                raise AssertionError("no error was raised")
            except BackreadError as raised:
                error = raised
    return Refused(front.count(407), error)
