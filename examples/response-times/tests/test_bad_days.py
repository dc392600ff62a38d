"""What the service does on bad days, and what the report makes of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from backread import Client, ServerError
from backread.testing import Lane, World

from response_times import read

WORLD = World(seed=5, users=60, messages_per_user=(0, 40))


@pytest.mark.backread(world=WORLD, clock="virtual")
class TestFailures:
    def test_an_outage_of_a_minute_changes_nothing(
        self, backread_mock: Lane, backread_client: Client
    ) -> None:
        calm = read(backread_client)
        backread_mock.fault("users: status(503, retry_after=60) x1")
        assert read(backread_client) == calm
        # The minute passed on the lane's clock, not on ours.
        assert backread_mock.clock.slept == [60]

    def test_answers_that_are_late_or_cut_off_change_nothing(
        self, backread_mock: Lane, backread_client: Client
    ) -> None:
        calm = read(backread_client)
        backread_mock.fault("any p=0.2: latency(lognormal(800, 1))")
        backread_mock.fault("messages every=3: truncate(at=30)")
        assert read(backread_client) == calm

    @pytest.mark.backread(faults="messages: status(500)")
    def test_an_outage_that_lasts_is_an_error_and_no_report(self, backread_client: Client) -> None:
        with pytest.raises(ServerError):
            read(backread_client)


@pytest.mark.backread(world=WORLD, dialect="hostile")
def test_nulls_and_unknown_senders_are_left_out_and_counted(
    backread_mock: Lane, backread_client: Client
) -> None:
    report = read(backread_client)
    assert report.messages > 0
    assert 0 < report.without_time < report.messages
    assert all(taken >= timedelta(0) for taken in report.median_by_weekday.values())
    assert {each.user_id for each in report.waiting} <= set(backread_mock.world.user_ids())


@pytest.mark.backread(world={"seed": 5, "users": 150, "messages_per_user": (1, 5)})
def test_no_user_is_lost_while_the_list_moves(backread_mock: Lane, backread_client: Client) -> None:
    # Five users at the front go: five others slip from the second page onto the first.
    backread_mock.between_pages("users", after=1).delete(first=5)
    report = read(backread_client)
    audit = backread_mock.audit(report.users)
    assert audit.ok
    assert audit.expected == 145
    # Those who went before their messages were read are all that is in doubt.
    assert report.doubt == "5 users were gone when their messages were requested"


@pytest.mark.backread(
    world={"seed": 5, "users": 150, "messages_per_user": (1, 5)}, dialect="documented order=ties"
)
def test_a_list_without_a_fixed_order_is_a_doubt(backread_client: Client) -> None:
    report = read(backread_client)
    assert report.doubt is not None
    assert "users" in report.doubt


@pytest.mark.backread(world=WORLD)
def test_a_user_who_goes_before_being_read_is_a_doubt(
    backread_mock: Lane, backread_client: Client
) -> None:
    gone = WORLD.user_ids()[7]
    backread_mock.between_pages("users", after=1).delete(ids=[gone])
    report = read(backread_client)
    assert report.messages == backread_mock.world.total_messages
    assert report.doubt is not None
    assert "gone" in report.doubt
