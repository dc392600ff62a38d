"""What 10,000,000 users mean for a mirror, computed from what was measured with fewer.

Usage: ``python benches/ten_million_users.py [--write]``. Reads the cost of a sync from the table in
docs/explanation/mirror.md and the pace from that in docs/compared/speed.md, and scales both:
requests, CPU and disk grow with the number of users. Prints the table; ``--write`` puts it into
docs/explanation/mirror.md; without it, exits with 1 if the page has another one.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import tables

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "explanation" / "mirror.md"
SPEED = DOCS / "compared" / "speed.md"
NAME = "ten million users"

USERS = 10_000_000
USUAL = "100,000 x 50"
"""The measured service that is scaled up."""
LARGE = "5,051 x 99, of 10 KB each"
"""The measured service whose CPU may bind."""
PACES = {
    20: "20/s burst=10 says=retry_after, 50 ms, 16 at once",
    100: "100/s burst=20 says=retry_after, 50 ms, 16 at once",
    1_000: "1000/s burst=100 says=retry_after, 50 ms, 64 at once",
}
"""The measured services, by the requests a second that they allow."""
CHANGED = 0.01
"""The share of the users who got messages since the last run."""
NIGHT = 8 * 3_600
"""Seconds in which requests are allowed."""
BUDGET = 1_000_000
"""Requests that are allowed in a night."""
SWEEPING = 0.04
"""The share of its requests in which a run of several nights reads the list of users again
(`MOST_SWEEPING` in mirror/runs.py)."""
SHARDS = 8


def cells(text: str, heading: str, first: str) -> dict[str, str]:
    """A line of a page's table by its first cell, as cells by the names of the columns."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    header = next(line for line in lines if line and line[0] == heading)
    found = next(line for line in lines if line and line[0] == first)
    return dict(zip(header, found, strict=True))


def number(cell: str) -> float:
    """The first number of a cell."""
    match = re.match(r"[\d,.]*\d", cell)
    if match is None:
        raise SystemExit(f"no number in {cell!r}")
    return float(match[0].replace(",", ""))


@dataclass(frozen=True)
class Costs:
    """What a service of that size costs: requests, CPU seconds and bytes."""

    requests: float
    sweep: float
    """The requests that read the list of users."""
    first: float
    unchanged: float
    changed: float
    disk: float

    @classmethod
    def measured(cls, page: str, case: str) -> Costs:
        """Those of a line of the page's table, scaled up."""
        line = cells(page, "users x messages", case)
        users = number(case)
        requests = number(line["requests"])
        times = USERS / users
        return cls(
            requests=requests * times,
            sweep=(requests - users) * times,
            first=number(line["first"]) * times,
            unchanged=number(line["unchanged"]) * times,
            changed=number(line["1 % changed"]) * times,
            disk=number(line["disk"]) * 1e6 * times,
        )


def duration(seconds: float) -> str:
    """Days, hours or minutes."""
    for name, unit in (("days", 86_400), ("h", 3_600)):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds / 60:.0f} min"


def size(number_of_bytes: float) -> str:
    """Gigabytes or terabytes."""
    if number_of_bytes >= 1e12:
        return f"{number_of_bytes / 1e12:.1f} TB"
    return f"{number_of_bytes / 1e9:.0f} GB"


def nights(requests: float, a_night: float) -> str:
    """How many nights a run takes; in several, it reads the list of users again."""
    if requests <= a_night:
        return "1 night"
    return f"{-(-requests * (1 + SWEEPING) // a_night):,.0f} nights"


def often(requests: float, a_night: float) -> str:
    """The nights that a number of requests takes."""
    count = -(-requests // a_night)
    return "each night" if count == 1 else f"each {count:.0f} nights"


def bound(service: float, cpu: float) -> str:
    """The longer of the time at the service's pace and the CPU time, and which it is."""
    return f"{duration(max(service, cpu))} ({'the service' if service >= cpu else 'CPU'})"


def table() -> str:
    """The table, from those of the pages."""
    page, speed = (path.read_text(encoding="utf-8") for path in (PAGE, SPEED))
    usual, large = Costs.measured(page, USUAL), Costs.measured(page, LARGE)
    reached = {
        allowed: number(cells(speed, "service", case)["of what it allows"]) / 100
        for allowed, case in PACES.items()
    }
    rates = {allowed: allowed * share for allowed, share in reached.items()}
    news = usual.sweep + CHANGED * USERS

    def row(name: str, cell: Callable[[int], str]) -> list[str]:
        return [name, *map(cell, PACES)]

    def takes(requests: float) -> Callable[[int], str]:
        return lambda allowed: duration(requests / rates[allowed])

    def cores(cpu: float) -> Callable[[int], str]:
        return lambda allowed: (
            f"{duration(cpu)}, {cpu / (usual.requests / rates[allowed]):.1%} of a core"
        )

    def first_of_large(workers: int) -> Callable[[int], str]:
        return lambda allowed: bound(large.requests / rates[allowed], large.first / workers)

    rows = [
        row("requests a second that a client reaches", lambda each: f"{rates[each]:,.0f}"),
        row(f"first run, {usual.requests:,.0f} requests", takes(usual.requests)),
        row("its CPU", cores(usual.first)),
        row("its disk", lambda _: size(usual.disk)),
        row("later run, nothing changed", takes(usual.requests)),
        row("its CPU", cores(usual.unchanged)),
        row(f"later run, {CHANGED:.0%} of the users changed: all lists", takes(usual.requests)),
        row("the changed lists, if hints point to them", takes(news)),
        row("its CPU", cores(usual.changed)),
        row(
            f"first run in nights of {NIGHT // 3_600} hours",
            lambda each: nights(usual.requests, rates[each] * NIGHT),
        ),
        row(
            "the changed lists in such nights, by hints",
            lambda each: nights(news, rates[each] * NIGHT),
        ),
        row(
            "how often such a run reads the list of users again",
            lambda each: often(usual.sweep / SWEEPING, rates[each] * NIGHT),
        ),
        row(
            f"first run in nights of {BUDGET:,} requests",
            lambda each: f"{nights(usual.requests, BUDGET)} of {duration(BUDGET / rates[each])}",
        ),
        row(
            "CPU of publishing after a night, at most",
            lambda _: duration(usual.changed - usual.unchanged),
        ),
        row("first run with 99 messages of 10 KB a user, on one core", first_of_large(1)),
        row(f"the same in {SHARDS} shards on as many cores", first_of_large(SHARDS)),
        row("its disk", lambda _: size(large.disk)),
    ]
    return tables.table(["", *(f"{allowed:,} requests/s" for allowed in PACES)], rows)


def main() -> int:
    """Prints, and compares or writes; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    write = parser.parse_args().write
    text = table()
    print(text, end="")
    [before] = tables.between(NAME).findall(PAGE.read_text(encoding="utf-8"))
    if write:
        tables.write(PAGE, {NAME: text})
    elif before != text:
        print(f"{PAGE.name}: run {Path(__file__).name} --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
