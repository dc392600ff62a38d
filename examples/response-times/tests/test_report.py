"""The figures, on rows for which they were worked out by hand."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from backread import AsyncClient, Client
from backread.testing import Lane, World

from response_times import Waiting, read, read_async

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
TUESDAY = MONDAY + timedelta(days=1)


def message(number: int, at: datetime, who: str, **fields: Any) -> dict[str, Any]:
    """A message as the service sends it, with the fields that matter here."""
    sent = {"id": number, "created_at": at.isoformat(), "sender_type": who}
    return {**sent, "sender": {"id": 900}, "auto_invitation": False, **fields}


ROWS = [
    # Ada is answered after 10 minutes, and is content.
    {
        "id": 1,
        "name": "Ada",
        "messages": [
            message(11, MONDAY + timedelta(hours=9), "user"),
            message(12, MONDAY + timedelta(hours=9, minutes=10), "operator"),
        ],
    },
    # Bo gets an automatic invitation first, is answered after 30 minutes, and asks once more.
    {
        "id": 2,
        "name": "Bo",
        "messages": [
            message(21, MONDAY + timedelta(hours=10), "user"),
            message(22, MONDAY + timedelta(hours=10, minutes=1), "operator", auto_invitation=True),
            message(23, MONDAY + timedelta(hours=10, minutes=30), "operator"),
            message(24, MONDAY + timedelta(hours=11), "user"),
        ],
    },
    # Cy hears from nobody but a bot.
    {
        "id": 3,
        "name": "Cy",
        "messages": [
            message(31, TUESDAY + timedelta(hours=12), "user"),
            message(32, TUESDAY + timedelta(hours=12, seconds=1), "bot"),
        ],
    },
    # Di never wrote.
    {"id": 4, "name": "Di", "messages": []},
]
WORLD = World.from_jsonl(json.dumps(row) for row in ROWS)


@pytest.mark.backread(world=WORLD)
class TestKnownRows:
    def test_the_median_of_ten_and_thirty_minutes_is_twenty(self, backread_client: Client) -> None:
        report = read(backread_client)
        assert report.median_by_weekday == {"Monday": timedelta(minutes=20)}
        assert (len(report.users), report.messages, report.without_time) == (3, 8, 0)

    def test_who_wrote_last_waits(self, backread_client: Client) -> None:
        assert read(backread_client).waiting == (
            Waiting(2, MONDAY + timedelta(hours=11)),
            Waiting(3, TUESDAY + timedelta(hours=12)),
        )

    def test_lists_of_one_page_are_known_to_be_whole(self, backread_client: Client) -> None:
        assert read(backread_client).doubt is None

    def test_an_answer_ends_the_waiting(self, backread_mock: Lane, backread_client: Client) -> None:
        backread_mock.world.edit_message(2, 24, sender_type="operator")
        assert [each.user_id for each in read(backread_client).waiting] == [3]

    def test_the_order_of_the_lists_does_not_matter(
        self, backread_mock: Lane, backread_client: Client
    ) -> None:
        before = read(backread_client)
        backread_mock.dialect = "documented order=newest"
        assert read(backread_client) == before

    def test_both_clients_report_the_same(
        self, backread_client: Client, backread_async_client: AsyncClient
    ) -> None:
        assert asyncio.run(read_async(backread_async_client)) == read(backread_client)

    def test_each_conversation_is_asked_for_once(
        self, backread_mock: Lane, backread_client: Client
    ) -> None:
        read(backread_client)
        assert backread_mock.calls("users").count == 1
        assert backread_mock.calls("messages").count == len(ROWS)


@pytest.mark.backread(world={"users": 0})
def test_an_account_without_users(backread_client: Client) -> None:
    report = read(backread_client)
    assert (report.users, report.messages, report.waiting) == (frozenset(), 0, ())
    assert report.median_by_weekday == {}
