"""``sync``, ``runs`` and ``demo`` as a shell sees them."""

import json
import re
import shlex
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from backread.cli.sync import progress
from backread.mirror import Mirror, SyncProgress
from backread.testing import MockServer, World
from helpers.command_line import COMMAND, settings_of, wait_for


def test_sync_says_how_it_goes_and_what_it_did(backread, server, tmp_path):
    folder = tmp_path / "chats"
    done = backread("sync", folder)
    assert done.code == 0
    assert done.error.splitlines()[0].startswith("reading: 0 users")
    assert done.error.splitlines()[-1].startswith("finished: 120 of 120 users")
    assert f"{server.world.total_messages:,} messages added" in done.out
    assert "120 users" in backread("sync", folder, "--full").out
    lines = backread("runs", folder, "--format", "table").out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["run", "mode"],
        ["2", "full"],
        ["1", "incremental"],
    ]
    assert len(backread("runs", folder, "--limit", 1).out.splitlines()) == 1


def test_a_budget_ends_a_sync_without_an_error_and_later_ones_complete_the_run(backread, tmp_path):
    folder = tmp_path / "chats"
    done = backread("sync", folder, "--max-requests", 30, "--json")
    first = json.loads(done.out)
    assert (done.code, done.out.count("\n"), first["state"], done.error) == (0, 1, "partial", "")
    assert first["lists_done"] + first["lists_left"] == 120
    second = json.loads(backread("sync", folder, "--max-requests", 50, "--format", "json").out)
    assert (first["requests"], second["requests"], second["run"]["requests"]) == (30, 50, 80)
    assert second["run"]["users"] == first["users"] + second["users"]
    third = backread("sync", folder, "--max-requests", 10, "--format", "text")
    assert "; 10 requests in " in third.out
    assert " read, 90 requests in " in third.out
    assert "finished" in backread("sync", folder, "--no-publish").error
    assert "partial" in backread("runs", folder, "--format", "table").out


def test_given_users_are_read_alone(backread, server, tmp_path):
    known, missing = server.world.user_ids()[7], max(server.world.user_ids()) + 1
    done = backread("sync", tmp_path / "chats", "--user", known, "--user", missing)
    assert "1 user and" in done.out
    assert "users uncertified (only the given users were read)" in done.out
    assert f"not known to the service: user {missing}" in done.out
    for wrong, named in (
        (("--user", 3, "--full"), "--user cannot be given for a full run"),
        (("--max-seconds", 0), "--max-seconds"),
        (("--memory-limit", "little"), "--memory-limit must be bytes"),
        (("--max-staleness-days", 1e300), "'--max-staleness-days'"),
    ):
        done = backread("sync", tmp_path / "chats", *wrong)
        assert (done.code, named in done.line) == (2, True), done.line


def test_runs_say_how_lists_were_read_and_what_stopped_a_run(backread, tmp_path, monkeypatch):
    folder = tmp_path / "chats"
    with MockServer(World(seed=11, users=30, messages_per_user=(50, 150))) as server:
        for name, value in settings_of(server).items():
            monkeypatch.setenv(name, value)
        command = ("sync", folder)
        server.on("messages").fail("status(500)")
        assert backread(*command, "--max-retries", 0).code == 5
        said = "; it was stopped while reading by ServerError: "
        shown = backread("runs", folder, "--format", "table")
        assert said in shown.out + shown.error
        doctor = " ".join(backread("doctor", folder).out.split())
        assert "before its end, while reading: ServerError: " in doctor
        server.clear_faults()
        assert backread(*command).out.startswith("run 1 (resumed): ")
        assert "read only at their end" in backread(*command).out
    heading, *runs = backread("runs", folder, "--format", "table").out.splitlines()
    assert heading.split()[-3:] == ["lists_read", "resumed", "error"]
    assert "end " in runs[0]
    assert "ServerError" in runs[1]


def test_a_second_sync_ends_with_9_and_runs_tell_a_running_sync_from_a_killed_one(
    backread, tmp_path, monkeypatch
):
    folder = tmp_path / "chats"
    with MockServer(World(seed=11, users=300, messages_per_user=(1, 5))) as server:
        for name, value in settings_of(server).items():
            monkeypatch.setenv(name, value)
        server.on("messages").fail("latency(250)")
        with subprocess.Popen([*COMMAND, "sync", str(folder)]) as running:
            mirror = Mirror(folder)
            wait_for(lambda: (run := mirror.unfinished_run) and run.lists_left is not None, running)
            by = f"process {running.pid} on "
            for command in ("sync", folder), ("forget", folder, 1):
                second = backread(*command)
                assert (second.code, second.out) == (9, "")
                assert f"is being synced by {by}" in second.error
            skipped = backread("sync", folder, "--if-running", "skip")
            assert (skipped.code, skipped.out) == (0, "")
            assert "skipped, because another process is writing to " in skipped.error
            shown = backread("runs", folder, "--format", "table").out
            row = json.loads(backread("runs", folder).out)
            running.kill()
        assert shown.startswith("run 1 (incremental), begun ")
        assert f"; it is running, by {by}" in shown
        assert (row["run_id"], row["mode"], row["state"]) == (1, "incremental", "running")
        assert row["process"].startswith(by)
        assert row["lists_left"] <= 300
        assert (
            "; it was killed; the next sync continues it"
            in backread("runs", folder, "--format", "table").out
        )
        [line] = backread("runs", folder).out.splitlines()
        assert (json.loads(line)["state"], json.loads(line)["process"]) == ("killed", None)
        server.clear_faults()
        assert backread("sync", folder).code == 0
    [line] = backread("runs", folder).out.splitlines()
    row = json.loads(line)
    assert (row["run_id"], row["state"], row["resumptions"]) == (1, "finished", 1)
    assert row["lists_by_certificate"] == {"snapshot": 300}
    assert datetime.fromisoformat(row["started_at"]) < datetime.fromisoformat(row["ended_at"])


