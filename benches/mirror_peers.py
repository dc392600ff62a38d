"""What a mirror holds, and what it costs, next to a plain loop, dlt and Airbyte's declarative CDK.

Usage: ``python benches/mirror_peers.py DLT_PYTHON AIRBYTE_PYTHON [--write]``, with the interpreters
that have the peers; `make bench-mirror` does it all. Each reads the same worlds from the mock, in a
process and a lane of its own: whole, again without a change, again after changes, killed at half of
its requests, while rows are deleted, and in an order with ties. All figures are counts.
``--quick [WORLDS]`` measures quick syncs alone.
``--write`` puts the counts into docs/compared/index.md.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tables
from backread import Mirror
from backread.testing import Lane, MockServer, World

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "peers" / "mirror"
PAGE = HERE.parent / "docs/compared/index.md"
USERS, MOST_MESSAGES = 1_000, 160
PAGE_SIZE = 99
# A real service is no mock: an answer takes a while, and so a kill finds requests under way.
LATENCY = "any: latency(5)"
DELETED_AFTER = (2, 4, 6, 8)
DELETED_USERS = 3
DELETED_MESSAGES = 2
CHANGED_USERS = 10
NEW_MESSAGES = 2
MOST_RUNS = 60

COUNTS = (
    "what reads",
    "rows lost to deletes",
    "of them unreported",
    "rows lost to ties",
    "of them unreported",
    "requests, first run",
    "requests after a kill",
    "requests, unchanged re-run",
    "changes a re-run missed",
)
AS_ABOVE = "as above"


@dataclass(frozen=True)
class Tool:
    """One row: its program, who runs it, and what the program is told besides."""

    name: str
    program: str
    python: str
    arguments: tuple[str, ...] = ()
    only_reruns_differ: bool = False
    """Its first run pages as the tool above does, so losses are not measured again."""


@dataclass
class Held:
    """What a tool holds after a run: users, and messages with their read flags by key."""

    users: set[int]
    messages: dict[tuple[int, int], tuple[bool, bool]]


@dataclass
class Said:
    """Which lists a tool says that it doubts, at the end of a run."""

    doubts_users: bool = False
    doubts_lists: list[int] = field(default_factory=list)


@dataclass
class Loss:
    """Rows that were there from start to end and are not held, and how many of them nobody told."""

    users: int
    messages: int
    silent: int

    def __str__(self) -> str:
        if not self.users + self.messages:
            return "0"
        return f"{self.users:,} users, {self.messages:,} messages"


def tools(dlt: str, airbyte: str) -> list[Tool]:
    """The rows of the tables."""
    return [
        Tool("a plain loop", "plain_loop.py", sys.executable),
        Tool("dlt", "dlt_rest_api.py", dlt),
        Tool("dlt, by `updated_at`", "dlt_rest_api.py", dlt, ("updated",), True),
        Tool("Airbyte", "airbyte_declarative.py", airbyte),
        Tool("Airbyte, by `updated_at`", "airbyte_declarative.py", airbyte, ("updated",), True),
        Tool("backread", "backread_mirror.py", sys.executable),
    ]


# --- one tool, one folder, one lane ---------------------------------------------------------------


class Trial:
    """A tool with an empty folder, and a lane of the mock that it reads."""

    def __init__(self, tool: Tool, lane: Lane, folder: Path) -> None:
        self._tool = tool
        self.lane = lane
        self._folder = folder

    def _start(self, verb: str) -> subprocess.Popen[str]:
        tool = self._tool
        environment = os.environ | {
            "BACKREAD_BASE_URL": self.lane.url,
            "BACKREAD_API_SECRET": self.lane.secret,
            "BACKREAD_VENDOR": self.lane.vendor,
            # What a peer keeps of itself stays in the folder, and nothing is sent anywhere.
            "HOME": str(self._folder),
            "TMPDIR": str(self._folder),
            "RUNTIME__DLTHUB_TELEMETRY": "false",
            "DO_NOT_TRACK": "1",
        }
        return subprocess.Popen(
            [tool.python, PROGRAMS / tool.program, verb, self._folder, *tool.arguments],
            cwd=self._folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )

    def _last_line(self, verb: str) -> Any:
        with self._start(verb) as process:
            printed, errors = process.communicate()
        if process.returncode != 0:
            raise SystemExit(f"{self._tool.name}: {verb} failed\n{printed[-2000:]}{errors[-4000:]}")
        return json.loads(printed.splitlines()[-1])

    def sync(self) -> Said:
        """One run to its end."""
        return Said(**self._last_line("sync"))

    def requests(self) -> int:
        """How many requests came since the lane was asked to forget."""
        return sum(self.lane.counts().values())

    def sync_until_killed(self, requests: int) -> None:
        """One run, killed with SIGKILL once so many requests came."""
        process = self._start("sync")
        try:
            while self.requests() < requests:
                if process.poll() is not None:
                    raise SystemExit(f"{self._tool.name} ended before it could be killed")
                time.sleep(0.0005)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def held(self) -> Held:
        """What the tool holds now."""
        read = self._last_line("held")
        messages = {(user, each): (bool(a), bool(b)) for user, each, a, b in read["messages"]}
        return Held(set(read["users"]), messages)


@contextmanager
def trial(server: MockServer, tool: Tool, *, dialect: str | None = None) -> Iterator[Trial]:
    """A trial on a fresh copy of the server's world."""
    with tempfile.TemporaryDirectory() as folder, server.lane(dialect=dialect) as lane:
        yield Trial(tool, lane, Path(folder))


