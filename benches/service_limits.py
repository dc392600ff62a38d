"""How much of what a service allows a client makes use of, and how often it is refused.

Usage: ``python benches/service_limits.py [SECONDS] [--write]``; each row takes about that long,
default 60. ``--write`` puts some of its rows into docs/compared/speed.md.
The mock answers in this process, on a separate thread; one client reads every user's messages,
one page each. Allowed is what the bucket would have let through in the time that the walk took
(burst + rate x time), or as many requests as fit in it at that latency and so many at once. Prints
a table in Markdown; exit code 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from backread.testing import MockServer, Rate, World
from tables import expect_places, table, write

PAGE_OF_SPEED = Path(__file__).resolve().parent.parent / "docs/compared/speed.md"
PAGE = 99
REQUESTS = 6_000


@dataclass(frozen=True, slots=True)
class Service:
    """A service, and how a client asks it."""

    rate: Rate | None
    latency_ms: int
    max_concurrency: int = 16
    # The least share of what is allowed, and the most that may be refused.
    goal: float = 0.0
    refused_goal: float = 1.0
    on_page: bool = True

    def __str__(self) -> str:
        limit = "no limit" if self.rate is None else str(self.rate)
        return f"{limit}, {self.latency_ms} ms, {self.max_concurrency} at once"

    def requests(self, seconds: float) -> int:
        """What there is to ask for."""
        if self.rate is None:
            return REQUESTS
        return max(int(self.rate.per_second * seconds), 100)


@dataclass(frozen=True, slots=True)
class Figures:
    """What came of one walk."""

    taken: int
    refused: int
    seconds: float

    def allowed(self, service: Service) -> float:
        """How many requests the service would have taken in the time."""
        if service.rate is None:
            return self.seconds * 1_000 / service.latency_ms * service.max_concurrency
        return service.rate.burst + service.rate.per_second * self.seconds

    @property
    def refused_share(self) -> float:
        return self.refused / (self.taken + self.refused)


GOALS = [
    *(
        Service(Rate(100, burst=20), latency, goal=0.95, refused_goal=0.02, on_page=latency == 5)
        for latency in (0, 5, 50)
    ),
    Service(None, 50, max_concurrency=64, goal=0.9),
]
OTHERS = [
    Service(Rate(100, burst=20, says="headers"), 5),
    Service(Rate(100, burst=20, says="nothing"), 5, on_page=False),
    Service(Rate(100, burst=20, says="nothing", status=503), 5),
    Service(Rate(100, burst=20, status=503), 5, on_page=False),
    Service(Rate(5, burst=20), 5),
    Service(Rate(20, burst=10), 50, on_page=False),
    Service(Rate(100, burst=200), 5),
    Service(Rate(500, burst=50), 5, on_page=False),
    Service(Rate(1_000, burst=100), 50, max_concurrency=64),
    Service(Rate(2_000, burst=200), 0, on_page=False),
]


def measure(service: Service, seconds: float) -> Figures:
    """Reads every user's messages; all but the last pages of users count as one request a user."""
    requests = service.requests(seconds)
    users = requests * PAGE // (PAGE + 1)
    world = World(seed=7, users=users, messages_per_user=(1, 3))
    faults = f"any: latency({service.latency_ms})" if service.latency_ms else None
    with (
        MockServer(world, rate=service.rate, faults=faults) as server,
        server.client(max_concurrency=service.max_concurrency) as client,
    ):
        began = time.perf_counter()
        rows = sum(1 for _ in client.messages.all(as_dict=True))
        seconds = time.perf_counter() - began
        statuses = server.statuses()
        assert rows >= users
    refused = statuses.get(429, 0) + statuses.get(503, 0)
    return Figures(statuses[200], refused, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("seconds", nargs="?", type=float, default=60.0)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    seconds = arguments.seconds
    if arguments.write:
        expect_places(PAGE_OF_SPEED, ["pace"])
    rows: list[list[str]] = []
    missed: list[str] = []
    for service in (*GOALS, *OTHERS):
        figures = measure(service, seconds)
        share = figures.taken / figures.allowed(service)
        if share < service.goal or figures.refused_share > service.refused_goal:
            missed.append(str(service))
        goal = f"{service.goal:.0%}" if service.goal else ""
        rows.append(
            [
                str(service),
                f"{figures.taken:,}",
                f"{figures.seconds:.1f}",
                f"{share:.1%}",
                goal,
                f"{figures.refused} ({figures.refused_share:.2%})",
            ]
        )
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    columns = ["service", "requests", "s", "of what it allows", "goal", "refused"]
    print(table(columns, rows), end="")
    if arguments.write:
        on_page = [
            [row[0], row[3], row[5]]
            for service, row in zip((*GOALS, *OTHERS), rows, strict=True)
            if service.on_page
        ]
        write(PAGE_OF_SPEED, {"pace": table([columns[0], columns[3], columns[5]], on_page)})
    if missed:
        raise SystemExit(f"goals missed: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
