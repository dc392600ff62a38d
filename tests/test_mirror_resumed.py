"""What a resumed run takes over from its beginning, and what it reads once more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backread import ConnectError
from mirrors import BatchSource, batch, marked, rows

pytest.importorskip("duckdb")

from backread.mirror import Mirror

BROKEN = ConnectError("the connection broke")


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "chats")


def held(mirror: Mirror) -> None:
    """A first run: two users with two messages each."""
    BatchSource(
        batch(
            [{"id": 1}, {"id": 2}],
            [{"user_id": user, "id": user * 10 + each} for user in (1, 2) for each in (1, 2)],
            swept="snapshot",
            lists={1: "snapshot", 2: "snapshot"},
        )
    ).sync_into(mirror.folder)


def broken_off(mirror: Mirror, source: BatchSource, mode: str = "incremental") -> None:
    with pytest.raises(ConnectError):
        source.sync_into(mirror.folder, mode)  # type: ignore[arg-type]


def test_lists_that_ended_within_a_day_are_not_read_again(mirror: Mirror) -> None:
    now = datetime.now(UTC)
    broken_off(
        mirror,
        BatchSource(
            batch([{"id": 1}, {"id": 2}]),
            batch(lists={1: "snapshot"}, ended_at=now - timedelta(hours=25)),
            batch(lists={2: "snapshot"}, ended_at=now - timedelta(hours=23)),
            BROKEN,
        ),
    )
    following = BatchSource(batch([{"id": 1}, {"id": 2}], swept="snapshot"))
    assert following.sync_into(mirror.folder).resumed
    assert following.done == [2]


def test_half_of_a_list_says_nothing_about_a_run_that_is_resumed(mirror: Mirror) -> None:
    held(mirror)
    # The first attempt sees messages 11 and 12, but not the end of their list.
    first = batch([{"id": 1}, {"id": 2}], [{"user_id": 1, "id": 11}, {"user_id": 1, "id": 12}])
    broken_off(mirror, BatchSource(first, BROKEN), "full")
    # Before it goes on, user 2 and message 12 go.
    report = BatchSource(
        batch(
            [{"id": 1}],
            [{"user_id": 1, "id": 11}],
            swept="snapshot",
            lists={1: "snapshot"},
        )
    ).sync_into(mirror.folder)
    assert (report.mode, report.resumed) == ("full", True)
    assert marked(mirror) == ([2], [12, 21, 22])
    assert report.deleted == 4


def test_messages_of_lists_that_had_ended_stay_seen(mirror: Mirror) -> None:
    held(mirror)
    first = batch(
        [{"id": 1}, {"id": 2}],
        [{"user_id": 1, "id": 11}],
        [{"resource": "messages", "user_id": 1, "id": 12}],
        lists={1: "snapshot"},
    )
    broken_off(mirror, BatchSource(first, BROKEN), "full")
    second = BatchSource(
        batch(
            [{"id": 1}, {"id": 2}],
            [{"user_id": 2, "id": 21}, {"user_id": 2, "id": 22}],
            swept="snapshot",
            lists={2: "snapshot"},
        )
    )
    assert second.sync_into(mirror.folder).deleted == 0
    assert second.done == [1]
    assert rows(mirror, "SELECT state, resumptions FROM runs WHERE run_id = 2") == [("finished", 1)]
