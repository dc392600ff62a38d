"""docs/mirror-peers.md has the rows and columns of the script that measures them, and its settings.

The figures are not compared: they are of the run that wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType

import pytest

from backread.testing import World
from documents import IN_CHECKOUT, ROOT, bench

if not IN_CHECKOUT:
    pytest.skip("the wheel check takes no benches along", allow_module_level=True)

PAGE = (ROOT / "docs/mirror-peers.md").read_text(encoding="utf-8")
NAMES = ("counts", "words")


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    with bench("mirror_peers") as module:
        yield module


def cells(script: ModuleType, name: str) -> list[list[str]]:
    """The lines of a table, the one below its header left out."""
    [text] = script.tables.between(name).findall(PAGE)
    lines = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in text.splitlines()]
    return [lines[0], *lines[2:]]


@pytest.mark.parametrize("name", NAMES)
def test_rows_and_columns_are_those_of_the_script(script: ModuleType, name: str) -> None:
    columns, *rows = cells(script, name)
    assert columns == list({"counts": script.COUNTS, "words": script.WORDS}[name])
    assert [row[0] for row in rows] == [tool.name for tool in script.tools("dlt", "airbyte")]
    assert all(len(row) == len(columns) and all(row) for row in rows)


@pytest.mark.parametrize("name", NAMES)
def test_another_run_replaces_a_table_and_nothing_else(script: ModuleType, name: str) -> None:
    columns, *rows = cells(script, name)
    assert script.tables.filled(PAGE, name, script.tables.table(columns, rows)) == PAGE
    other = script.tables.table(columns, rows[:1])
    once = script.tables.filled(PAGE, name, other)
    assert script.tables.between(name).findall(once) == [other]
    [old] = script.tables.between(name).findall(PAGE)
    assert script.tables.filled(once, name, old) == PAGE


def test_a_page_without_the_markers_is_refused(script: ModuleType) -> None:
    with pytest.raises(SystemExit, match="markers"):
        script.tables.filled("# Another page\n", "counts", "")


def test_the_versions_are_those_that_are_installed() -> None:
    for peer, package in (("dlt", "dlt"), ("airbyte", "airbyte-cdk")):
        pins = (ROOT / f"benches/peers/mirror/{peer}.txt").read_text(encoding="utf-8")
        [version] = re.findall(rf"^{package}(?:\[\w+\])?==(\S+)$", pins, re.MULTILINE)
        assert f"{package} {version}" in " ".join(PAGE.split())


def test_the_world_is_the_one_described(script: ModuleType) -> None:
    world = World(seed=7, users=script.USERS, messages_per_user=(0, script.MOST_MESSAGES))
    lists = [len(world.message_ids(user)) for user in world.user_ids()]
    text = " ".join(PAGE.split())
    assert f"{script.USERS:,} users with 0 to {script.MOST_MESSAGES} messages each" in text
    assert f"{sum(each > script.PAGE_SIZE for each in lists)} of the lists are longer" in text
    assert round(sum(lists), -4) == 30_000


def test_changes_are_as_many_as_described(script: ModuleType) -> None:
    world = World(seed=7, users=script.USERS, messages_per_user=(0, script.MOST_MESSAGES))
    before = {user: str(world.user(user)["updated_at"]) for user in world.user_ids()}
    changed = dict(script.change(world))
    assert len(changed) == script.CHANGED_USERS * (2 * script.NEW_MESSAGES + 1)
    after = {user: str(world.user(user)["updated_at"]) for user in before}
    moved = [after[user] for user in before if after[user] != before[user]]
    assert len(moved) == script.CHANGED_USERS
    # Later than all there were: who keeps the latest it saw must notice each of them.
    assert min(moved) > max(before.values())
