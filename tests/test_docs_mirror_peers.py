"""docs/compared/mirror-peers.md has the rows, columns and settings of its script.

The figures are not compared: they are of the run that wrote them.
"""

import re

import pytest

from backread.testing import World
from documents import ROOT, Measured

PEERS = Measured("compared/mirror-peers.md", "mirror_peers")
NAMES = ("counts", "words")
script = PEERS.fixture()


@pytest.mark.parametrize("name", NAMES)
def test_rows_and_columns_are_those_of_the_script(script, name):
    columns = list({"counts": script.COUNTS, "words": script.WORDS}[name])
    tools = [tool.name for tool in script.tools("dlt", "airbyte")]
    PEERS.check_table(script, name, columns, tools)


@pytest.mark.parametrize("name", NAMES)
def test_another_run_replaces_a_table_and_nothing_else(script, name):
    columns, *rows = PEERS.cells(script, name)
    assert script.tables.filled(PEERS.page, name, script.tables.table(columns, rows)) == PEERS.page
    other = script.tables.table(columns, rows[:1])
    once = script.tables.filled(PEERS.page, name, other)
    assert script.tables.between(name).findall(once) == [other]
    [old] = script.tables.between(name).findall(PEERS.page)
    assert script.tables.filled(once, name, old) == PEERS.page


def test_a_page_without_the_markers_is_refused(script):
    with pytest.raises(SystemExit, match="markers"):
        script.tables.filled("# Another page\n", "counts", "")


def test_the_versions_are_those_that_are_installed():
    for peer, package in (("dlt", "dlt"), ("airbyte", "airbyte-cdk")):
        pins = (ROOT / f"benches/peers/mirror/{peer}.txt").read_text(encoding="utf-8")
        [version] = re.findall(rf"^{package}(?:\[\w+\])?==(\S+)$", pins, re.MULTILINE)
        assert f"{package} {version}" in PEERS.text


def test_the_world_is_the_one_described(script):
    world = World(seed=7, users=script.USERS, messages_per_user=(0, script.MOST_MESSAGES))
    lists = [len(world.message_ids(user)) for user in world.user_ids()]
    assert f"{script.USERS:,} users with 0 to {script.MOST_MESSAGES} messages each" in PEERS.text
    longer = sum(each > script.PAGE_SIZE for each in lists)
    assert f"{longer} of the lists are longer" in PEERS.text
    assert round(sum(lists), -4) == 30_000


def test_changes_are_as_many_as_described(script):
    world = World(seed=7, users=script.USERS, messages_per_user=(0, script.MOST_MESSAGES))
    before = {user: str(world.user(user)["updated_at"]) for user in world.user_ids()}
    changed = dict(script.change(world))
    assert len(changed) == script.CHANGED_USERS * (2 * script.NEW_MESSAGES + 1)
    after = {user: str(world.user(user)["updated_at"]) for user in before}
    moved = [after[user] for user in before if after[user] != before[user]]
    assert len(moved) == script.CHANGED_USERS
    # Later than all there were: who keeps the latest it saw must notice each of them.
    assert min(moved) > max(before.values())
