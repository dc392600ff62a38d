"""docs/compared/reliability.md names tests that exist, and has its script's tables.

What was seen is not compared: it is of the run that wrote it.
"""

import re
import sys
from typing import Any

import pytest

from documents import ROOT, TEST, Measured

RELIABILITY = Measured("compared/reliability.md", "reliability")
script = RELIABILITY.fixture()
SHOWN = "\\| fault \\| what you see \\| shown by \\|\n.*?\n((?:\\|.*\n)+)"
GROUPS = ("processes", "ends", "size", "answers", "secrets", "logging")


def cells(text: str) -> list[list[str]]:
    """The lines of a table."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]


# The last table is of backread alone: there is nothing to measure others by.
ROWS = dict(zip((*GROUPS, "slips"), map(cells, re.findall(SHOWN, RELIABILITY.page)), strict=True))
FAULTS = [row for rows in ROWS.values() for row in rows]


def test_a_fault_stands_in_one_row():
    faults = [row[0] for row in FAULTS]
    assert len({*faults}) == len(faults) > 60


@pytest.mark.parametrize("row", FAULTS, ids=lambda row: row[0])
def test_each_fault_has_an_outcome_and_a_test_that_exists(row):
    fault, outcome, shown = row
    assert fault
    assert outcome
    files = re.findall(r"`(test_\w+\.py)::(test_\w+)`", shown)
    assert files
    assert ", ".join(f"`{file}::{name}`" for file, name in files) == shown
    for file, name in files:
        assert name in TEST.findall((ROOT / "tests" / file).read_text(encoding="utf-8")), name


@pytest.mark.parametrize("group", GROUPS)
def test_each_measured_fault_has_its_row_and_each_cell_its_words(script, group):
    names = [case.name for case in script.GROUPS[group]]
    RELIABILITY.check_table(script, group, script.header(), names)
    assert {*names} <= {row[0] for row in ROWS[group]}


def test_all_groups_are_measured(script):
    assert tuple(script.GROUPS) == GROUPS


def test_the_versions_are_those_that_are_installed(script):
    RELIABILITY.check_versions(script)


def test_words_say_what_was_seen(script):
    words = sys.modules["reliability_words"]
    runs, servers = sys.modules["reliability_runs"], sys.modules["reliability_servers"]
    request = servers.Request("GET / HTTP/1.1\r\nAuthorization: Bearer " + runs.SECRET, 0.0)
    late = servers.Request("GET / HTTP/1.1", 2.0)

    def seen(outcome: dict[str, object], **more: Any) -> Any:
        nothing = {"exit_code": 0, "stderr": "", "ended_at": 0.0, "connections": 1}
        told = {"seconds": 0.1, "mb": 70.0, **outcome}
        return runs.Seen(told, **nothing | {"requests": [request], "elsewhere": []} | more)

    value = {"kind": "value", "is_user": True}
    failed = {"kind": "error", "error": "Broken"}
    twice = {"requests": [request, late]}
    assert words.plain(seen(value)) == "value"
    assert words.timed(seen({**value, "seconds": 2.1}, **twice)) == "retried, value after 2 s"
    assert words.plain(seen(failed, **twice)) == "`Broken` after 2 requests"
    assert words.timed(seen({"kind": "hangs", "seconds": 10.0})) == "hangs for 10 s"
    assert words.plain(seen({"kind": "nothing"}, exit_code=-6)) == "the process dies: signal 6"
    assert words.memory(seen({"kind": "hangs", "mb": 3_100.0})) == "hangs, 3 GB"
    assert words.waited(seen(value, **twice)) == "waits 2 s, value"
    assert words.away(seen(value, elsewhere=[request])) == "followed, the secret is sent along"
    assert words.away(seen(value, elsewhere=[late])) == "followed, the secret is held back"
    assert words.away(seen(failed)) == "refused: `Broken`"
    assert words.both(seen({"kind": "both", "child": failed, "parent": value})) == (
        "child: `Broken`; parent: value"
    )
