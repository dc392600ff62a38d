"""Reads a hostile mock over and over, by both clients, and looks at each row and at the process.

Usage: ``python tests/soak.py REQUESTS``. One world is read in each way there is, with faults in one
request of ten, until so many requests were sent; time is virtual, so that waits take none. Each
row is compared with the one that is read by its id without faults, and each report with what was
read. Then memory, threads and open files of the last quarter are held against the first's. What
is not as it should be is one line each on stdout; exit code 1 if there is any.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from backread import AsyncClient, Client
from backread.models import Page, WalkReport
from backread.testing import MockServer, World
from helpers.waiting import PATIENCE

# Those that hold all requests back are fewer: they cost a moment each, in virtual time too.
FAULTS = """
    any p=0.0002: status(429, retry_after=2); any p=0.0002: status(503, retry_after=1)
    any p=0.002: stall(after_bytes=60); any p=0.002: latency(31000)
    any p=0.01: latency(lognormal(200, 0.5)); any p=0.01: status(500)
    any p=0.01: reset(); any p=0.01: reset(after_bytes=150)
    any p=0.01: truncate(at=120); any p=0.01: truncate(at=90, length=honest)
    any p=0.01: garbage(); any p=0.01: garbage("<html>busy</html>")
    any p=0.01: stale_keepalive()
"""
OPTIONS: dict[str, Any] = {"max_retries": 25, "max_concurrency": 32}
THREADS = 16
FORMS = ("item", "dict", "row")
# Of each user, read one by one.
SINGLES = 5
# Small, so that most lists have several pages.
PAGE = 15
# A connection of the mock is open at both its ends.
MOST_FILES = 2 * 2 * OPTIONS["max_concurrency"]
EACH_FAULT_COMES = 100_000
# Of a process that grows by none: what its allocator keeps differs from one moment to the next.
SLACK = 0.05
LEAST_SLACK_MB = 16.0


@dataclass(frozen=True)
class Sample:
    """The process between two rounds."""

    megabytes: float
    threads: int
    files: int

    @classmethod
    def take(cls) -> Sample:
        gc.collect()
        status = Path("/proc/self/status").read_text()
        lines = dict(line.split(":", 1) for line in status.splitlines())
        files = len(list(Path("/proc/self/fd").iterdir()))
        return cls(int(lines["VmRSS"].split()[0]) / 1024, int(lines["Threads"]), files)


Held = dict[str, Any]
"""One row in each form."""


def held(get: Callable[..., Any], *key: int) -> Held:
    model = get(*key)
    row = Page(1, 0, 1, (model,)).to_arrow().to_pylist()[0]
    return {"item": model, "dict": get(*key, as_dict=True), "row": row}


class Expected:
    """The rows as they are read one by one, without faults."""

    def __init__(self, world: World, client: Client) -> None:
        self.users = {one: held(client.users.get, one) for one in world.user_ids()}
        self.lists = {
            user: {one: held(client.messages.get, user, one) for one in world.message_ids(user)}
            for user in self.users
        }
        self.messages = {one: row for rows in self.lists.values() for one, row in rows.items()}


@dataclass
class Soak:
    """What was read so far, and what was wrong with it."""

    expected: Expected
    rows_move: bool = False
    rows: int = 0
    wrong: list[str] = field(default_factory=list)
    certificates: dict[str, int] = field(default_factory=dict)

    def check(self, rows: list[Any], form: str, listing: Any, wanted: dict[int, Any]) -> None:
        """Compares what one listing gave, and what it said of it."""
        report: WalkReport = listing.report
        keys = [row["id"] if isinstance(row, dict) else row.id for row in rows]
        for key, row in zip(keys, rows, strict=True):
            self.check_one(row, wanted.get(key), form)
        # Where rows move, a `linked` list holds those that did not.
        complete = set(keys) == set(wanted) or (self.rows_move and report.certificate == "linked")
        count = self.certificates
        count[report.certificate] = count.get(report.certificate, 0) + 1
        if len(keys) != len(set(keys)) or report.distinct != len(keys):
            self.note(f"{len(keys)} rows, {len(set(keys))} of them distinct: {report}")
        if report.certificate != "uncertified" and not complete:
            self.note(f"{len(set(wanted) - set(keys))} rows are missing: {report}")

    def check_one(self, row: Any, wanted: Held | None, form: str) -> None:
        self.rows += 1
        if wanted is None or row != wanted[form]:
            self.note(f"{form}: {row!r}")

    def note(self, line: str) -> None:
        if len(self.wrong) < 20:
            self.wrong.append(line)


async def read(soak: Soak, client: Client | AsyncClient) -> None:
    """One round: listings side by side, and rows one by one."""
    expected = soak.expected

    async def call(function: Callable[..., Any], *arguments: Any) -> Any:
        if isinstance(client, Client):
            return await asyncio.to_thread(function, *arguments)
        return await function(*arguments)

    async def rows_of(listing: Any, form: str) -> list[Any]:
        if form == "row":
            return (await call(listing.to_arrow)).to_pylist()
        if isinstance(client, Client):
            return await asyncio.to_thread(list, listing)
        return [row async for row in listing]

    async def listed(make: Callable[..., Any], form: str, wanted: dict[int, Any]) -> None:
        listing = make(as_dict=form == "dict", page_size=PAGE)
        soak.check(await rows_of(listing, form), form, listing, wanted)

    async def singles(user: int) -> None:
        soak.check_one(await call(client.users.get, user), expected.users[user], "item")
        await listed(partial(client.messages.list, user), "item", expected.lists[user])
        for one, wanted in list(expected.lists[user].items())[:SINGLES]:
            soak.check_one(await call(client.messages.get, user, one), wanted, "item")

    async with asyncio.TaskGroup() as group:
        for user in expected.users:
            group.create_task(singles(user))
        for form in FORMS:
            group.create_task(listed(client.messages.all, form, expected.messages))
            group.create_task(listed(client.users.list, form, expected.users))


def grown(samples: list[Sample]) -> list[str]:
    """What the last quarter of the samples has more of than the first."""
    quarter = max(1, len(samples) // 4)
    # The first round makes what all others use.
    first, last = samples[1 : quarter + 1], samples[-quarter:]
    found = []
    before, after = (statistics.median(one.megabytes for one in part) for part in (first, last))
    if after > before + max(LEAST_SLACK_MB, before * SLACK):
        found.append(f"memory grew from {before:.1f} to {after:.1f} MB")
    before, after = max(one.threads for one in first), min(one.threads for one in last)
    if after > before + 1:
        found.append(f"threads grew from {before} to {after}")
    before, after = samples[0].files, min(one.files for one in last)
    if after > before + MOST_FILES:
        found.append(f"files grew from {before} to {after}, which is more than connections can be")
    return found


def left(before: Sample, after: Sample) -> list[str]:
    """What is still there when clients and mock are closed that was not before they were used."""
    pairs = {"threads": (before.threads, after.threads), "files": (before.files, after.files)}
    return [
        f"{name}: {was}, and {now} at the end" for name, (was, now) in pairs.items() if now > was
    ]


async def warm_up(server: MockServer) -> None:
    """Makes what a process has once: the runtimes' threads stay until it ends."""
    async with server.async_client() as client:
        await client.users.page()


