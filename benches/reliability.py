"""What a user of backread sees where things go wrong, next to others.

Usage: ``python benches/reliability.py [--only KEY,KEY] [--write]``; `make bench-reliability` has
all it needs. Each library runs in a process of its own for each case, against a server on loopback
that misbehaves; what is seen becomes a few words. ``--only`` names cases, groups or libraries.
``--write`` puts the tables into docs/compared/reliability.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import tables
from reliability_cases import CASES, GROUPS
from reliability_runs import HERE, LIBRARIES, Case, run

PAGE = HERE.parent / "docs/compared/reliability.md"
PINS = HERE / "peers" / "reliability" / "peers.txt"
SIDE_BY_SIDE = 5


def setting() -> str:
    """The machine, and the versions of what was measured."""
    pins = PINS.read_text(encoding="utf-8").split()
    versions = ", ".join(" ".join(pin.split("==")) for pin in pins)
    machine = f"{os.cpu_count()} cores, {platform.system()}, CPython {platform.python_version()}"
    return f"- Machine: {machine}.\n- Versions: {versions}.\n"


def words(case: Case, library: str) -> str:
    """What a library does in a case; where it is not always the same, how often it does what."""
    seen = Counter(case.words(run(case, library)) for _ in range(case.times)).most_common()
    if len(seen) == 1:
        return seen[0][0]
    return "; ".join(f"{count} of {case.times}: {each}" for each, count in seen)


def measure(cases: Sequence[Case], libraries: Sequence[str]) -> dict[str, list[str]]:
    """The cells of each case, by its key."""
    cells: dict[str, list[str]] = {}
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for case in cases:
            case.prepare()
            one_by_one = [case] * len(libraries)
            each = map if case.alone else pool.map
            cells[case.key] = list(each(words, one_by_one, libraries))
            for library, cell in zip(libraries, cells[case.key], strict=True):
                print(f"{case.key:16} {library:10} {cell}", flush=True)
    return cells


def header(libraries: Sequence[str] = LIBRARIES) -> list[str]:
    """The columns of a table."""
    return ["fault", *libraries]


def rows(cases: Sequence[Case], cells: dict[str, list[str]]) -> list[list[str]]:
    """The lines of a table."""
    return [[case.name, *cells[case.key]] for case in cases if case.key in cells]


def main() -> None:
    """Measures what is wished, and writes the tables if wished."""
    parser = argparse.ArgumentParser(description="What is seen where things go wrong.")
    parser.add_argument("--only", default="", metavar="KEY,KEY", help="cases, groups, libraries")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/")
    options = parser.parse_args()
    only = {name for name in options.only.split(",") if name}
    if unknown := only - {*GROUPS, *LIBRARIES, *(case.key for case in CASES)}:
        parser.error(f"no such name: {', '.join(unknown)}")
    if options.write:
        if only:
            parser.error("--write needs all: leave --only out")
        tables.expect_places(PAGE, ["setting", *GROUPS])
    libraries = [each for each in LIBRARIES if each in only] or list(LIBRARIES)
    named = only - {*LIBRARIES}
    began = time.monotonic()
    contents = {"setting": setting()}
    for group, cases in GROUPS.items():
        chosen = [case for case in cases if not named or {group, case.key} & named]
        if chosen:
            cells = measure(chosen, libraries)
            contents[group] = tables.table(header(libraries), rows(chosen, cells))
            print(f"\n{contents[group]}", flush=True)
    print(f"{time.monotonic() - began:.0f} seconds")
    if options.write:
        tables.write(PAGE, contents)


if __name__ == "__main__":
    main()
