"""``sync``, ``report`` and ``demo`` as a shell sees them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from backread.testing import MockServer, World
from command_line import COMMAND, SECONDS, Done, posix_only, settings_of, wait_for

pytest.importorskip("duckdb")
pytest.importorskip("typer")
pytest.importorskip("rich")


def test_sync_says_how_it_goes_and_what_it_did(
    backread: Callable[..., Done], server: MockServer, tmp_path: Path
) -> None:
    folder = tmp_path / "chats"
    done = backread("sync", folder)
    assert done.code == 0
    assert done.error.splitlines()[0].startswith("reading: 0 users")
    assert done.error.splitlines()[-1].startswith("finished: 120 of 120 users")
    assert f"{server.world.total_messages:,} messages added" in done.out
    assert "120 users" in backread("sync", folder, "--full").out
    lines = backread("report", folder).out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["run", "mode"],
        ["2", "full"],
        ["1", "incremental"],
    ]
    assert len(backread("report", folder, "--limit", 1).out.splitlines()) == 2


def test_sync_keeps_off_the_folder_of_the_demo(
    backread: Callable[..., Done], tmp_path: Path
) -> None:
    (tmp_path / ".backread-demo").touch()
    done = backread("sync", tmp_path)
    assert done.code == 2
    assert "demo" in done.line


@posix_only
@pytest.mark.slow
def test_ctrl_c_during_a_sync_says_that_it_can_go_on(
    backread: Callable[..., Done], tmp_path: Path
) -> None:
    folder = tmp_path / "chats"
    world = World(seed=1, users=2_000, messages_per_user=(100, 300))
    with (
        MockServer(world) as server,
        subprocess.Popen(
            [*COMMAND, "sync", str(folder)],
            env=os.environ | settings_of(server),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        wait_for(lambda: server.counts()["messages"] > 200, process)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (130, "")
    assert error.splitlines()[-1].startswith("backread: stopped; what was committed is kept")
    assert "Traceback" not in error


@pytest.mark.slow
def test_demo_shows_two_runs_and_three_answers(
    backread: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        # Once more over what the first one left.
        done = backread("demo")
        assert done.code == 0
        assert "2,000 users" in done.out
        assert "run 1: 2,000 users" in done.out
        assert "run 2: 2,005 users" in done.out
        assert done.out.count("?\n") == 3
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    refused = backread("demo", "mine")
    assert refused.code == 2
    assert "mine" in refused.line
    assert (tmp_path / "mine" / "notes.txt").exists()
