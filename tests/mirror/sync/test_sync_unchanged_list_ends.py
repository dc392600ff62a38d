"""A mirror does not merge the rows at the end of a long list whose digest is as before."""

from pathlib import Path
from typing import Any

import pytest

from backread._client.privacy import Privacy, loaded
from backread.mirror import Mirror
from backread.testing import Dialect, MockServer, World
from helpers.mirrors import Batch, BatchSource, Row, batch, ended, rows, sync

duckdb = pytest.importorskip("duckdb")
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


@pytest.mark.parametrize("messages", [50, 150])
def test_a_full_run_marks_what_a_run_over_given_users_did_not_find(tmp_path, messages):
    """Else its digest would say that the list is as it was, and the row would stay for good."""
    mirror = Mirror(tmp_path / "chats")
    world = World(seed=5, users=3, messages_per_user=(messages, messages))
    with MockServer(world) as server:
        sync(mirror, server)
        user_id, *_ = world.user_ids()
        gone = world.message_ids(user_id)[-3]
        world.remove_message(user_id, gone)
        sync(mirror, server, users=[user_id])
        assert sync(mirror, server, mode="full").deleted == 1
        assert sync(mirror, server, mode="full").deleted == 0
    marked = "SELECT id FROM messages WHERE deleted_at IS NOT NULL"
    assert rows(mirror, marked) == [(gone,)]


class KeySource(BatchSource):
    """Keeps the key that it got for digests."""

    digest_key: bytes | None = None

    def _sync_run(self, known: Any, **options: Any) -> Any:
        self.digest_key = known.digest_key
        return super()._sync_run(known, **options)


def given_and_stored(folder: Path, **options: Any) -> tuple[bytes | None, str | None]:
    """The key of digests for two syncs of such a mirror, and what its database has of it."""
    privacy = Privacy.of(**{"pseudonymise": None, "drop_bodies": False, "redact": False} | options)
    first, second = (KeySource(edited("a", digest=OLD)) for _ in range(2))
    for source in (first, second):
        source.sync_into(folder, privacy=loaded(privacy))
    assert first.digest_key == second.digest_key
    with duckdb.connect(str(folder / "mirror.duckdb"), read_only=True) as database:
        query = "SELECT value FROM meta WHERE key = 'list_digest_key'"
        stored = database.execute(query).fetchall()
    return first.digest_key, stored[0][0] if stored else None


def test_the_database_does_not_tell_digests_of_what_it_does_not_store(tmp_path):
    """With their whole key, its reader could test guesses of a text or of an address."""
    key, stored = given_and_stored(tmp_path / "as sent")
    assert key is not None
    assert stored == key.hex()
    for number, options in enumerate(({"drop_bodies": True}, {"redact": True})):
        assert given_and_stored(tmp_path / str(number), **options) == (None, None)
    file = tmp_path / "key"
    file.touch(0o600)
    file.write_bytes(bytes(range(32)))
    key, stored = given_and_stored(tmp_path / "pseudonyms", pseudonymise=file, drop_bodies=True)
    assert key is not None
    assert stored is not None
    assert stored != key.hex()


@pytest.mark.parametrize("past_end", ["empty", "not_found", "last_page"])
def test_a_list_that_ends_before_its_known_end_is_read_whole_in_the_same_sync(tmp_path, past_end):
    world = World(seed=5, users=3, messages_per_user=(200, 200))
    mirror = Mirror(tmp_path / "chats")
    with (
        MockServer(world, dialect=f"documented past_end={past_end}") as server,
        server.client() as client,
    ):
        assert mirror.sync(client).lists_by_certificate == {"counted": 3}
        user = world.user_ids()[0]
        for message in world.message_ids(user)[:120]:
            world.remove_message(user, message)
        [new] = world.add_messages(user, 1)
        report = mirror.sync(client)
        assert report.lists_by_kind == {"end": 2, "whole": 1}
        assert report.lists_by_certificate == {"counted": 2, "snapshot": 1}
        found = mirror.sql(f"SELECT id FROM messages WHERE user_id = {user} AND id = {new}")
        assert found.fetchall() == [(new,)]


def test_a_resumed_sync_reads_whole_what_is_stale_by_its_own_term(tmp_path):
    class StoppedError(Exception):
        pass

    def stop(now: object) -> None:
        if getattr(now, "phase", "") == "finishing":
            raise StoppedError

    world = World(seed=5, users=3, messages_per_user=(200, 200))
    mirror = Mirror(tmp_path / "chats")
    with MockServer(world) as server, server.client() as client:
        mirror.sync(client)
        user = world.user_ids()[0]
        old = world.message_ids(user)[3]
        world.edit_message(user, old, body="edited")
        with pytest.raises(StoppedError):
            mirror.sync(client, on_progress=stop)
        report = mirror.sync(client, max_staleness=0)
        assert (report.resumed, report.lists_by_kind) == (True, {"whole": 3})
        assert mirror.sql(f"SELECT body FROM messages WHERE id = {old}").fetchall() == [("edited",)]
