"""docs/compared/speed.md has its script's tables, and says what the script does.

The figures are not compared: they are of the run that wrote them.
"""

import sys

import pytest

from documents import Measured

SPEED = Measured("compared/speed.md", "speed")
script = SPEED.fixture()


@pytest.mark.parametrize("name", ["read", "get", "gather", "rows", "mirror"])
def test_rows_and_columns_are_those_of_the_script(script, name):
    programs = [program.name for program in script.PROGRAMS if program.section == name]
    SPEED.check_table(script, name, script.lines(name, {}, [])[0], programs)


def test_each_kind_of_rows_has_its_line_and_is_described(script):
    header, *lines = script.kind_lines({})
    SPEED.check_table(script, "kinds", header, [line[0] for line in lines])
    assert SPEED.cells(script, "kinds")[-1] == lines[-1]
    for name, kind in script.KINDS.items():
        assert f"`{name}`" in SPEED.text
        if name.startswith("lists-"):
            assert name == f"lists-{kind.messages}"
    one, hundred, thousands = (f"{script.KINDS[f'lists-{n}'].users:,}" for n in (1, 100, 5000))
    assert f"`lists-1` has {one} users" in SPEED.text
    assert f"`lists-100` has {hundred} users, and `lists-5000` has {thousands}." in SPEED.text
    assert f"bodies of 4 KB, in {script.KINDS['long'].users} users" in SPEED.text


def test_readers_of_a_kind_are_told_its_numbers(script):
    programs = {program.key: program for program in script.PROGRAMS}
    assert programs["lists-100/discard"].arguments == ("5000", "100", "1000001")
    assert programs["escaped-words/discard"].arguments == ("2000", "250", "1")
    assert programs["lists-1/wreq-untracked"].arguments == ("100000", "untracked")
    assert programs["long/arrow"].rows == 320 * 250


def test_peers_that_are_ahead_are_named(script):
    header, *_ = script.win_lines({})
    columns, *lines = SPEED.cells(script, "ahead")
    assert columns == header
    assert lines


def test_a_peer_that_is_ahead_is_found(script):
    def took(rows: float, seconds: float, cpu: float) -> list[dict[str, float]]:
        return [{"rows": rows, "seconds": seconds, "cpu": cpu, "peak_mb": 1}]

    measured = {
        "dicts": took(600, 2, 1),
        "wreq-dicts": took(600, 1, 2),
        "wreq-dicts-frozen": took(600, 0.5, 0.5),
    }
    _, *lines = script.win_lines(measured)
    name = "wreq + orjson dicts, `gc.freeze()`"
    assert lines == [["dicts, read", name, "rows/s", "4.00"], ["dicts, read", name, "CPU", "0.50"]]


def test_each_measured_import_has_its_line(script):
    _, *rows = SPEED.cells(script, "import")
    codes = [*script.import_and_size.IMPORTS, *(f"import {name}" for name in script.IMPORTED)]
    assert [row[0] for row in rows] == [f"`{code}`" for code in codes]


def test_the_versions_are_those_that_are_installed(script):
    SPEED.check_versions(script)


def test_the_service_is_the_one_described(script):
    programs = {program.key: program for program in script.PROGRAMS}
    users, rows = programs["arrow"].service.users, programs["arrow"].rows
    assert f"{users:,} users with {rows // users} messages each" in SPEED.text
    readers = [program for program in programs.values() if program.section == "read"]
    few = {program.key: program.users for program in readers if program.rows < rows}
    assert few == {"requests": 200, "httpx": 200}
    assert "The two slowest read 200 of the users" in SPEED.text


def test_every_goal_is_about_what_is_measured(script):
    keys = {program.key for program in script.PROGRAMS} | {"import", "wheel"}
    for goal in script.GOALS:
        assert {goal.key, *goal.others} <= keys, goal.name


def test_a_goal_is_reached_by_the_hardest_peer(script):
    [goal] = [each for each in script.GOALS if each.name.startswith("users.get")]
    measured = {
        key: [{"p50": p50}] for key, p50 in zip(goal.others, (100, 50, 200, 100), strict=True)
    }
    lines = [goal.line({**measured, "get-backread": [{"p50": p50}]}) for p50 in (45, 50)]
    assert lines == [
        "goal: users.get, p50 by the best <= 0.95: reached 0.90 by get-primp (met)",
        "goal: users.get, p50 by the best <= 0.95: reached 1.00 by get-primp (missed)",
    ]
    assert goal.line({"get-backread": [{"p50": 1}], "get-primp": [{"p50": 1}]}) is None


def test_the_requests_of_an_unchanged_sync_do_not_count(script):
    [goal] = [each for each in script.GOALS if each.name.startswith("unchanged sync")]
    rows = {"rows": 500_000}
    measured = {goal.key: [{**rows, "cpu": 0.9}], goal.others[0]: [{**rows, "cpu": 0.5}]}
    assert goal.line(measured) == f"goal: {goal.name} <= 1: reached 0.80 (met)"


def test_a_figure_is_the_median_and_a_ratio_the_median_of_ratios(script):
    def took(*seconds: float) -> list[dict[str, float]]:
        return [{"rows": 600, "seconds": each} for each in seconds]

    figures = sys.modules[script.lines.__module__]
    measured = {"arrow": took(1, 2, 6), "wreq": took(4, 4, 60)}
    assert figures.figure_of(measured, "arrow", figures.rate, None) == 300
    assert figures.figure_of(measured, "arrow", figures.rate, "wreq") == 4
    assert figures.figure_of(measured, "arrow", figures.rate, "discard") is None


def test_a_name_that_is_none_is_refused(script):
    with pytest.raises(SystemExit, match="no such name: nobody"):
        script.named(["nobody"])
    assert [program.key for program in script.named(["wreq"])] == ["wreq"]
    assert {program.section for program in script.named(["get", "rows"])} == {"get", "rows"}
    assert {program.key.partition("/")[0] for program in script.named(["long"])} == {"long"}