# --- the world against what is held ---------------------------------------------------------------


def rows_of(world: World) -> tuple[set[int], set[tuple[int, int]]]:
    """The ids of the users, and of the messages with their user's."""
    users = world.user_ids()
    return set(users), {(user, each) for user in users for each in world.message_ids(user)}


def loss(one: Trial, said: Said, before: tuple[set[int], set[tuple[int, int]]]) -> Loss:
    """What of the rows before, and still there, is not held."""
    held, after = one.held(), rows_of(one.lane.world)
    users = (before[0] & after[0]) - held.users
    messages = (before[1] & after[1]) - held.messages.keys()
    audited = {row.id for row in one.lane.audit(held.users).missing}
    if users != audited:
        raise SystemExit(f"the mock's audit and this script differ: {sorted(users ^ audited)[:9]}")
    # Who doubts the list of users warns of all that hangs on a user, and of no other list.
    silent = 0 if said.doubts_users else len(users)
    doubted = set(said.doubts_lists) | (users if said.doubts_users else set())
    silent += sum(user not in doubted for user, _ in messages)
    return Loss(len(users), len(messages), silent)


def expect_whole(tool: Tool, one: Trial) -> None:
    """Ends the program where a world that does not change is not held whole: a wrong setting."""
    held = one.held()
    if (held.users, set(held.messages)) != rows_of(one.lane.world):
        raise SystemExit(f"{tool.name} does not hold a world that did not change")


# --- scenarios ------------------------------------------------------------------------------------


def reruns(server: MockServer, tool: Tool) -> tuple[int, int, str]:
    """The requests of a first run, and of an unchanged one; what a third run missed."""
    with trial(server, tool) as one:
        one.sync()
        first = one.requests()
        expect_whole(tool, one)
        one.lane.forget()
        one.sync()
        again = one.requests()
        one.lane.dialect = one.lane.dialect.with_(hints="never")
        changed = dict(change(one.lane.world))
        one.sync()
        held = one.held().messages
        missed = sum(held.get(key) != flags for key, flags in changed.items())
        return first, again, f"{missed} of {len(changed)}"


