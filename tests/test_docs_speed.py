"""docs/speed.md has the tables of the script that measures them, and says what the script does.

The figures are not compared: they are of the run that wrote them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from documents import IN_CHECKOUT, ROOT, bench

if not IN_CHECKOUT:
    pytest.skip("the wheel check takes no benches along", allow_module_level=True)

PAGE = (ROOT / "docs/speed.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    with bench("speed") as module:
        yield module


def cells(script: ModuleType, name: str) -> list[list[str]]:
    """The lines of a table, the one below its header left out."""
    [text] = script.tables.between(name).findall(PAGE)
    lines = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in text.splitlines()]
    return [lines[0], *lines[2:]]


@pytest.mark.parametrize("name", ["read", "get", "gather", "rows", "mirror"])
def test_rows_and_columns_are_those_of_the_script(script: ModuleType, name: str) -> None:
    programs = [program for program in script.PROGRAMS if program.section == name]
    columns, *rows = cells(script, name)
    assert columns == script.lines(name, {}, [])[0]
    assert [row[0] for row in rows] == [program.name for program in programs]
    assert all(len(row) == len(columns) and all(row) for row in rows)


def test_each_measured_import_has_its_line(script: ModuleType) -> None:
    _, *rows = cells(script, "import")
    codes = [*script.import_and_size.IMPORTS, *(f"import {name}" for name in script.IMPORTED)]
    assert [row[0] for row in rows] == [f"`{code}`" for code in codes]


def test_the_versions_are_those_that_are_installed(script: ModuleType) -> None:
    [setting] = script.tables.between("setting").findall(PAGE)
    [versions] = re.findall("(?<=Versions: ).*(?=\\.$)", setting, re.MULTILINE)
    [expected] = re.findall("(?<=Versions: ).*(?=\\.$)", script.setting(), re.MULTILINE)
    assert versions == expected


def test_the_service_is_the_one_described(script: ModuleType) -> None:
    programs = {program.key: program for program in script.PROGRAMS}
    users, rows = programs["arrow"].service.users, programs["arrow"].rows
    assert f"{users:,} users with {rows // users} messages each" in TEXT
    readers = [program for program in programs.values() if program.section == "read"]
    few = {program.key: program.users for program in readers if program.rows < rows}
    assert few == {"requests": 200, "httpx": 200}
    assert "The two slowest read 200 of the users" in TEXT


def test_every_goal_is_about_what_is_measured(script: ModuleType) -> None:
    keys = {program.key for program in script.PROGRAMS} | {"import", "wheel"}
    for goal in script.GOALS:
        assert {goal.key, goal.other or goal.key} <= keys, goal.name


def test_a_figure_is_the_median_and_a_ratio_the_median_of_ratios(script: ModuleType) -> None:
    def took(*seconds: float) -> list[dict[str, float]]:
        return [{"rows": 600, "seconds": each} for each in seconds]

    figures = sys.modules[script.lines.__module__]
    measured = {"arrow": took(1, 2, 6), "wreq": took(4, 4, 60)}
    assert figures.figure_of(measured, "arrow", figures.rate, None) == 300
    assert figures.figure_of(measured, "arrow", figures.rate, "wreq") == 4
    assert figures.figure_of(measured, "arrow", figures.rate, "discard") is None


def test_a_name_that_is_none_is_refused(script: ModuleType) -> None:
    with pytest.raises(SystemExit, match="no such name: nobody"):
        script.named(["nobody"])
    assert [program.key for program in script.named(["wreq"])] == ["wreq"]
    assert {program.section for program in script.named(["get", "rows"])} == {"get", "rows"}
