"""Which runs of a mirror are full, by its earlier runs; Airflow is not needed for that."""

import pytest

from backread import Mirror
from backread.integrations.airflow import runs
from backread.integrations.airflow.runs import why_full
from backread.testing import World

HOUR, DAY = 3600.0, 86_400.0


def full_hours(monkeypatch: pytest.MonkeyPatch, starts: list[float]) -> list[float]:
    """When the full ones of daily full runs began, in hours; a run begins at each start."""
    begun: list[tuple[str, float, str]] = []
    monkeypatch.setattr(runs, "_runs", lambda folder: begun)
    for start in starts:
        mode = "incremental" if why_full("chats", DAY, start) is None else "full"
        begun.append((mode, start, "finished"))
    return [start / HOUR for mode, start, _ in begun if mode == "full"]


def test_a_daily_full_run_keeps_its_hour_though_starts_vary(monkeypatch):
    late = [0.0, 9.0, 3.0, 12.0, 1.0]
    starts = [hour * HOUR + late[hour % 5] for hour in range(24 * 7)]
    assert [round(hour) for hour in full_hours(monkeypatch, starts)] == [
        24 * day for day in range(7)
    ]


@pytest.mark.parametrize("gap", [5 / 60, 1, 6, 24])
def test_no_full_run_is_missed_at_any_schedule(monkeypatch, gap):
    starts = [turn * gap * HOUR for turn in range(int(24 * 10 / gap))]
    assert full_hours(monkeypatch, starts) == pytest.approx([24.0 * day for day in range(10)])


def test_manual_runs_do_not_move_the_full_run(monkeypatch):
    starts = sorted([hour * HOUR for hour in range(72)] + [22.5 * HOUR, 23.2 * HOUR, 30.1 * HOUR])
    assert full_hours(monkeypatch, starts) == [0, 24, 48]


@pytest.mark.backread(world=World(seed=7, users=20, messages_per_user=(0, 3)))
def test_the_runs_of_the_mirror_count(backread_mock, tmp_path):
    """A partial run keeps its mode; runs over given users do not count."""
    pytest.importorskip("duckdb")
    folder = str(tmp_path / "chats")
    mirror = Mirror(folder)
    assert why_full(folder, None) is None
    assert why_full(folder, DAY) == "this mirror has no full run yet"
    with backread_mock.client() as client:
        mirror.sync(client)
        assert why_full(folder, DAY) == "this mirror has no full run yet"
        mirror.sync(client, mode="full")
        assert why_full(folder, DAY) is None
        user_id = client.users.page(limit=1).items[0].id
        assert mirror.sync(client, users=[user_id], max_requests=1).partial
        assert why_full(folder, 0) == "0.0 hours after the last full run began"
        assert mirror.sync(client, max_requests=2).partial
        assert why_full(folder, 0) is None
