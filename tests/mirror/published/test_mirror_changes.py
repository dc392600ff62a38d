"""`Mirror.changes`: applied elsewhere, its rows are always those of the mirror."""

import contextlib
import os
import pickle
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow
import pytest

from backread import BackreadError, ConnectError, DeadlineExceededError, MirrorError
from backread.mirror import Changes, Mirror
from backread.mirror.published import publish
from backread.mirror.store import store
from helpers.mirrors import BatchSource, batch, rows

ADA = {"id": 1, "name": "Ada"}
GRACE = {"id": 2, "name": "Grace"}
ONE = {"user_id": 1, "id": 11, "body": "one"}
TWO = {"user_id": 1, "id": 12, "body": "two"}
Kept = dict[tuple[str, int, int], dict[str, Any]]


def fill(mirror: Mirror, users: list[Any], messages: list[Any], mode: Any = "incremental") -> None:
    lists = {each["id"]: "snapshot" for each in users}
    BatchSource(batch(users, messages, swept="snapshot", lists=lists)).sync_into(
        mirror.folder, mode
    )


def delivered(changes: Changes) -> list[tuple[Any, ...]]:
    return sorted(
        (each["table"], each["change"], each["user_id"], each["id"])
        for each in changes.to_arrow().to_pylist()
    )


def test_changes_give_all_rows_first_and_then_changed_ones(mirror):
    fill(mirror, [ADA, GRACE], [ONE, TWO])
    first = mirror.changes()
    assert delivered(first) == [
        ("messages", "added", 1, 11),
        ("messages", "added", 1, 12),
        ("users", "added", 1, 1),
        ("users", "added", 2, 2),
    ]
    assert first.num_rows == 4
    now = [ADA | {"name": "Ada L."}, {"id": 3}]
    fill(mirror, now, [ONE], mode="full")
    second = mirror.changes(since=first.cursor)
    assert delivered(second) == [
        ("messages", "deleted", 1, 12),
        ("users", "added", 3, 3),
        ("users", "changed", 1, 1),
        ("users", "deleted", 2, 2),
    ]
    by_id = {each["id"]: each for each in second.to_arrow().to_pylist()}
    renamed, deleted = by_id[1], by_id[12]
    assert (renamed["name"], renamed["body"], renamed["changed_in_run"]) == ("Ada L.", None, 2)
    assert deleted["body"] == "two"
    assert deleted["deleted_at"] is not None
    fill(mirror, now, [ONE, TWO], mode="full")
    third = mirror.changes(since=second.cursor)
    assert delivered(third) == [("messages", "changed", 1, 12)]
    fill(mirror, now, [ONE, TWO])
    assert mirror.changes(since=third.cursor).num_rows == 0
    # A run's id means the end of that run.
    assert delivered(mirror.changes(since=2)) == [("messages", "changed", 1, 12)]
    assert delivered(mirror.changes(since=3)) == []


def test_a_run_that_was_partial_when_it_was_read_loses_no_row(mirror):
    given = batch([ADA], [ONE], lists={1: "snapshot"}, swept="snapshot")
    source = BatchSource(given, DeadlineExceededError("the budget is used up"))
    with pytest.raises(DeadlineExceededError):
        source.sync_into(mirror.folder)
    assert rows(mirror, "SELECT run_id, state FROM runs") == [(1, "partial")]
    assert mirror.changes(since=None).num_rows == 2
    fill(mirror, [ADA, GRACE], [ONE, TWO])
    assert rows(mirror, "SELECT run_id FROM runs") == [(1,)]
    told = delivered(mirror.changes(since=1))
    assert {("messages", "added", 1, 12), ("users", "added", 2, 2)} <= {*told}


def test_one_table_has_only_its_columns(mirror):
    fill(mirror, [ADA], [ONE])
    technical = ["first_seen_at", "last_seen_at", "deleted_at", "changed_at", "changed_in_run"]
    both = {*mirror.changes().columns}
    for name, first, other in (("users", "name", "body"), ("messages", "body", "email")):
        changes = mirror.changes(table=name)
        assert changes.columns[:5] == ["table", "change", "user_id", "id", first]
        assert changes.columns[-5:] == technical
        assert other not in changes.columns
        assert {each[0] for each in delivered(changes)} == {name}
        assert {*changes.columns} < both
    with pytest.raises(ValueError, match="not 'runs'"):
        mirror.changes(table="runs")  # type: ignore[arg-type]


