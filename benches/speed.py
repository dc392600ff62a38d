"""How fast backread reads, next to others, from one fixed responder.

Usage: ``python benches/speed.py [--only NAME,NAME] [--rounds N] [--before PYTHON] [--write]``;
`make bench-speed` has all it needs. A name is that of a table (read, kinds, get, rows,
mirror, import), of a kind of rows (escaped, lists-1, ...), of a program (arrow, wreq, ...; an
unknown name lists them all), or of a program with a kind (escaped/arrow). The programs of a table,
or of a kind of rows, take turns, so that the machine's mood falls on each. The interpreter after
``--before`` has an earlier backread, whose turns come beside those of this one. Figures are
medians, and ratios are medians of those of each round. ``--write`` puts the tables into
docs/compared/speed.md; that of goals needs a run of everything.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import timeit
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import import_and_size
import tables
from speed_figures import Measured, lines, shown
from speed_goals import GOALS, before_lines, goal_lines, kind_lines
from speed_programs import HERE, KINDS, PROGRAMS, PYTHONS, SCRIPTS, Program
from speed_runs import Responders, in_turns

PAGE = HERE.parent / "docs/compared/speed.md"
WHEELS = HERE.parent / "target" / "optimised-wheels"
ROUNDS = {"read": 5, "kinds": 3, "get": 5, "rows": 3, "mirror": 3, "import": 15}
PLACES = ("setting", "read", "get", "mirror")
"""The tables of the page. All others are only printed."""
ON_PAGE = {
    *("discard", "arrow-json", "batches", "arrow", "dataclasses", "dicts"),
    *(
        "wreq-untracked",
        "wreq-dicts",
        "wreq-dicts-uncollected",
        "aiohttp-table",
        "requests",
        "httpx",
    ),
    *("get-backread", "get-primp", "get-wreq", "get-http_client", "get-httpx", "get-requests"),
    *("mirror-backread", "mirror-backread-whole", "mirror-backread-2000", "mirror-backread-again"),
    *("mirror-airbyte", "mirror-dlt"),
}
"""The programs that the tables of the page show."""
IMPORTED = ("wreq", "pyreqwest", "primp", "msgspec", "httpx", "requests", "aiohttp")


def named(only: Sequence[str]) -> list[Program]:
    """The programs with these names, tables or kinds of rows; all if no name is given."""
    unknown = {*only} - {*ROUNDS} - {*KINDS} - {program.key for program in PROGRAMS}
    if unknown:
        listed = ", ".join(program.key for program in PROGRAMS)
        raise SystemExit(
            f"no such name: {', '.join(unknown)}\ntables: {', '.join(ROUNDS)}\n"
            f"kinds: {', '.join(KINDS)}\nprograms: {listed}"
        )
    return [
        each
        for each in PROGRAMS
        if not only or {each.section, each.key, each.key.partition("/")[0]} & {*only}
    ]


def before(program: Program) -> list[Program]:
    """The same program with the earlier backread, if it has one."""
    if program.python != "ours":
        return []
    return [replace(program, key=f"{program.key}-before", name="the same, before", python="before")]


def imports(rounds: int) -> tuple[str, Measured]:
    """What imports cost over a bare interpreter: the table, and what the goals ask for."""
    programs = [(str(PYTHONS["ours"]), code) for code in import_and_size.IMPORTS]
    programs += [(str(PYTHONS["peers"]), f"import {name}") for name in IMPORTED]
    costs = import_and_size.import_costs(programs, rounds)
    rows = [[f"`{code}`", shown(cost)] for (_, code), cost in costs.items()]
    cost = costs[str(PYTHONS["ours"]), import_and_size.CLIENT]
    return tables.table(("what is imported", "ms"), rows), {"import": [{"ms": cost}]}


def wheel_megabytes() -> float | None:
    """The size of the wheel that was built last, if one was."""
    sizes = [wheel.stat().st_size for wheel in WHEELS.glob("backread-*.whl")]
    return max(sizes) / 1e6 if sizes else None


def setting() -> str:
    """The machine, and the versions of what was measured."""
    pins = (SCRIPTS / "peers.txt").read_text(encoding="utf-8").split()
    for peer in ("dlt", "airbyte"):
        pins += (HERE / "peers" / "mirror" / f"{peer}.txt").read_text(encoding="utf-8").split()
    versions = ", ".join(" ".join(pin.split("==")) for pin in dict.fromkeys(pins))
    machine = f"{os.cpu_count()} cores, {platform.system()}, CPython {platform.python_version()}"
    wheel = f"{shown(wheel_megabytes())} MB"
    # A virtual machine may be several times as slow in one hour as in another.
    additions = min(timeit.repeat("x += 1", "x = 0", number=10_000_000))
    machine += f"; ten million additions in it took {shown(additions)} s"
    return f"- Machine: {machine}.\n- Versions: {versions}.\n- backread's wheel: {wheel}.\n"


def parts(programs: Sequence[Program]) -> dict[str, list[Program]]:
    """What takes turns, by what is printed above it: a table's programs, or those of one kind."""
    parts: dict[str, list[Program]] = {}
    for program in programs:
        kind = program.key.partition("/")[0] if program.section == "kinds" else ""
        parts.setdefault(kind or program.section, []).append(program)
    return parts


