"""How fast the mock serves, starts and stops, and whether that stays so; against pytest-httpserver.

Usage: ``python benches/mock_server.py``; `make bench-mock` does it all. wrk loads from one thread
over 16 connections. The mock runs on one thread, checks secret, Accept and query, and counts;
pytest-httpserver serves the same bytes without a check. Rounds alternate, so that a slow moment of
the machine falls on each. Exit code 1 if a goal is missed.
"""

from __future__ import annotations

import functools
import json
import math
import random
import shutil
import socket
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from backread.testing import MockServer, World
from load import Load, Served, wrk

BENCHES = Path(__file__).resolve().parent
CONNECTIONS = 16
ROUNDS = 5
SECONDS = 3
PAGE = "/external/users?limit=99"
# Every page of it fits the cache.
SMALL = ("5000", "400")
# No cache holds it.
LARGE_USERS = 10_000_000
LARGE_MOST = 500
ENDURANCE = 1_000_000
SLICE = 100_000
STARTS = 50
# What a page's latency and a process's memory may move by from the first slices to the last.
P99_GROWTH = 1.25
MEMORY_GROWTH_MB = 4.0

missed: list[str] = []


def goal(name: str, value: float, reached: bool, bound: str, unit: str = "") -> None:
    """Prints one figure with its goal, and keeps it in mind if it is missed."""
    figure = f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:,.2f}"
    print(
        f"{name:56} {figure + unit:>14}   goal {bound}{'' if reached else '   MISSED'}", flush=True
    )
    if not reached:
        missed.append(name)


def median(loads: list[Load], what: str) -> float:
    """The median of one figure over rounds."""
    return float(statistics.median(getattr(load, what) for load in loads))


def credentials(secret: str, vendor: str) -> dict[str, str]:
    """The headers that every request carries."""
    return {
        "Authorization": f"Bearer {secret}",
        "Accept": f"application/vnd.{vendor}.v1+json",
    }