def test_changes_read_the_snapshot_of_their_cursor(mirror):
    fill(mirror, [ADA], [ONE])
    changes = mirror.changes()
    stream = pyarrow.RecordBatchReader.from_stream(changes)
    fill(mirror, [ADA, GRACE], [ONE, TWO])
    assert stream.read_all().num_rows == changes.num_rows == changes.to_arrow().num_rows == 2
    assert delivered(mirror.changes(since=changes.cursor)) == [
        ("messages", "added", 1, 12),
        ("users", "added", 2, 2),
    ]


def test_forgotten_users_are_delivered_as_such(mirror):
    fill(mirror, [ADA, GRACE], [ONE])
    before = mirror.changes().cursor
    mirror.forget(1)
    assert delivered(mirror.changes(before, table="users")) == [("users", "forgotten", 1, 1)]
    changes = mirror.changes(since=before)
    assert delivered(changes) == [
        ("messages", "forgotten", 1, None),
        ("users", "forgotten", 1, 1),
    ]
    found = changes.to_arrow().to_pylist()
    assert all(each["changed_at"] is not None and each["name"] is None for each in found)
    assert mirror.changes(since=changes.cursor).num_rows == 0


def test_changes_refuse_a_wrong_since(mirror, tmp_path):
    with pytest.raises(MirrorError, match="nothing is published"):
        mirror.changes()
    fill(mirror, [ADA], [ONE])
    cursor = mirror.changes().cursor
    with pytest.raises(MirrorError, match=r"no finished run 2; start again with since=None"):
        mirror.changes(since=2)
    for damaged in ("", "3", cursor[:-1], cursor.replace(".", "!"), f"{cursor}0"):
        with pytest.raises(MirrorError, match=r"is damaged or none at all; start again with since"):
            mirror.changes(since=damaged)
    other = Mirror(tmp_path / "other")
    fill(other, [ADA], [])
    with pytest.raises(MirrorError, match=r"of another mirror .* start again with since=None"):
        other.changes(since=cursor)
    for odd in (True, datetime.now(UTC)):
        with pytest.raises(TypeError, match="since must be a run_id, the cursor"):
            mirror.changes(since=odd)


@pytest.mark.parametrize("restored", ["folder", "mirror.duckdb"])
def test_mirror_restored_from_a_backup_is_noticed_after_the_next_sync(mirror, tmp_path, restored):
    fill(mirror, [ADA], [ONE])
    first = mirror.changes().cursor
    shutil.copytree(mirror.folder, tmp_path / "backup", symlinks=True)
    fill(mirror, [ADA], [ONE, TWO])
    lost = mirror.changes().cursor
    with pytest.raises(MirrorError, match=r"of no snapshot .* start again"):
        Mirror(tmp_path / "backup").changes(since=lost)
    if restored == "folder":
        shutil.rmtree(mirror.folder)
        shutil.copytree(tmp_path / "backup", mirror.folder, symlinks=True)
    else:
        shutil.copy(tmp_path / "backup" / restored, mirror.folder / restored)
    # Message 12 was deleted meanwhile.
    for _ in range(2):
        fill(mirror, [ADA, GRACE], [ONE])
        with pytest.raises(MirrorError, match=r"of no snapshot .* from a backup; start again"):
            mirror.changes(since=lost)
    assert delivered(mirror.changes(since=first)) == [("users", "added", 2, 2)]


def test_it_shows_itself_and_cannot_be_pickled_or_iterated(mirror):
    fill(mirror, [{"id": 1, "name": "<script>"}], [])
    changes = mirror.changes(since=None, table="users")
    assert repr(changes) == f"Mirror('{mirror.folder}').changes(since=None, table='users')"
    assert "<script>" not in changes._repr_html_()
    for use, said in ((pickle.dumps, "cannot be pickled"), (iter, "cannot be iterated")):
        with pytest.raises(TypeError, match=said):
            use(changes)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_says_that_it_must_ask_anew(mirror, monkeypatch):
    fill(mirror, [ADA], [])
    changes = mirror.changes()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(MirrorError, match=r"call Mirror.changes there"):
        changes.to_arrow()


KINDS = ("incremental", "full", "partial", "broken", "unpublished", "users", "forget")
Step = tuple[dict[int, str], dict[tuple[int, int], str], str, int, bool]