def measure(
    programs: Sequence[Program], rounds: int | None, measured: Measured, contents: dict[str, str]
) -> None:
    """Measures the programs, prints their tables, and adds them to the contents."""
    with Responders() as responders:
        for name, chosen in parts(programs).items():
            section = chosen[0].section
            measured |= in_turns(chosen, rounds or ROUNDS[section], responders)
            header, *rows = lines(section, measured, chosen)
            print(f"{name}:\n{tables.table(header, rows)}", flush=True)
            on_page = [
                row for program, row in zip(chosen, rows, strict=True) if program.key in ON_PAGE
            ]
            contents[name] = tables.table(header, on_page)
    if any(program.section == "kinds" for program in programs):
        header, *rows = kind_lines(measured)
        contents["kinds"] = tables.table(header, rows)
        print(contents["kinds"], flush=True)


def main() -> None:
    """Measures what is wished, and writes the tables if wished."""
    parser = argparse.ArgumentParser(description="How fast backread reads, next to others.")
    parser.add_argument("--only", default="", metavar="NAME,NAME", help="tables or programs")
    parser.add_argument("--rounds", type=int, metavar="N", help="how often each takes its turn")
    parser.add_argument(
        "--write", action="store_true", help="put the tables into docs/compared/speed.md"
    )
    parser.add_argument(
        "--before", type=Path, metavar="PYTHON", help="an interpreter with an earlier backread"
    )
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    programs = named(only)
    if options.before:
        PYTHONS["before"] = options.before.absolute()
        programs = [each for program in programs for each in (program, *before(program))]
    if options.write:
        if {*only} - {*ROUNDS}:
            parser.error("--write needs whole tables: name no program with --only")
        tables.expect_places(PAGE, PLACES)
    began = time.monotonic()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n", flush=True)
    contents = {"setting": setting()}
    megabytes = wheel_megabytes()
    measured: Measured = {} if megabytes is None else {"wheel": [{"mb": megabytes}]}
    if not only or "import" in only:
        contents["import"], cost = imports(options.rounds or ROUNDS["import"])
        measured |= cost
        print(contents["import"], flush=True)
    try:
        measure(programs, options.rounds, measured, contents)
        if not only:
            header, *rows = goal_lines(measured)
            contents["goals"] = tables.table(header, rows)
            print(contents["goals"], flush=True)
    finally:
        # Where a program fails after an hour, the tables before it are kept.
        if options.write:
            tables.write(PAGE, {name: contents[name] for name in PLACES if name in contents})
        print(*filter(None, (goal.line(measured) for goal in GOALS)), sep="\n")
        print(*before_lines(measured), sep="\n")
        print(f"\n{time.monotonic() - began:.0f} seconds")


if __name__ == "__main__":
    main()
