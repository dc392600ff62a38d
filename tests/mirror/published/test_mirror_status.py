"""`Mirror.status` and `backread status`: what is proved, what is not, and what to do."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from backread.mirror import Mirror
from backread.mirror.sync.progress import UnfinishedRun, write_unfinished_run
from backread.mirror.sync.report import SyncProgress
from backread.testing import Fault, Lane, World
from helpers.hostile_text import check
from helpers.mirrors import BatchSource, batch, ended, sync


def test_finished_sync_leaves_no_problem(mirror, server):
    sync(mirror, server)
    status = mirror.status()
    assert (status.ok, status.users, status.lists) == (True, 40, {"snapshot": 40})
    assert (status.run_id, status.mode, status.state) == (1, "incremental", "finished")
    assert timedelta(days=29) < status.next_due_at - status.as_of < timedelta(days=31)
    assert "the list of users is snapshot" in status.lines[0].text
    assert "MirrorStatus: run 1" in status._repr_html_()
    late = mirror.status(max_staleness=timedelta(0))
    assert (late.ok, late.overdue) == (False, 40)
    with pytest.raises(ValueError, match="max_staleness"):
        mirror.status(max_staleness=-1)


def test_broken_list_is_named_with_its_reason_and_one_never_read_is_counted(mirror, server):
    sync(mirror, server, max_requests=20)
    said = [line.text for line in mirror.status().lines if line.state == "problem"]
    assert any("never read" in each for each in said)
    user_id = server.world.user_ids()[3]
    server.on("messages", user=user_id).fail(Fault.status(500))
    sync(mirror, server, mode="full")
    [line] = [line for line in mirror.status().lines if line.state == "problem"]
    assert line.text.startswith(f"the list of user {user_id} could not be read: ")
    assert line.advice == "the next sync tries again"
    [failed] = mirror.status().failed
    assert (failed.user_id, failed.kind) == (user_id, "unread")


def test_rejects_and_users_who_are_not_listed_any_more_are_no_problem(mirror, server):
    sync(mirror, server)
    server.world.remove_user(server.world.user_ids()[0])
    page = {"limit": 99, "offset": 0, "total": 1, "users": [{"id": "x"}]}
    server.on("users").fail(Fault.garbage(json.dumps(page)), times=1)
    sync(mirror, server)
    sync(mirror, server)
    status = mirror.status()
    assert (status.ok, status.rejects, status.unlisted) == (True, {"users": 1}, 1)


def test_lists_that_were_skipped_before_a_miss_are_doubtful_until_they_are_read(mirror):
    """Of a run that ended early after its miss."""
    others = range(100, 140)
    users = [{"id": each} for each in (1, 2, *others)]
    said = [{"user_id": each, "id": 1, "sender_type": "operator"} for each in others]
    moved = [ended(each, moved=True, rows_differ=True) for each in others]
    still = [ended(each, moved=False) for each in (1, 2, *range(140, 200))]
    for mode, messages, lists in (
        ("incremental", (), [ended(each) for each in (1, 2, 100)]),
        ("incremental", said, [*moved, *still]),
        ("quick", (), ()),
    ):
        source = BatchSource(batch(users, messages, swept="snapshot", lists=lists))
        assert source.sync_into(mirror.folder, mode).mode == mode
    missed = batch(users, swept="snapshot", lists=[ended(1, moved=False, rows_differ=True)])
    ending = BatchSource(missed, answers=[batch([{"id": 1}])], ended_early=True)
    report = ending.sync_into(mirror.folder, mode="quick")
    assert (report.state, report.mode, report.audit_misses) == ("partial", "incremental", 1)
    assert mirror.status().doubtful > 0
    assert "sync without --quick" in [line.advice for line in mirror.status().lines]


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


def refused(mirror: Mirror, lane: Lane) -> None:
    """A run whose budget goes on requests that the service refuses."""
    for route in ("users", "messages"):
        lane.on(route).fail(Fault.status(503, retry_after=0))
    assert sync(mirror, lane, max_requests=2).state == "partial"
    lane.clear_faults()


def test_data_is_no_younger_after_a_run_that_read_nothing(mirror, backread_server):
    def coverage() -> Any:
        return mirror.figures()["coverage"]

    with backread_server.lane(world=World(seed=1, users=60)) as lane:
        refused(mirror, lane)
        assert coverage()["as_of"] is None
        assert "data as of: no run has read anything yet" in pretty(mirror)
        part = sync(mirror, lane, max_requests=20)
        refused(mirror, lane)
        assert part.started_at < datetime.fromisoformat(coverage()["as_of"]) <= part.ended_at
        whole = sync(mirror, lane)
        refused(mirror, lane)
    found = coverage()
    assert (found["run_id"], found["as_of"]) == (whole.run_id, whole.ended_at.isoformat())
    assert (found["state"], found["users_certificate"]) == ("finished", whole.certificate)
    assert "(run 1, incremental)" in pretty(mirror)


def pretty(mirror: Mirror) -> str:
    """What IPython shows."""
    texts: list[str] = []
    mirror._repr_pretty_(SimpleNamespace(text=texts.append), False)
    return "".join(texts)


def fill(mirror: Mirror, **certificates: Any) -> None:
    users = [{"id": each} for each in (1, 2)]
    messages = [{"user_id": 2, "id": each, "body": "x"} for each in range(1_500)]
    given = {"swept": "linked", "lists": {1: "snapshot", 2: "counted"}} | certificates
    BatchSource(batch(users, messages, **given)).sync_into(mirror.folder)


def test_a_card_says_how_old_and_how_complete_it_is(mirror):
    fill(mirror)
    card = check(mirror._repr_html_()).text
    for shown in (card, pretty(mirror)):
        for said in (str(mirror.folder), "just now (run 1, incremental)", "linked",
                     "1 counted, 1 snapshot", "2 rows", "1,500 rows",
                     "mirror.conversation(2)", "mirror.search("):  # fmt: skip
            assert said in shown
        assert "uncertified" not in shown
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert repr(mirror).startswith(
        f"<Mirror {str(mirror.folder)!r}: 2 users, 1,500 messages, published {today} "
    )

    fill(mirror, swept="uncertified", lists={1: "snapshot", 2: "uncertified"})
    card = check(mirror._repr_html_()).text
    assert "! uncertified" in card


def test_mirror_repr_without_a_folder_says_to_sync(tmp_path):
    (tmp_path / "file").write_text("")
    for name, why in (
        ("<script>\x1b[31m", "which does not exist"),
        (".", "nothing is published in"),
        ("file", "is a file, but a mirror is a folder"),
    ):
        mirror = Mirror(tmp_path / name)
        assert repr(mirror).endswith(": nothing published>")
        for shown in (check(mirror._repr_html_()).text, pretty(mirror)):
            assert why in shown
            assert "mirror.sync(Client(), progress=True)" in shown
            assert "\x1b" not in shown + repr(mirror)


@pytest.mark.parametrize(
    ("manifest", "said"), [('{"format": 99}', "sync into a new folder"), ("{", "damaged")]
)
def test_a_mirror_that_cannot_be_read_says_why(mirror, manifest, said):
    fill(mirror)
    (mirror.folder / "published" / "current" / "snapshot.json").write_text(manifest)
    assert repr(mirror) == f"<Mirror {str(mirror.folder)!r}: cannot be read>"
    for shown in (check(mirror._repr_html_()).text, pretty(mirror)):
        assert said in shown
        assert "try next" not in shown
    assert said in repr(mirror.tables)


def test_a_sync_that_goes_on_or_was_killed_is_named(mirror):
    progress = SyncProgress(9, 9, 100, 5, 1.0, "reading", lists=3, lists_total=1_009)
    mirror.folder.mkdir(parents=True)
    for hours, said in (
        (0, "run 4 is going on, 3 of 1,009 message lists read"),
        (5, "run 4 stopped 5 hours ago"),
    ):
        at = datetime.now(UTC) - timedelta(hours=hours)
        write_unfinished_run(mirror.folder, UnfinishedRun(4, "incremental", at, at, progress))
        assert said in check(mirror._repr_html_()).text