def some_steps(seed: int) -> Iterator[Step]:
    """Each kind of sync once, in any order, with some of a few users and messages."""
    chance = random.Random(seed)
    for kind in chance.sample(KINDS, len(KINDS)):
        users = {each: chance.choice(WORDS) for each in range(1, 5) if chance.random() < 0.6}
        messages = {
            (each, number): chance.choice(WORDS)
            for each in range(1, 5)
            for number in range(1, 4)
            if chance.random() < 0.4
        }
        # How many hours the clock is set back, and whether changes are read after it.
        yield users, messages, kind, chance.randrange(4), chance.random() < 0.7
    yield {}, {}, "full", 0, True


WORDS = ("one", "two", "three")


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))]
)
def test_changes_applied_elsewhere_equal_the_mirror(mirror, seed):
    kept: Kept = {}
    cursor = None
    forgotten: set[int] = set()
    told: set[int] = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publish, "FILE_BYTES", 800)
        fill(mirror, [], [])
        for users, messages, kind, hours, is_read in some_steps(seed):
            patch.setattr(store, "datetime", _clock(timedelta(hours=hours)))
            if kind == "forget":
                chosen = set(users) - forgotten
                mirror.forget(*chosen, 99, missing_ok=True)
                forgotten |= chosen | {99}
            else:
                # The core drops the rows of forgotten users.
                step(mirror, {each: users[each] for each in {*users} - forgotten}, messages, kind)
            if kind not in ("unpublished", "broken"):
                check_published(mirror)
            if not is_read:
                continue
            changes = mirror.changes(since=cursor)
            before = dict(kept)
            for row in changes.to_arrow().to_pylist():
                key = (row["table"], row["user_id"], row["id"])
                if row["change"] == "forgotten":
                    assert row["user_id"] in forgotten - told
                    kept = {each: held for each, held in kept.items() if each[:2] != key[:2]}
                    continue
                content = {name: row[name] for name in CONTENT}
                assert (row["change"] == "added") == (key not in before)
                assert before.get(key) != content, "delivered again, although it did not change"
                kept[key] = content
            told = set(forgotten)
            cursor = changes.cursor
            assert kept == tables(mirror)
            assert mirror.changes(since=cursor).num_rows == 0


def check_published(mirror: Mirror) -> None:
    """Each row of the database is published once, also for who reads by path."""
    # Null stands for the newest finished run.
    seen = "coalesce(last_seen_at, greatest(first_seen_at, (SELECT max(ended_at) FROM runs)))"
    query = f"SELECT (COLUMNS(* REPLACE ({seen} AS last_seen_at)))::VARCHAR FROM {{}} ORDER BY ALL"
    with duckdb.connect(str(mirror.folder / "mirror.duckdb"), read_only=True) as database:
        for table in ("users", "messages"):
            held = database.sql(query.format(f"(SELECT * EXCLUDE (text_bytes) FROM {table})"))
            kept = held.fetchall()
            assert rows(mirror, query.format(table)) == kept
            files = str(mirror.folder / "published" / "current" / table / "*.parquet")
            assert duckdb.read_parquet(files).count("*").fetchall() == [(len(kept),)]


CONTENT = ("name", "body", "first_seen_at", "deleted_at", "changed_at", "changed_in_run")


def step(mirror: Mirror, users: Any, messages: Any, kind: str) -> None:
    """One sync; ``partial`` ends with its budget, ``broken`` by an error after its rows."""
    said = [
        {"user_id": user_id, "id": number, "body": body}
        for (user_id, number), body in messages.items()
        if user_id in users
    ]
    named = [{"id": user_id, "name": name} for user_id, name in users.items()]
    given = batch(named, said, swept="snapshot", lists=dict.fromkeys(users, "snapshot"))
    ends = {"partial": DeadlineExceededError("used up"), "broken": ConnectError("broke")}
    source = BatchSource(given, *([ends[kind]] if kind in ends else []))
    with contextlib.suppress(BackreadError):
        source.sync_into(
            mirror.folder,
            "full" if kind == "full" else "incremental",
            publish=kind != "unpublished",
            users=tuple(users) if kind == "users" and users else None,
        )


def tables(mirror: Mirror) -> Kept:
    """What the tables of the snapshot have, by key."""
    kept = {}
    for name, user in (("users", "id"), ("messages", "user_id")):
        for row in mirror.table(name).to_arrow().to_pylist():  # type: ignore[arg-type]
            content = {column: row.get(column) for column in CONTENT}
            kept[(name, row[user], row["id"])] = content
    return kept


def _clock(back: timedelta) -> Any:
    class SetBack(datetime):
        @classmethod
        def now(cls, zone: Any = None) -> datetime:
            return datetime.now(zone) - back

    return SetBack
