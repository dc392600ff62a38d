"""The sensor in one process, by ``DAG.test``."""

from datetime import UTC, datetime, timedelta
from time import monotonic

import pytest
from dag_files import BOTH, states, value_of

from backread import Mirror
from backread.testing import Lane


def write_now(lane: Lane) -> int:
    """A new message, of this moment; its user."""
    user_id, now = lane.world.user_ids()[3], datetime.now(UTC).isoformat(timespec="milliseconds")
    [message_id] = lane.world.add_messages(user_id, 1)
    lane.world.edit_message(user_id, message_id, created_at=now)
    lane.world.edit_user(user_id, online_at=now)
    return user_id


@pytest.mark.parametrize("how", ["deferrable=True", 'mode="reschedule"', 'mode="poke"'])
def test_the_sensor_finds_a_message_after_a_time(run, lane, connect, how):
    connect(lane)
    since = datetime.now(UTC) - timedelta(hours=1)
    user_id = write_now(lane)
    done = run(
        f"since_{how.partition('=')[0]}_{'poke' in how}",
        f'NewMessagesSensor(task_id="wait", since="{since.isoformat()}", {how})',
    )
    assert states(done) == {"wait": "success"}
    assert value_of(done, "wait")["user_id"] == user_id


@BOTH
def test_the_sensor_finds_what_a_mirror_does_not_hold(run, lane, connect, tmp_path, how):
    connect(lane)
    mirror = Mirror(tmp_path / "chats")
    with lane.client() as client:
        mirror.sync(client)
    sensor = (
        f'NewMessagesSensor(task_id="wait", mirror="{tmp_path}/chats", {how}, '
        "poke_interval=0.2, timeout=2, soft_fail=True)"
    )
    name = how.replace("=", "_")
    assert states(run(f"nothing_{name}", sensor)) == {"wait": "skipped"}
    query = "select user_id from conversations order by last_message_at desc limit 1"
    [(user_id,)] = mirror.sql(query).fetchall()
    lane.world.add_messages(user_id, 1)
    done = run(f"something_{name}", sensor)
    assert states(done) == {"wait": "success"}
    assert value_of(done, "wait")["user_id"] == user_id


def test_the_sensor_waits_as_long_as_the_service_asks(run, lane, connect):
    connect(lane)
    lane.fault("users: status(429, retry_after=3) x1")
    since = datetime.now(UTC) - timedelta(hours=1)
    write_now(lane)
    began = monotonic()
    done = run(
        "asked",
        f'NewMessagesSensor(task_id="wait", since="{since.isoformat()}", poke_interval=0.2, '
        "timeout=60)",
    )
    assert states(done) == {"wait": "success"}
    assert monotonic() - began >= 3
    # Without the wait there would have been some ten more.
    assert lane.counts()["users"] <= 3


@BOTH
@pytest.mark.parametrize(("soft", "ends"), [("True", "skipped"), ("False", "failed")])
def test_a_dead_service_is_waited_for_until_the_timeout(
    run, lane, connect, capsys, how, soft, ends
):
    connect(lane)
    lane.fault("users: status(500)")
    sensor = (
        f'NewMessagesSensor(task_id="wait", since="2026-01-01", {how}, soft_fail={soft}, '
        "poke_interval=0.1, timeout=2)"
    )
    began = monotonic()
    assert states(run(f"dead_{'True' in how}_{ends}", sensor)) == {"wait": ends}
    assert monotonic() - began >= 2
    shown = capsys.readouterr().out
    assert lane.counts()["users"] > 6
    assert shown.count("Check failed (") == lane.counts()["users"]
    assert "retry in" not in shown
    assert "nothing new within timeout=2 s" in shown or "Sensor has timed out" in shown


@BOTH
@pytest.mark.parametrize("status", [401, 403, 404, 406])
def test_what_no_wait_would_mend_fails_the_sensor_at_once(run, lane, connect, how, status):
    """Also with soft_fail: a skip would go unnoticed."""
    connect(lane)
    # With deferrable the second check is the triggerer's.
    lane.fault(f"users offset=0 attempt=2: status({status})")
    sensor = (
        f'NewMessagesSensor(task_id="wait", {how}, soft_fail=True, poke_interval=0.2, retries=3, '
        "timeout=60)"
    )
    began = monotonic()
    assert states(run(f"refused_{status}_{'True' in how}", sensor)) == {"wait": "failed"}
    assert monotonic() - began < 30


@BOTH
def test_never_fail_skips_even_that(run, lane, connect, how):
    connect(lane)
    lane.fault("users: status(401)")
    sensor = f'NewMessagesSensor(task_id="wait", {how}, never_fail=True)'
    assert states(run(f"never_{'True' in how}", sensor)) == {"wait": "skipped"}


@BOTH
def test_a_mirror_that_is_not_there_yet(run, lane, connect, tmp_path, capsys, how):
    connect(lane)
    sensor = f'NewMessagesSensor(task_id="wait", mirror="{tmp_path}/chats", {how}'
    name = f"first_{'True' in how}"
    assert states(run(name, f"{sensor}, soft_fail=True)")) == {"wait": "skipped"}
    assert "no synced mirror" in capsys.readouterr().out
    assert states(run(name, f"{sensor})")) == {"wait": "failed"}
    assert "schedule BackreadSyncOperator(mirror=" in capsys.readouterr().out