def run(requests: int) -> int:
    """Soaks for so many requests; gives the exit code."""
    world = World(seed=11, users=40, messages_per_user=(0, 120))
    with MockServer(world, dialect="hostile", journal=500) as server:
        with server.client() as plain:
            soak = Soak(Expected(server.world, plain))
            plain.users.list().to_arrow()
        asyncio.run(warm_up(server))
        server.fault(FAULTS)
        server.clock.virtual()
        started, samples = time.monotonic(), [Sample.take()]
        client, other = server.client(**OPTIONS), server.async_client(**OPTIONS)

        async def both() -> None:
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
            while (sent := sum(server.statuses().values())) < requests and not soak.wrong:
                soak.rows_move = not soak.rows_move
                order = "ties" if soak.rows_move else "id"
                server.dialect = server.dialect.with_(order=order)
                await read(soak, client)
                await read(soak, other)
                samples.append(Sample.take())
                if len(samples) % 20 == 0:
                    seconds = time.monotonic() - started
                    print(f"{sent} requests, {seconds:.0f} s, {samples[-1]}", flush=True)
            await other.aclose()

        asyncio.run(both())
        client.close()
        sent, seconds = sum(server.statuses().values()), time.monotonic() - started
        counts = zip(server.faults, server.fired, strict=True)
        unfired = [rule for rule, fired in counts if not fired]
    # The runtime's threads close the last connections in their own time.
    give_up = time.monotonic() + PATIENCE
    while (remains := left(samples[0], Sample.take())) and time.monotonic() < give_up:
        time.sleep(0.1)
    wrong = [*soak.wrong, *grown(samples), *remains]
    if requests >= EACH_FAULT_COMES:
        wrong += [f"never came: {rule}" for rule in unfired]
    counts = sorted(soak.certificates.items())
    certificates = ", ".join(f"{name} {count}" for name, count in counts)
    print(f"{sent} requests, {soak.rows} rows, {seconds:.0f} s; listings: {certificates}")
    print(f"first {samples[1]}, last {samples[-1]}, {threading.active_count()} Python threads")
    for line in wrong:
        print(f"wrong: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(run(int(sys.argv[1])))
