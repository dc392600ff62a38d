"""Long lists that have become shorter since the mirror read them."""

import pytest

from backread.testing import MockServer, World

pytest.importorskip("duckdb")

from backread.mirror import Mirror


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