def change(world: World) -> Iterator[tuple[tuple[int, int], tuple[bool, bool]]]:
    """Changes messages of 3 % of the users, and gives their keys and read flags.

    A third of these users get new messages and an `updated_at` of now, as many get new messages
    alone, and of the others a message that was unread is now read.
    """
    users = world.user_ids()
    writers = users[7 :: len(users) // (2 * CHANGED_USERS)]
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    for place, user in enumerate(writers):
        before = world.user(user).get("updated_at")
        added = world.add_messages(user, NEW_MESSAGES)
        world.edit_user(user, updated_at=before if place % 2 else now)
        for each in added:
            world.edit_message(user, each, created_at=now)
            yield (user, each), flags(world, user, each)
    unread = (
        (user, each)
        for user in users
        if user not in writers
        for each in world.message_ids(user)
        if not all(flags(world, user, each))
    )
    for user, each in itertools.islice(unread, CHANGED_USERS):
        world.edit_message(user, each, read_by_user=True, read_by_operator=True)
        yield (user, each), (True, True)


def flags(world: World, user: int, message: int) -> tuple[bool, bool]:
    """Whether a message was read by its user, and by an operator."""
    row = world.message(user, message)
    return bool(row.get("read_by_user")), bool(row.get("read_by_operator"))


def killed(server: MockServer, tool: Tool, first: int) -> int:
    """Requests of the run after one that was killed at half of its requests."""
    with trial(server, tool) as one:
        one.lane.fault(LATENCY)
        one.sync_until_killed(first // 2)
        one.lane.forget()
        one.sync()
        requests = one.requests()
        expect_whole(tool, one)
        return requests


def deletes(server: MockServer, tool: Tool) -> Loss:
    """Users go from the head of their list between its pages, and messages of each longer list."""
    with trial(server, tool) as one:
        world = one.lane.world
        before = rows_of(world)
        for page in DELETED_AFTER:
            one.lane.between_pages("users", after=page).delete(first=DELETED_USERS)
        for user in world.user_ids()[DELETED_USERS * len(DELETED_AFTER) :]:
            if len(world.message_ids(user)) > PAGE_SIZE:
                drift = one.lane.between_pages("messages", after=1, user=user)
                drift.delete(first=DELETED_MESSAGES)
        return loss(one, one.sync(), before)


def ties(server: MockServer, tool: Tool) -> Loss:
    """Nothing changes, but eight neighbours change places at every request."""
    with trial(server, tool, dialect="documented order=ties") as one:
        before = rows_of(one.lane.world)
        return loss(one, one.sync(), before)


def measure(all_tools: Sequence[Tool]) -> Iterator[list[str]]:
    """A row for each tool."""
    with MockServer(World(seed=7, users=USERS, messages_per_user=(0, MOST_MESSAGES))) as server:
        for tool in all_tools:
            first, again, missed = reruns(server, tool)
            after = killed(server, tool, first)
            requests = [f"{first:,}", f"{after:,}", f"{again:,}", missed]
            if tool.only_reruns_differ:
                yield [tool.name, *[AS_ABOVE] * 4, *requests]
                continue
            losses = deletes(server, tool), ties(server, tool)
            counts = [cell for each in losses for cell in (str(each), f"{each.silent:,}")]
            yield [tool.name, *counts, *requests]


@dataclass(frozen=True)
class QuickTrial:
    """An unchanged quick run, and what one missed of the changes that `change` makes."""

    requests: int
    missed: int
    changed: int
    noticed: bool
    """Whether the first run after the changes found a miss."""
    runs: int
    """The runs until nothing was missing."""


def quick(seed: int) -> QuickTrial:
    """Five nights in which hints hold, an unchanged run, then changes of which half are silent."""
    world = World(seed=seed, users=USERS, messages_per_user=(0, MOST_MESSAGES))
    with (
        MockServer(world) as server,
        server.client() as client,
        tempfile.TemporaryDirectory() as at,
    ):
        mirror = Mirror(Path(at, "chats"))
        mirror.sync(client)
        for night in range(5):
            for user in world.user_ids()[night :: USERS // (2 * CHANGED_USERS)]:
                world.add_messages(user, 1)
            mirror.sync(client, mode="quick")
        requests = mirror.sync(client, mode="quick").requests
        server.dialect = server.dialect.with_(hints="never")
        changed = dict(change(world))
        reports, missed = [], []
        while not missed or (missed[-1] and len(missed) < MOST_RUNS):
            reports.append(mirror.sync(client, mode="quick"))
            read = "SELECT user_id, id, read_by_user, read_by_operator FROM messages"
            held = {(user, each): flags for user, each, *flags in mirror.sql(read).fetchall()}
            missed.append(sum(held.get(key) != [*flags] for key, flags in changed.items()))
    return QuickTrial(requests, missed[0], len(changed), reports[0].audit_misses > 0, len(missed))


def measure_quick(worlds: int) -> None:
    """Prints the medians over this number of worlds."""
    trials = [quick(seed) for seed in range(worlds)]
    middle = {
        name: statistics.median(getattr(each, name) for each in trials)
        for name in ("requests", "missed", "changed", "runs")
    }
    noticed, most = sum(each.noticed for each in trials), max(each.runs for each in trials)
    of = f"{middle['changed']:.0f}"
    print(f"requests of an unchanged run: {middle['requests']:,.0f}")
    unnoticed = [each.missed for each in trials if not each.noticed] or [0]
    print(f"missed by the first run after the changes: {middle['missed']:.0f} of {of}")
    print(f"the audit noticed in that run: {noticed} of {worlds} worlds")
    print(f"missed where it did not: {min(unnoticed)} to {max(unnoticed)}")
    print(f"runs until nothing was missing: {middle['runs']:.0f}, at most {most}")


def main(dlt: str, airbyte: str, *, write: bool) -> None:
    """Measures all, prints the tables, and writes them if wished."""
    if write:
        tables.expect_places(PAGE, ["counts"])
    began = time.monotonic()
    counts = []
    for row in measure(tools(dlt, airbyte)):
        counts.append(row)
        print(" | ".join(row), flush=True)
    made = tables.table(COUNTS, counts)
    print(f"\n{made}\n{time.monotonic() - began:.0f} seconds")
    if write:
        tables.write(PAGE, {"counts": made})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--quick"]:
        measure_quick(int(sys.argv[2]) if len(sys.argv) > 2 else 50)
        sys.exit()
    arguments = [each for each in sys.argv[1:] if each != "--write"]
    if len(arguments) != 2:
        sys.exit("usage: python benches/mirror_peers.py DLT_PYTHON AIRBYTE_PYTHON [--write]")
    # The tools run elsewhere; a resolved link would lose the environment that it stands in.
    given = [str(Path(each).absolute()) for each in arguments]
    main(given[0], given[1], write="--write" in sys.argv)
