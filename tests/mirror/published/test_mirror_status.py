"""`Mirror.status` and `backread status`: what is proved, what is not, and what to do."""

import json
from datetime import timedelta

import pytest

from backread import Mirror
from backread.errors import MirrorError
from backread.testing import Fault, MockServer, World
from helpers.mirrors import BatchSource, batch, ended, sync

pytest.importorskip("typer")


@pytest.fixture
def server():
    with MockServer(World(seed=4, users=40, messages_per_user=(1, 20))) as running:
        yield running


@pytest.fixture
def mirror(tmp_path):
    return Mirror(tmp_path / "chats")


def problems(mirror: Mirror) -> list[str]:
    return [line.text for line in mirror.status().lines if line.state == "problem"]


def test_finished_sync_leaves_no_problem(mirror, server):
    sync(mirror, server)
    status = mirror.status()
    assert (status.ok, status.users, status.lists) == (True, 40, {"snapshot": 40})
    assert (status.run_id, status.mode, status.state, status.writer) == (
        1,
        "incremental",
        "finished",
        None,
    )
    assert status.next_due_at is not None
    assert timedelta(days=29) < status.next_due_at - status.as_of < timedelta(days=31)
    assert "the list of users is snapshot" in status.lines[0].text
    assert "MirrorStatus: run 1" in status._repr_html_()


def test_partial_run_says_how_many_lists_are_left(mirror, server):
    sync(mirror, server, max_requests=20)
    assert any("never read" in each for each in problems(mirror))
    sync(mirror, server)
    assert problems(mirror) == []


def test_broken_list_is_named_with_its_reason(mirror, server):
    user_id = server.world.user_ids()[3]
    server.on("messages", user=user_id).fail(Fault.status(500))
    sync(mirror, server)
    [line] = [line for line in mirror.status().lines if line.state == "problem"]
    assert line.text.startswith(f"the list of user {user_id} could not be read: ")
    assert line.advice == "the next sync tries again"
    [failed] = mirror.status().failed
    assert (failed.user_id, failed.kind) == (user_id, "unread")


def test_old_lists_are_overdue(mirror, server):
    sync(mirror, server)
    assert mirror.status(max_staleness=0).overdue == 40
    assert not mirror.status(max_staleness=timedelta(0)).ok
    with pytest.raises(ValueError, match="max_staleness"):
        mirror.status(max_staleness=-1)


def test_rejects_and_users_who_are_not_listed_any_more_are_no_problem(mirror, server):
    sync(mirror, server)
    server.world.remove_user(server.world.user_ids()[0])
    server.on("users").fail(
        Fault.garbage(json.dumps({"limit": 99, "offset": 0, "total": 1, "users": [{"id": "x"}]})),
        times=1,
    )
    sync(mirror, server)
    sync(mirror, server)
    status = mirror.status()
    assert status.rejects == {"users": 1}
    assert status.unlisted == 1
    assert status.ok, status.lines


def test_lists_that_were_skipped_before_a_miss_are_doubtful_until_they_are_read(mirror):
    """Of a run that ended early after its miss."""
    users = [{"id": 1}, {"id": 2}]
    whole = batch(users, swept="snapshot", lists={1: "snapshot", 2: "snapshot"})
    moved = [ended(each, moved=True, rows_differ=True) for each in range(100, 140)]
    said = [
        {"user_id": each, "id": 1, "sender_type": "operator", "body": "hello"}
        for each in range(100, 140)
    ]
    others = [{"id": each} for each in range(100, 140)]
    BatchSource(whole).sync_into(mirror.folder)
    BatchSource(batch([*users, *others], swept="snapshot", lists={100: "snapshot"})).sync_into(
        mirror.folder
    )
    evidence = batch(
        [*users, *others],
        said,
        swept="snapshot",
        lists=[*moved, *(ended(each, moved=False) for each in (1, 2, *range(140, 200)))],
    )
    BatchSource(evidence).sync_into(mirror.folder)
    skipping = BatchSource(batch([*users, *others], swept="snapshot"))
    assert skipping.sync_into(mirror.folder, mode="quick").mode == "quick"
    assert skipping.mode == "quick"
    miss = batch(
        [*users, *others], swept="snapshot", lists=[ended(1, moved=False, rows_differ=True)]
    )
    answer = batch([{"id": 1}])
    report = BatchSource(miss, answers=[answer], ended_early=True).sync_into(
        mirror.folder, mode="quick"
    )
    assert (report.state, report.mode, report.audit_misses) == ("partial", "incremental", 1)
    assert mirror.status().doubtful > 0
    assert "sync without --quick" in [line.advice for line in mirror.status().lines]


def test_status_of_nothing_is_an_error(mirror):
    with pytest.raises(MirrorError, match="does not exist"):
        mirror.status()


def test_command_ends_with_6_while_something_is_not_proved(backread, mirror, server):
    sync(mirror, server)
    done = backread("status", mirror.folder)
    assert done.code == 0
    assert f"{mirror.folder}: run 1 (incremental, finished), as of " in done.error
    assert "40 snapshot" in done.out
    done = backread("status", mirror.folder, "--max-staleness-days", 0)
    assert (done.code, "not read in full" in done.out) == (6, True)
    done = backread("status", mirror.folder, "--json")
    document = json.loads(done.out)
    assert (done.code, document["ok"], document["lists"]) == (0, True, {"snapshot": 40})
    assert [line["text"] for line in document["lines"]]
    assert backread("status", mirror.folder.parent / "none").code == 7
