"""What a sync says of its progress: rates as they are, and a time left that can be trusted."""

import random
import subprocess
import sys

import pytest

from helpers.mirrors import BatchSource, Progress, batch

pytest.importorskip("duckdb")

from backread.mirror import Mirror, SyncProgress
from backread.mirror.sync.progress import LEAST_LISTS, Meter, Speed


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def simulated(
    seconds: list[float], total: int | None, *, before: int = 0, lists: int = 20
) -> list[tuple[float, Speed]]:
    """What is said after each batch, with the time that passed; each batch ends some lists."""
    clock = Clock()
    meter = Meter(clock)
    done, read = before, 0
    said = [(0.0, meter.observe(read, 0, done, total))]
    for each in seconds:
        clock.now += each
        done, read = done + lists, read + 1000
        said.append((clock.now - 1000.0, meter.observe(read, 0, done, total)))
    return said


def test_time_left_is_that_of_a_steady_pace():
    said = simulated([2.0] * 50, 1000)
    for passed, speed in said[2:]:
        assert speed.seconds_left == pytest.approx(100.0 - passed, abs=1e-6)
        assert speed.rate == pytest.approx(500.0)


def test_nothing_is_said_without_ground():
    assert [speed.seconds_left for _, speed in simulated([], 1000)] == [None]
    # How many lists there are is not known yet.
    assert {speed.seconds_left for _, speed in simulated([2.0] * 9, None)} == {None}
    # Too short a time, and too few lists.
    assert simulated([0.5], 1000)[-1][1].seconds_left is None
    assert simulated([60.0], 1000, lists=LEAST_LISTS - 1)[-1][1].seconds_left is None
    assert simulated([60.0], 1000, lists=LEAST_LISTS)[-1][1].seconds_left is not None


def test_lists_that_an_earlier_sync_had_finished_tell_nothing_of_the_pace():
    [_, (_, speed)] = simulated([10.0], 1000, before=900)
    assert speed.seconds_left == pytest.approx(40.0)


def test_time_left_does_not_jump_with_each_batch():
    chance = random.Random(3)
    seconds = [chance.uniform(0.2, 3.8) for _ in range(200)]
    said = simulated(seconds, 20 * len(seconds))
    whole = sum(seconds)
    for passed, speed in said[20:]:
        assert speed.seconds_left is not None
        assert abs(speed.seconds_left - (whole - passed)) < 0.35 * (whole - passed) + 5


def test_time_left_follows_a_pace_that_changes():
    seconds = [1.0] * 100 + [4.0] * 100
    said = simulated(seconds, 20 * len(seconds))
    passed, speed = said[140]
    assert speed.seconds_left == pytest.approx(sum(seconds) - passed, rel=0.25)


def test_time_left_grows_while_nothing_ends_and_is_never_negative():
    clock = Clock()
    meter = Meter(clock)
    meter.observe(0, 0, 0, 100)
    left = []
    for lists, total in [(50, 100)] + [(50, 100)] * 20 + [(99, 100), (100, 100), (100, 90)]:
        clock.now += 5
        speed = meter.observe(0, 0, lists, total)
        assert speed.seconds_left is not None
        left.append(speed.seconds_left)
    assert left[:21] == sorted(left[:21])
    assert left[20] > 2 * left[0]
    assert left[-2:] == [0.0, 0.0]
    assert min(left) >= 0


def test_rates_without_any_time_are_nothing():
    meter = Meter(Clock())
    assert meter.observe(0, 0, 0, None) == Speed(0.0, 0.0, None)
    assert meter.observe(100, 3, 50, 60) == Speed(0.0, 0.0, None)


class PacedSource(BatchSource):
    """Says how far it has come, as the core does."""

    def _sync_run(self, known, **options):  # type: ignore[no-untyped-def]
        reading = super()._sync_run(known, **options)
        reading._progress = Progress(users_total=2, lists_total=7, lists_done=3)
        return reading


def test_on_progress_is_given_what_the_reading_says(tmp_path):
    seen: list[SyncProgress] = []
    PacedSource(batch([{"id": 1}]), batch([{"id": 2}], [{"user_id": 1, "id": 1}])).sync_into(
        tmp_path / "chats", on_progress=seen.append
    )
    assert [each.phase for each in seen] == [
        "reading",
        "reading",
        "reading",
        "finishing",
        "publishing",
        "finished",
    ]
    last = seen[2]
    assert (last.users, last.users_total, last.messages, last.rows) == (2, 2, 1, 3)
    assert (last.lists, last.lists_total, last.requests) == (3, 7, 2)
    assert last.rate > 0
    # What has ended has no pace.
    assert {(each.pace, each.rate, each.seconds_left) for each in seen[3:]} == {(0.0, 0.0, None)}


def test_full_sync_says_when_it_asks_by_id(tmp_path):
    mirror = Mirror(tmp_path / "chats")
    BatchSource(batch([{"id": 1}, {"id": 2}], swept="snapshot")).sync_into(mirror.folder)
    seen: list[SyncProgress] = []
    source = BatchSource(batch([{"id": 1}], swept="linked"), answers=[batch([{"id": 2}])])
    report = source.sync_into(mirror.folder, "full", on_progress=seen.append)
    phases = list(dict.fromkeys(each.phase for each in seen))
    assert phases == ["reading", "checking", "finishing", "publishing", "finished"]
    assert seen[-1].requests == report.requests == 4
    assert (seen[-1].users, report.users) == (2, 2)


def test_duckdb_shows_no_bar_where_python_is_interactive(tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from backread.mirror.store.database import open_database\n"
        "with open_database(Path(sys.argv[1])) as connection:\n"
        "    query = \"SELECT current_setting('enable_progress_bar')\"\n"
        "    print(connection.execute(query).fetchall())"
    )
    # To DuckDB, a program without a file is interactive.
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[(False,)]\n"
