"""Which runs of a mirror are full, by the runs before them; Airflow is not needed for that."""

import pytest

from backread import Mirror
from backread.integrations.airflow.full_runs import full_is_due, why_full

HOUR, DAY = 3600.0, 86_400.0


def full_hours(starts: list[float], **rule: float | None) -> list[float]:
    """When those of some runs that were full began, in hours; each begins at its start."""
    runs: list[tuple[str, float]] = []
    for start in starts:
        given = {"every": None, "every_runs": None, **rule}
        due = why_full(runs, start, **given)  # type: ignore[arg-type]
        runs.append(("incremental" if due is None else "full", start))
    return [start / HOUR for mode, start in runs if mode == "full"]


def test_once_a_day_is_at_the_same_hour_though_schedules_are_early_and_late():
    late = [0.0, 9.0, 3.0, 12.0, 1.0]
    starts = [hour * HOUR + late[hour % 5] for hour in range(24 * 7)]
    assert [round(hour) for hour in full_hours(starts, every=DAY)] == [24 * day for day in range(7)]


@pytest.mark.parametrize("gap", [5 / 60, 1, 6, 24])
def test_no_full_run_is_missed_at_any_schedule(gap):
    starts = [turn * gap * HOUR for turn in range(int(24 * 10 / gap))]
    full = full_hours(starts, every=DAY)
    assert full == pytest.approx([24.0 * day for day in range(10)])


def test_manual_runs_between_move_nothing():
    starts = sorted([hour * HOUR for hour in range(72)] + [22.5 * HOUR, 23.2 * HOUR, 30.1 * HOUR])
    assert full_hours(starts, every=DAY) == [0, 24, 48]


def test_one_in_so_many_runs():
    starts = [turn * HOUR for turn in range(10)]
    assert full_hours(starts, every_runs=4) == [0, 4, 8]
    assert full_hours(starts, every_runs=1) == list(range(10))


def test_a_mirror_s_own_runs_count(backread_mock, tmp_path):
    pytest.importorskip("duckdb")
    folder = str(tmp_path / "chats")
    assert full_is_due(folder, DAY, None) == "this mirror has no full run yet"
    assert full_is_due(folder, None, None) is None
    with backread_mock.client() as client:
        Mirror(folder).sync(client)
        assert full_is_due(folder, DAY, None) == "this mirror has no full run yet"
        Mirror(folder).sync(client, mode="full")
        assert full_is_due(folder, DAY, 2) is None
        assert full_is_due(folder, 0, None) is not None
        Mirror(folder).sync(client)
    assert full_is_due(folder, None, 2) == "the last full run was 2 runs ago, and one in 2 is full"


def test_a_partial_run_keeps_its_mode(backread_mock, tmp_path):
    """Until it is finished; runs over some users are no runs here."""
    pytest.importorskip("duckdb")
    folder = str(tmp_path / "chats")
    mirror = Mirror(folder)
    with backread_mock.client() as client:
        mirror.sync(client, mode="full")
        user_id = client.users.page(limit=1).items[0].id
        assert mirror.sync(client, users=[user_id], max_requests=1).partial
        assert full_is_due(folder, None, 2) is None
        assert full_is_due(folder, 0, None) is not None
        assert mirror.sync(client, max_requests=2).partial
        assert full_is_due(folder, 0, None) is None
        assert full_is_due(folder, None, 2) is None
        mirror.sync(client)
    assert full_is_due(folder, None, 2) == "the last full run was 2 runs ago, and one in 2 is full"