def fetch(url: str, headers: dict[str, str]) -> bytes:
    """One body."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        body: bytes = answer.read()
        return body


def mock(users: str | int, most: str | int) -> Served:
    """A process that serves a world with the mock."""
    return Served(sys.executable, BENCHES / "peers" / "servers.py", "mock", str(users), str(most))


def compare(ours: Served, headers: dict[str, str]) -> float:
    """The mock and its peer in turns; gives our pages a second."""
    load = functools.partial(wrk, seconds=SECONDS, connections=CONNECTIONS, headers=headers)
    with tempfile.TemporaryDirectory() as folder:
        body = Path(folder) / "page.json"
        body.write_bytes(fetch(ours.url + PAGE, headers))
        peer = BENCHES / "peers" / "servers.py"
        with Served(sys.executable, peer, "httpserver", body) as plain:
            servers = {"mock": ours, "pytest-httpserver": plain}
            for server in servers.values():
                if fetch(server.url + PAGE, headers) != body.read_bytes():
                    raise SystemExit(f"{server.url} does not serve the same bytes")
                load(server.url + PAGE, seconds=1)
            print(f"a page of 99 users, {body.stat().st_size:,} bytes; medians of {ROUNDS} rounds")
            loads: dict[str, list[Load]] = {name: [] for name in servers}
            for _ in range(ROUNDS):
                for name, server in servers.items():
                    loads[name].append(load(server.url + PAGE))
    print(f"{'':20} {'pages/s':>10} {'p50 ms':>8} {'p99 ms':>8} {'slowest':>10} {'fastest':>10}")
    for name, rounds in loads.items():
        rates = [one.per_second for one in rounds]
        p50, p99 = median(rounds, "p50"), median(rounds, "p99")
        print(f"{name:20} {median(rounds, 'per_second'):10,.0f} {p50:8.2f} {p99:8.2f}", end="")
        print(f" {min(rates):10,.0f} {max(rates):10,.0f}")
    print()
    rate = median(loads["mock"], "per_second")
    goal("pages of 99 users a second", rate, rate >= 30_000, ">= 30,000")
    ratio = rate / median(loads["pytest-httpserver"], "per_second")
    goal("times pytest-httpserver", ratio, ratio >= 6, ">= 6")
    return rate


def endure(ours: Served, headers: dict[str, str], rate: float) -> None:
    """A million requests in slices; memory and p99 after each."""
    seconds = max(1, math.ceil(SLICE / rate))
    started = int(ours.ask())
    asked, slices = 0, []
    print(f"\n{'requests':>12} {'pages/s':>10} {'p99 ms':>8} {'MB':>8}")
    while asked < ENDURANCE:
        load = wrk(ours.url + PAGE, seconds=seconds, connections=CONNECTIONS, headers=headers)
        asked = int(ours.ask()) - started
        slices.append((load.p99, ours.resident_megabytes()))
        print(f"{asked:12,} {load.per_second:10,.0f} {load.p99:8.2f} {slices[-1][1]:8.1f}")
    print()
    third = max(1, len(slices) // 3)
    first, last = (
        [statistics.median(column) for column in zip(*part, strict=True)]
        for part in (slices[:third], slices[-third:])
    )
    growth = last[1] - first[1]
    bound = f"<= {MEMORY_GROWTH_MB} (flat)"
    goal("memory, last slices less first", growth, growth <= MEMORY_GROWTH_MB, bound, " MB")
    ratio = last[0] / first[0]
    goal("p99, last slices by first", ratio, ratio <= P99_GROWTH, f"<= {P99_GROWTH} (flat)")


def on_the_spot() -> None:
    """Pages of a world that no cache holds, at random places."""
    with mock(LARGE_USERS, LARGE_MOST) as large, tempfile.TemporaryDirectory() as folder:
        headers = credentials(*large.words[1:])
        load = functools.partial(wrk, connections=CONNECTIONS, headers=headers, seconds=SECONDS)
        script, last = BENCHES / "random_offsets.lua", str(LARGE_USERS)
        users = [load(large.url, script=script, arguments=[last]) for _ in range(ROUNDS)]
        paths = Path(folder) / "paths"
        paths.write_text("".join(f"{path}\n" for path in message_paths(large.url, headers)))
        script = BENCHES / "each_path.lua"
        messages = [load(large.url, script=script, arguments=[paths]) for _ in range(ROUNDS)]
        memory = large.resident_megabytes()
    print(f"\n{LARGE_USERS:,} users with up to {LARGE_MOST} messages, at random places")
    for name, loads in (("users", users), ("messages", messages)):
        rate, p99 = median(loads, "per_second"), median(loads, "p99")
        goal(f"pages of {name} a second (p99 {p99:.2f} ms)", rate, rate >= 4_000, ">= 4,000")
    print(f"{'memory of that server':56} {memory:>11,.1f} MB")


def message_paths(url: str, headers: dict[str, str]) -> Iterator[str]:
    """The first page of messages of each of some 20,000 users, picked all over a large world."""
    dice = random.Random(1)
    for _ in range(200):
        offset = dice.randrange(LARGE_USERS - 99)
        for user in json.loads(fetch(f"{url}{PAGE}&offset={offset}", headers))["users"]:
            yield f"/external/users/{user['id']}/messages?limit=99"


def one_life(world: World) -> tuple[float, float, float]:
    """Milliseconds of the constructor, from its start to the first answer, and of the stop."""
    began = time.perf_counter()
    server = MockServer(world)
    made = time.perf_counter()
    address = ("127.0.0.1", server.port)
    with socket.create_connection(address) as first:
        lines = [f"GET {PAGE} HTTP/1.1", "Host: localhost"]
        lines += [
            f"{name}: {value}" for name, value in credentials(server.secret, server.vendor).items()
        ]
        request = "\r\n".join([*lines, "", ""]).encode()
        first.sendall(request)
        status = first.recv(12)
        answered = time.perf_counter()
        assert status == b"HTTP/1.1 200", status
        others = [socket.create_connection(address) for _ in range(CONNECTIONS - 1)]
        for other in others:
            other.sendall(request)
            assert other.recv(12) == b"HTTP/1.1 200"
        stopping = time.perf_counter()
        server.stop()
        stopped = time.perf_counter()
        for other in others:
            other.close()
    return (made - began) * 1_000, (answered - began) * 1_000, (stopped - stopping) * 1_000


def lives() -> None:
    """Start and stop, within this process."""
    world = World(seed=1, users=int(SMALL[0]), messages_per_user=(0, int(SMALL[1])))
    one_life(world)
    made, answered, stopped = zip(*(one_life(world) for _ in range(STARTS)), strict=True)
    print(f"\nmedians of {STARTS} lives, asked from Python")
    print(f"{'the constructor alone':56} {statistics.median(made):>11.2f} ms")
    for name, times in (
        ("start to the first answer", answered),
        (f"stop with {CONNECTIONS} connections open", stopped),
    ):
        goal(
            f"{name} (worst {max(times):.2f} ms)",
            value := statistics.median(times),
            value < 5,
            "< 5",
            " ms",
        )


def main() -> int:
    """Measures all, and gives the exit code."""
    if shutil.which("wrk") is None:
        print("wrk is missing; on Debian: apt-get install wrk", file=sys.stderr)
        return 1
    with mock(*SMALL) as ours:
        headers = credentials(*ours.words[1:])
        rate = compare(ours, headers)
        endure(ours, headers, rate)
    on_the_spot()
    lives()
    print(f"\nmissed: {'; '.join(missed)}" if missed else "\nevery goal is reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
