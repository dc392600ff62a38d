"""The checks of the sensor for new messages: what is logged, what ends them, what is news."""

import asyncio
import logging
import shutil
from pathlib import Path

import pytest

from backread import Mirror
from backread.integrations.airflow.checks import Checks, PermanentError
from backread.integrations.airflow.new_messages_query import Mark, News, mark_of
from backread.testing import Lane, World

LOG = logging.getLogger("test_airflow_checks")


def checked(lane: Lane, checks: Checks, times: int = 1) -> News | None:
    """What that many checks in a row found."""

    async def main() -> News | None:
        async with lane.async_client(max_retries=0, on_rate_limit="raise") as client:
            for _ in range(times):
                if (news := await checks.check(client)) is not None:
                    return news
        return None

    return asyncio.run(main())


def row_of_checks(mark: Mark | None = None, mirror: Path | None = None) -> Checks:
    folder = None if mirror is None else str(mirror)
    return Checks("chats", mark or Mark(), 12, LOG, folder)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, LOG.name)
    return caplog


def test_a_dead_service_is_a_line_for_each_check(backread_mock, log):
    backread_mock.fault("users: status(503)")
    checks = row_of_checks()
    assert checked(backread_mock, checks, times=7) is None
    said = [record.getMessage() for record in log.records if record.name == LOG.name]
    assert [text.partition(": GET")[0] for text in said] == [
        f"Check failed ({count} in a row)" for count in range(1, 8)
    ]
    assert checks.failure is not None
    assert "503" in checks.failure
    backread_mock.clear_faults()
    checked(backread_mock, checks)
    assert checks.failure is None


@pytest.mark.parametrize(
    ("status", "field"), [(401, "password"), (403, "password"), (404, "host"), (406, "vendor")]
)
def test_what_waiting_does_not_mend_names_the_connection_and_its_field(
    backread_mock, status, field
):
    backread_mock.fault(f"users: status({status})")
    with pytest.raises(PermanentError) as caught:
        checked(backread_mock, row_of_checks())
    said = str(caught.value)
    assert said.startswith("the connection 'chats': GET /external/users")
    assert f"the service answered {status}" in said
    assert field in said
    assert backread_mock.secret not in said


def test_a_wait_that_the_service_asks_for_is_no_failure(backread_mock, log):
    backread_mock.fault("users: status(429, retry_after=90) x1")
    checks = row_of_checks()
    assert checked(backread_mock, checks) is None
    assert (checks.asked_wait, checks.failure) == (90.0, None)
    assert "wait of 90 s" in log.text
    backread_mock.clear_faults()
    checked(backread_mock, checks)
    assert checks.asked_wait == 0.0


def test_checks_that_find_nothing_are_logged_every_few_minutes(backread_mock, log, monkeypatch):
    now = 0.0
    monkeypatch.setattr("backread.integrations.airflow.intervals.monotonic", lambda: now)
    checks = row_of_checks()
    for _ in range(12):
        checked(backread_mock, checks)
        now += 60.0
    said = [record.getMessage() for record in log.records if record.name == LOG.name]
    assert said == ["Nothing new in 6 checks", "Nothing new in 11 checks"]


@pytest.mark.backread(world=World(seed=7, users=250, messages_per_user=(0, 3)))
def test_another_number_of_users_is_news(backread_mock):
    checks = row_of_checks()
    assert checked(backread_mock, checks, times=2) is None
    # In the middle of the list, where no check looks.
    backread_mock.world.remove_user(backread_mock.world.user_ids()[120])
    assert checked(backread_mock, checks) == {
        "user_id": None,
        "created_at": None,
        "reason": "249 users, not 250",
    }


@pytest.fixture
def mirror(backread_mock: Lane, tmp_path: Path) -> Path:
    pytest.importorskip("duckdb")
    with backread_mock.client() as client:
        Mirror(tmp_path / "chats").sync(client)
    return tmp_path / "chats"


def test_users_that_were_added_since_the_sync_are_news(backread_mock, mirror):
    mark = mark_of(Mirror(mirror))
    assert checked(backread_mock, row_of_checks(mark, mirror), times=2) is None
    count = len(backread_mock.world.user_ids())
    backread_mock.world.add_users(2)
    found = checked(backread_mock, row_of_checks(mark, mirror))
    assert found is not None
    assert found["reason"] == f"{count + 2} users, not {count}"


def sync_a_part(mock: Lane, mirror: Path) -> None:
    with mock.client(max_concurrency=1) as client:
        report = Mirror(mirror).sync(client, max_requests=6)
    assert report.partial
    assert report.users_added


def sync_new_users(mock: Lane, mirror: Path) -> None:
    with mock.client() as client:
        Mirror(mirror).sync(client, users=mock.world.user_ids()[-2:])


def sync_the_first_part(mock: Lane, mirror: Path) -> None:
    shutil.rmtree(mirror)
    sync_a_part(mock, mirror)


@pytest.mark.parametrize("sync", [sync_a_part, sync_new_users, sync_the_first_part])
def test_users_of_a_run_that_is_not_finished_are_no_news(backread_mock, mirror, sync):
    backread_mock.world.add_users(2)
    sync(backread_mock, mirror)
    mark = mark_of(Mirror(mirror))
    assert mark.held == len(backread_mock.world.user_ids())
    assert checked(backread_mock, row_of_checks(mark, mirror), times=2) is None


def test_a_run_over_given_users_does_not_hide_messages_of_others(backread_mock, mirror):
    [(started_at,)] = Mirror(mirror).sql("SELECT started_at FROM runs").fetchall()
    user_id = backread_mock.world.user_ids()[-1]
    # By the service's clock, which may be ahead of ours.
    [message_id] = backread_mock.world.add_messages(user_id, 1)
    backread_mock.world.edit_message(user_id, message_id, created_at="2099-01-01T00:00:00Z")
    sync_new_users(backread_mock, mirror)
    assert mark_of(Mirror(mirror)).since == started_at


def test_a_user_in_the_place_of_another_is_news(backread_mock, mirror):
    mark = mark_of(Mirror(mirror))
    backread_mock.world.remove_user(backread_mock.world.user_ids()[0])
    [user_id] = backread_mock.world.add_users(1)
    found = checked(backread_mock, row_of_checks(mark, mirror))
    assert found is not None
    assert (found["user_id"], found["reason"]) == (user_id, "a user that is not in the mirror")
    # A triggerer on another machine may not see the folder: then only counts and times tell.
    assert checked(backread_mock, row_of_checks(mark, mirror / "elsewhere")) is None


@pytest.mark.parametrize("position", [0, 15])
def test_a_forgotten_user_is_no_news(backread_mock, mirror, position):
    Mirror(mirror).forget(backread_mock.world.user_ids()[position])
    with backread_mock.client() as client:
        Mirror(mirror).sync(client)
    mark = mark_of(Mirror(mirror))
    assert checked(backread_mock, row_of_checks(mark, mirror), times=2) is None
    backread_mock.world.add_users(1)
    found = checked(backread_mock, row_of_checks(mark, mirror))
    assert found is not None


def test_a_count_below_that_of_the_mirror_is_no_news(backread_mock, mirror):
    """A capped or cached count stays so, whatever is synced."""
    backread_mock.dialect = "total=capped"
    assert checked(backread_mock, row_of_checks(mark_of(Mirror(mirror)), mirror), times=2) is None