NOW = SyncProgress(1_500, 1_500, 4_763, 445, 11.0, "reading", 416, 1_500, 210.0, 38.2, 28.4)


@pytest.mark.parametrize(
    ("width", "now", "said", "bar"),
    [
        (120, NOW, "416/1,500 lists · 4,763 msgs · 445 req · 38 req/s · 0:28 left", True),
        (58, NOW, "416/1,500 lists · 38 req/s · 0:28 left", False),
        (80, replace(NOW, phase="publishing"), "416/1,500 lists · 4,763 msgs", False),
    ],
)
def test_terminal_of_any_width_is_shown_the_phase_and_whole_numbers(
    monkeypatch, terminal, width, now, said, bar
):
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", str(width))
    with progress() as tell:
        tell(now)
    [line] = [
        line for line in re.split(r"[\r\n]", terminal.getvalue()) if line.startswith(now.phase)
    ]
    assert said in line
    assert len(line) <= width
    assert "…" not in line
    assert ("█" in line) is bar


def test_each_command_refuses_a_mirror_of_another_format(backread, tmp_path):
    folder = tmp_path / "chats"
    backread("sync", folder, "--user", 42)
    manifest = folder / "published" / "current" / "snapshot.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_bytes()) | {"format": 4}))
    with duckdb.connect(folder / "mirror.duckdb") as connection:
        connection.execute("UPDATE meta SET value = '4' WHERE key = 'schema_version'")
    for name, *arguments in (
        ["sync"], ["runs"], ["tables"], ["sql", "FROM users"], ["show", 42], ["search", "hello"],
        ["changes"], ["export", tmp_path / "out.xlsx"], ["report"], ["browse", "--no-open"],
        ["forget", 42], ["mcp"],
    ):  # fmt: skip
        done = backread(name, folder, *arguments)
        assert done.code == 7, name
        assert "has format 4, and this backread reads only" in done.line
        assert "sync into a new folder" in done.line
    done = backread("doctor", folder)
    assert done.code == 7
    assert "sync into a new folder" in " ".join(done.out.split())


def test_sync_removes_what_is_gone_for_longer(backread, tmp_path, monkeypatch):
    folder = tmp_path / "chats"
    with MockServer(World(seed=3, users=9, messages_per_user=2)) as server:
        for name, value in settings_of(server).items():
            monkeypatch.setenv(name, value)
        command = ("sync", folder)
        assert backread(*command).code == 0
        server.world.remove_user(server.world.user_ids()[-1])
        assert backread(*command, "--full", "--retention-days", 30).code == 0
        assert len(Mirror(folder).sql("FROM users").fetchall()) == 9
        assert backread(*command, "--retention-days", 0).code == 0
        assert len(Mirror(folder).sql("FROM users").fetchall()) == 8


@pytest.fixture
def small_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A demo in the current folder, of fewer users than the pages of docs/ run it with."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("backread.cli.demo.USERS", 200)


def test_the_demo_shows_two_runs_three_answers_and_what_to_type_next(
    backread, small_demo, monkeypatch
):
    opened: list[Path] = []
    monkeypatch.setattr("backread.cli.serve.browse", opened.append)
    for _ in range(2):
        # Once more over what the first one left.
        done = backread("demo", "my chats", "--until", "2026-11-23", "--open")
        assert done.code == 0
        assert "First sync into my chats: 200 users, " in done.out
        assert re.search("Second sync, after changes: [0-9]+ rows added, 20 updated", done.out)
        assert "Both are proved to be complete.\n" in done.out
        assert done.out.count("?\n") == 3
        assert max(map(len, done.out.splitlines())) <= 84
        assert len(done.out.splitlines()) <= 24
    assert opened == [Path("my chats")] * 2
    lines = [each.strip() for each in done.out.splitlines() if each.startswith("  backread ")]
    assert [shlex.split(each)[1:3] for each in lines] == [
        ["browse", "my chats"],
        ["search", "my chats"],
        ["report", "my chats"],
    ]
    [(last,)] = Mirror("my chats").sql("SELECT max(created_at) FROM messages").fetchall()
    assert timedelta(0) < datetime(2026, 11, 23, tzinfo=UTC) - last < timedelta(days=2)


def test_the_demo_ends_now_removes_no_other_folder_and_is_not_synced(backread, small_demo):
    assert backread("demo").code == 0
    newest = """
        SELECT (SELECT max(created_at) FROM messages), max(greatest(online_at, updated_at))
        FROM users
    """
    [(written, seen)] = Mirror("chats").sql(newest).fetchall()
    now = datetime.now(UTC)
    assert now - timedelta(days=2) < written < seen <= now
    Path("mine").mkdir()
    Path("mine/notes.txt").touch()
    refused = backread("demo", "mine")
    assert refused.code == 2
    assert "mine" in refused.line
    assert Path("mine/notes.txt").exists()
    done = backread("sync", "chats")
    assert (done.code, "demo" in done.line) == (7, True)
