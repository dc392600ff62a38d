"""Writes the comparison in README.md from the tables that the benches put into docs/compared/.

`--write` brings README.md up to date; without it, exits with 1 if it is not.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
LOSSES = ROOT / "docs/compared/mirror-peers.md"
SPEED = ROOT / "docs/compared/speed.md"

HEADER = (
    "what reads",
    "rows lost to deletes",
    "rows/s into Python",
    "rows/s into tables",
    "requests, unchanged re-run",
    "changes a re-run missed",
)

Table = dict[str, dict[str, str]]
"""Rows by their first cell (of two that are alike, the first), then cells by the column's name."""


def between(name: str) -> re.Pattern[str]:
    """What stands between the two markers of that name, as in benches/tables.py."""
    return re.compile(rf"(?<=<!-- {name} -->\n\n).*?(?=\n<!-- end of {name} -->)", re.DOTALL)


def table(page: Path, name: str) -> Table:
    """A table that a bench wrote."""
    found = between(name).search(page.read_text(encoding="utf-8"))
    if found is None:
        raise LookupError(f"{page} has no table {name!r}")
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in found[0].splitlines()]
    header, _, *rows = lines
    found_rows: Table = {}
    for name, *cells in rows:
        found_rows.setdefault(name, dict(zip(header[1:], cells, strict=True)))
    return found_rows


def fastest_by_hand(read: Table) -> str:
    """The fastest HTTP client and JSON parser that a loop in Python was written with."""
    clients = [name for name in read if " + " in name and "(Rust)" not in name]
    return max(clients, key=lambda name: int(read[name]["rows/s"].replace(",", "")))


def lost(cell: str) -> str:
    """The sum of "12 users, 360 messages"; what is "as above" stays so."""
    numbers = [int(each.replace(",", "")) for each in re.findall(r"[\d,]*\d", cell)]
    return f"{sum(numbers):,}" if numbers else cell


def comparison() -> str:
    """The table, from the pages' tables."""
    counts, read, landed = table(LOSSES, "counts"), table(SPEED, "read"), table(SPEED, "mirror")

    def row(name: str, of: str, into_python: str = "", into_tables: str = "") -> list[str]:
        counted = counts[of]
        return [
            name,
            lost(counted["rows lost to deletes"]),
            into_python,
            into_tables,
            counted["requests, unchanged re-run"],
            counted["changes a re-run missed"],
        ]

    def into_python(name: str) -> str:
        return read[name]["rows/s"]

    def into_tables(start: str) -> str:
        """Of the smallest number of rows, which all were measured with."""
        return next(cells["rows/s"] for name, cells in landed.items() if name.startswith(start))

    loop = next(name for name in read if name.startswith("requests,"))
    by_hand = fastest_by_hand(read)
    rows = [
        row("a plain loop, by requests", "a plain loop", into_python(loop)),
        row(f"the same loop, by {by_hand}", "a plain loop", into_python(by_hand)),
        row("dlt", "dlt", into_tables=into_tables("dlt")),
        row("dlt, by `updated_at`", "dlt, by `updated_at`"),
        row("Airbyte's CDK", "Airbyte", into_tables=into_tables("Airbyte")),
        row("Airbyte's CDK, by `updated_at`", "Airbyte, by `updated_at`"),
        row(
            "**backread**",
            "backread",
            into_python("**backread**, `client.messages.all().to_list()`"),
            into_tables("**backread**"),
        ),
    ]
    lines = [HEADER, ["---", *["--:"] * (len(HEADER) - 1)], *rows]
    return "".join(f"| {' | '.join(cell or '–' for cell in line)} |\n" for line in lines)


def main() -> int:
    """Compares or writes; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    before = README.read_text(encoding="utf-8")
    after, places = between("comparison").subn(lambda _: comparison(), before)
    if places != 1:
        raise LookupError(f"{README} needs the markers of 'comparison' once, and has {places}")
    if after == before:
        return 0
    if write:
        README.write_text(after, encoding="utf-8")
        return 0
    print("README.md: run tools/readme_table.py --write", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
