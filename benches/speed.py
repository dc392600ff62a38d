"""How fast backread reads, next to others, from one fixed responder.

Usage: ``python benches/speed.py [--only NAME,NAME] [--rounds N] [--write]``; `make bench-speed` does
it all. A name is that of a table (read, get, gather, rows, mirror, import) or of a program (arrow,
wreq, ...; an unknown one lists them all). What stands in one table takes turns, so that the
machine's mood falls on each; figures are medians, and ratios are medians of those of each round.
``--write`` puts the tables into docs/speed.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence

import import_and_size
import tables
from speed_programs import (
    GROWING,
    HERE,
    PROGRAMS,
    PYTHONS,
    SCRIPTS,
    Measurement,
    Program,
    Responders,
    in_turns,
)

PAGE = HERE.parent / "docs" / "speed.md"
WHEELS = HERE.parent / "target" / "wheels"
ROUNDS = {"read": 5, "get": 5, "gather": 5, "rows": 3, "mirror": 3, "import": 15}
IMPORTED = ("wreq", "pyreqwest", "primp", "msgspec", "httpx", "requests", "aiohttp")
NOT_MEASURED = "–"

Measured = dict[str, list[Measurement]]


# --- figures --------------------------------------------------------------------------------------


def rate(one: Measurement) -> float:
    """Rows a second."""
    return one["rows"] / one["seconds"]


def cpu_a_million(one: Measurement) -> float:
    """CPU seconds for a million rows."""
    return one["cpu"] / one["rows"] * 1e6


def field(name: str) -> Callable[[Measurement], float]:
    """A figure as the program printed it."""
    return lambda one: one[name]


Figure = Callable[[Measurement], float]


def median(measured: Measured, key: str, figure: Figure) -> float:
    """The median over the rounds."""
    return statistics.median(map(figure, measured[key]))


def ratio(measured: Measured, key: str, other: str, figure: Figure) -> float | None:
    """The median of the ratios in each round; None where one of them was not measured."""
    if not measured.get(key) or not measured.get(other):
        return None
    pairs = zip(measured[key], measured[other], strict=True)
    return statistics.median(figure(one) / figure(base) for one, base in pairs)


def shown(value: float | None) -> str:
    """A number with the digits that mean something."""
    if value is None:
        return NOT_MEASURED
    if abs(value) >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


# --- one table each -------------------------------------------------------------------------------


def read_rows(measured: Measured, programs: Sequence[Program]) -> list[list[str]]:
    """Who reads the messages how fast."""
    return [
        [
            program.name,
            f"{median(measured, program.key, field('rows')):,.0f}",
            shown(median(measured, program.key, rate)),
            shown(ratio(measured, program.key, "wreq", rate)),
            shown(ratio(measured, program.key, "discard", rate)),
            shown(median(measured, program.key, cpu_a_million)),
            shown(median(measured, program.key, field("peak_mb"))),
        ]
        for program in programs
    ]


def get_rows(measured: Measured, programs: Sequence[Program]) -> list[list[str]]:
    """How long one call takes."""
    return [
        [
            program.name,
            shown(median(measured, program.key, field("p50"))),
            shown(ratio(measured, "get-backread", program.key, field("p50"))),
            shown(median(measured, program.key, field("cpu"))),
        ]
        for program in programs
    ]


def gather_rows(measured: Measured, programs: Sequence[Program]) -> list[list[str]]:
    """How many calls are made a second."""
    return [
        [
            program.name,
            shown(median(measured, program.key, field("calls_a_second"))),
            shown(ratio(measured, program.key, "gather-wreq", field("calls_a_second"))),
            shown(median(measured, program.key, field("cpu"))),
        ]
        for program in programs
    ]


def growing_rows(measured: Measured, programs: Sequence[Program]) -> list[list[str]]:
    """What ten times the rows take."""
    before = dict(zip(programs[1:], programs, strict=False))
    return [
        [
            program.name,
            shown(median(measured, program.key, field("seconds"))),
            shown(ratio(measured, program.key, before[program].key, field("seconds")))
            if program in before
            else NOT_MEASURED,
            shown(median(measured, program.key, field("cpu"))),
            shown(median(measured, program.key, field("first_mb"))),
            shown(median(measured, program.key, field("last_mb"))),
            shown(median(measured, program.key, field("peak_mb"))),
        ]
        for program in programs
    ]


def mirror_rows(measured: Measured, programs: Sequence[Program]) -> list[list[str]]:
    """Who lands the messages how fast."""
    return [
        [
            program.name,
            f"{median(measured, program.key, field('rows')):,.0f}",
            shown(median(measured, program.key, rate)),
            shown(ratio(measured, program.key, "mirror-dlt", rate)),
            shown(median(measured, program.key, cpu_a_million)),
            shown(median(measured, program.key, field("peak_mb"))),
        ]
        for program in programs
    ]


SECTIONS: dict[str, tuple[Sequence[str], Callable[[Measured, Sequence[Program]], list[list[str]]]]]
SECTIONS = {
    "read": (
        (
            "what reads",
            "rows",
            "rows/s",
            "× wreq + msgspec",
            "× fetch and discard",
            "CPU s a million rows",
            "peak MB",
        ),
        read_rows,
    ),
    "get": (("what calls", "p50 µs", "backread's p50 by it", "CPU µs a call"), get_rows),
    "gather": (("what calls", "calls/s", "× wreq", "CPU µs a call"), gather_rows),
    "rows": (
        (
            "rows streamed",
            "seconds",
            "× a tenth of the rows",
            "CPU s",
            "MB in the first tenth",
            "MB in the last tenth",
            "peak MB",
        ),
        growing_rows,
    ),
    "mirror": (
        (
            "what lands them",
            "messages",
            "messages/s",
            "× dlt",
            "CPU s a million messages",
            "peak MB",
        ),
        mirror_rows,
    ),
}
IMPORT = ("import", "ms")


# --- goals ----------------------------------------------------------------------------------------


def goals(measured: Measured) -> None:
    """Prints the goals of what was measured, and which of them are missed."""
    calls = [f"get-{peer}" for peer in ("wreq", "primp", "pyreqwest")]
    p50 = field("p50")
    best = min(
        (key for key in calls if measured.get(key)),
        key=lambda key: median(measured, key, p50),
        default=calls[0],
    )
    largest, middle, smallest = (f"rows-{service.rows}" for service in reversed(GROWING))
    flat = None
    if measured.get(largest):
        flat = statistics.median(one["last_mb"] / one["first_mb"] for one in measured[largest])
    peak = median(measured, largest, field("peak_mb")) if measured.get(largest) else None
    kept = [
        ("arrow, rows/s by wreq + msgspec", ratio(measured, "arrow", "wreq", rate), ">=", 4),
        (
            "arrow, CPU by wreq + msgspec",
            ratio(measured, "arrow", "wreq", cpu_a_million),
            "<=",
            0.3,
        ),
        (
            "arrow, rows/s by aiohttp + pyarrow",
            ratio(measured, "arrow", "aiohttp-table", rate),
            ">=",
            14,
        ),
        (
            "arrow, rows/s by fetch and discard",
            ratio(measured, "arrow", "discard", rate),
            ">=",
            0.35,
        ),
        (
            "dataclasses, rows/s by wreq + msgspec",
            ratio(measured, "dataclasses", "wreq", rate),
            ">=",
            1.5,
        ),
        (
            "dicts, rows/s by aiohttp + orjson",
            ratio(measured, "dicts", "aiohttp-dicts", rate),
            ">=",
            2,
        ),
        (f"get, p50 by {best}", ratio(measured, "get-backread", best, p50), "<=", 1),
        (
            "64 gets at once, calls/s by wreq",
            ratio(measured, "gather-backread", "gather-wreq", field("calls_a_second")),
            ">=",
            1,
        ),
        ("5,000,000 rows streamed, peak MB", peak, "<=", 120),
        ("the same, last tenth's MB by the first's", flat, "<=", 1.1),
        (
            "500,000 rows by 50,000, time",
            ratio(measured, middle, smallest, field("seconds")),
            "<=",
            10.5,
        ),
        (
            "5,000,000 rows by 500,000, time",
            ratio(measured, largest, middle, field("seconds")),
            "<=",
            10.5,
        ),
        ("the same, peak memory", ratio(measured, largest, middle, field("peak_mb")), "<=", 1.1),
        ("mirror, messages/s by dlt", ratio(measured, "mirror", "mirror-dlt", rate), ">=", 60),
        (
            "mirror of 500,000, messages/s by dlt",
            ratio(measured, "mirror-whole", "mirror-dlt", rate),
            ">=",
            60,
        ),
    ]
    for name, value, sense, bound in kept:
        if value is not None:
            reached = value >= bound if sense == ">=" else value <= bound
            line = f"{name:44} {shown(value):>8}   goal {sense} {bound}"
            print(f"{line}{'' if reached else '   MISSED'}")


# --- the run --------------------------------------------------------------------------------------


def wanted(only: str) -> list[Program]:
    """The programs that are named, or whose table is; all if none is named."""
    names = [name for name in only.split(",") if name]
    known = {program.key for program in PROGRAMS} | {*SECTIONS, "import"}
    if unknown := [name for name in names if name not in known]:
        listed = ", ".join(program.key for program in PROGRAMS)
        raise SystemExit(
            f"no such name: {', '.join(unknown)}\ntables: {', '.join(ROUNDS)}\nprograms: {listed}"
        )
    return [p for p in PROGRAMS if not names or p.key in names or p.section in names]


def imports(rounds: int) -> str:
    """What an import costs, in milliseconds over a bare interpreter, and the wheel's size."""
    programs = [(str(PYTHONS["ours"]), code) for code in import_and_size.IMPORTS]
    programs += [(str(PYTHONS["peers"]), f"import {name}") for name in IMPORTED]
    costs = import_and_size.import_costs(programs, rounds)
    rows = [[f"`{code}`", shown(cost)] for (_, code), cost in costs.items()]
    rows += [
        [f"the wheel, {wheel.stat().st_size / 1e6:.2f} MB", NOT_MEASURED]
        for wheel in WHEELS.glob("*.whl")
    ]
    return tables.table(IMPORT, rows)


