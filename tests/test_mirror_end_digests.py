"""A mirror does not merge the rows at the end of a long list whose digest is as before."""

from pathlib import Path

import pytest

from backread.mirror import Mirror
from backread.testing import Dialect, MockServer, World
from mirrors import Batch, BatchSource, Row, batch, ended, rows, sync

pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")

OLD, NEW = b"o" * 16, b"n" * 16
SEEN_LAST = "SELECT count(*) FROM messages JOIN runs ON last_seen_at = ended_at WHERE run_id = {}"


def edited(body: str, *, digest: bytes | None = None) -> Batch:
    """Rows of user 1 with this body, and the end of the list if there is a digest."""
    messages: list[Row] = [{"user_id": 1, "id": each, "body": body} for each in (1, 2)]
    list_row = ended(1, "counted", rows=2, kind="end", digest=digest)
    return batch([{"id": 1}], messages, swept="snapshot", lists=[list_row] if digest else [])


def digests(folder: Path) -> list[bytes | None]:
    """What the next run is told, which then stops at once."""
    source = BatchSource(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        source.sync_into(folder)
    assert source.known is not None
    return [each["digest"] for each in source.known["lists"]]


def test_a_kill_between_newer_rows_and_the_end_of_their_list_drops_its_digest(tmp_path):
    """Else the next run would take the rows it finds, as they were first, for those stored."""
    folder = tmp_path / "chats"
    BatchSource(edited("old", digest=OLD)).sync_into(folder)
    assert digests(folder) == [OLD]
    with pytest.raises(KeyboardInterrupt):
        BatchSource(edited("new"), KeyboardInterrupt()).sync_into(folder)
    assert digests(folder) == [None]


def test_a_list_that_ends_with_its_newer_rows_has_the_newer_digest(tmp_path):
    folder = tmp_path / "chats"
    BatchSource(edited("old", digest=OLD)).sync_into(folder)
    BatchSource(edited("new", digest=NEW)).sync_into(folder)
    assert digests(folder) == [NEW]


def test_skipped_rows_count_as_read_and_as_seen(tmp_path):
    world = World(seed=5, users=6, messages_per_user=(120, 300))
    for order in ("id", "newest"):
        mirror = Mirror(tmp_path / order)
        with MockServer(world, dialect=Dialect("documented", order=order)) as server:
            sync(mirror, server)
            report = sync(mirror, server)
            user_id, *_ = world.user_ids()
            message_id = world.message_ids(user_id)[-2]
            world.edit_message(user_id, message_id, body=f"edited in {order}")
            changed = sync(mirror, server)
        assert report.messages >= 10 * 6
        assert (report.messages_added, report.messages_updated) == (0, 0)
        assert report.lists_by_kind == {"end": 6}
        assert changed.messages == report.messages
        assert (changed.messages_added, changed.messages_updated) == (0, 1)
        bodies = f"SELECT body, changed_in_run FROM messages WHERE id = {message_id}"
        assert rows(mirror, bodies) == [(f"edited in {order}", changed.run_id)]
        since = mirror.changes(since=report.run_id, table="messages")
        assert [each["id"] for each in pa.table(since).to_pylist()] == [message_id]
        assert rows(mirror, SEEN_LAST.format(changed.run_id)) == [(world.total_messages,)]


def test_a_full_run_reads_and_marks_as_before(tmp_path):
    mirror = Mirror(tmp_path / "chats")
    world = World(seed=5, users=3, messages_per_user=(120, 300))
    with MockServer(world) as server:
        sync(mirror, server)
        sync(mirror, server)
        user_id, *_ = world.user_ids()
        gone = world.message_ids(user_id)[-2]
        world.remove_message(user_id, gone)
        assert sync(mirror, server, mode="full").deleted == 1
        sync(mirror, server)
    marked = "SELECT id FROM messages WHERE deleted_at IS NOT NULL"
    assert rows(mirror, marked) == [(gone,)]