def setting() -> str:
    """What the figures were measured with, from the pins."""
    pins = (SCRIPTS / "peers.txt").read_text(encoding="utf-8").split()
    for peer in ("dlt", "airbyte"):
        pins += (HERE / "peers" / "mirror" / f"{peer}.txt").read_text(encoding="utf-8").split()
    versions = ", ".join(" ".join(pin.split("==")) for pin in pins)
    machine = f"{os.cpu_count()} cores, {platform.system()}, CPython {platform.python_version()}"
    return f"{machine}; {versions}.\n"


def main() -> None:
    """Measures what is wished, prints the tables and the goals, and writes the tables if wished."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="NAME,NAME")
    parser.add_argument("--rounds", type=int, metavar="N")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    programs = wanted(options.only)
    sections = [name for name in SECTIONS if any(p.section == name for p in programs)]
    if options.write:
        whole = [p for p in PROGRAMS if p.section in sections]
        if len(whole) > len(programs):
            raise SystemExit("--write needs whole tables: name tables with --only, not programs")
        tables.expect_places(PAGE, ["setting", *SECTIONS, "import"])
    began = time.monotonic()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n", flush=True)
    measured: Measured = {}
    contents: dict[str, str] = {"setting": setting()}
    with Responders() as responders:
        for name in sections:
            columns, rows = SECTIONS[name]
            chosen = [program for program in programs if program.section == name]
            measured |= in_turns(chosen, options.rounds or ROUNDS[name], responders)
            contents[name] = tables.table(columns, rows(measured, chosen))
            print(contents[name], flush=True)
    if not options.only or "import" in options.only.split(","):
        contents["import"] = imports(options.rounds or ROUNDS["import"])
        print(contents["import"], flush=True)
    goals(measured)
    print(f"\n{time.monotonic() - began:.0f} seconds")
    if options.write:
        tables.write(PAGE, contents)


if __name__ == "__main__":
    main()
