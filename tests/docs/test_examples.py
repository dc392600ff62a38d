"""Programs of examples/ run against the mock, as does what an optimised build is trained on."""

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backread.testing import World
from helpers.command_line import SECONDS, settings_of

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason="the wheel check takes the tests along, not the examples"
)


def run(*arguments: object, folder: Path, server: Any = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **(settings_of(server) if server else {}), "PYTHONUTF8": "1"},
        timeout=SECONDS,
    )


def test_unanswered(backread_server, tmp_path):
    pytest.importorskip("duckdb")
    program = EXAMPLES / "unanswered.py"
    done = run(program, "chats", folder=tmp_path, server=backread_server)
    assert (done.returncode, done.stderr) == (0, "")
    first, *waiting = done.stdout.splitlines()
    world = backread_server.world
    assert first.startswith(f"{world.total_users} users, {world.total_messages} messages, ")
    assert len(waiting) == 10
    assert waiting == sorted(waiting, key=lambda line: line[:16])


def test_processes_land_every_message(backread_server, tmp_path):
    pytest.importorskip("pyarrow")
    program = EXAMPLES / "many-workers" / "processes.py"
    done = run(program, "landed", folder=tmp_path, server=backread_server)
    assert (done.returncode, done.stderr) == (0, "")
    rows = f"{backread_server.world.total_messages} messages in 8 files"
    assert done.stdout.splitlines() == [rows, "certificate: linked"]


@pytest.fixture
def response_times(tmp_path: Path) -> Path:
    """The project away from the checkout, as somebody who copied it has it."""
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    return shutil.copytree(EXAMPLES / "response-times", tmp_path / "project", ignore=ignored)


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.long)], ids=["alone", "two-workers"]
)
def test_the_project_passes_its_suite(response_times, workers):
    if workers and importlib.util.find_spec("xdist") is None:
        pytest.skip("not installed: pytest-xdist")
    done = run("-m", "pytest", "-p", "no:cacheprovider", *workers, folder=response_times)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_the_project_reports(backread_server, response_times):
    world = backread_server.world
    wrote = sum(bool(world.message_ids(each)) for each in world.user_ids())
    for dialect, doubted in (("documented", False), ("documented total=null", True)):
        with backread_server.lane(dialect=dialect) as lane:
            done = run("-m", "response_times", folder=response_times / "src", server=lane)
        assert (done.returncode, done.stderr) == (0, "")
        lines = done.stdout.splitlines()
        assert lines[0] == f"{world.total_messages} messages of {wrote} users"
        assert lines[1].startswith("Monday ")
        assert [line.startswith("this may not be all: ") for line in lines[-2:]] == [False, doubted]


def test_the_notebook_runs(monkeypatch):
    for package in ("nbclient", "nbformat", "matplotlib", "polars", "pyarrow", "duckdb"):
        pytest.importorskip(package)
    monkeypatch.syspath_prepend(ROOT / "tools")
    tool = importlib.import_module("execute_notebook")
    notebook = tool.executed(EXAMPLES / "notebook" / "chats.ipynb")
    assert any("image/svg+xml" in each.get("data", {}) for each in outputs(notebook))


def outputs(notebook: Any) -> list[dict[str, Any]]:
    return [output for cell in notebook["cells"] for output in cell.get("outputs", [])]


def test_the_training_of_an_optimised_build_runs(monkeypatch):
    pytest.importorskip("pyarrow")
    pytest.importorskip("duckdb")
    monkeypatch.syspath_prepend(ROOT / "tools")
    training = importlib.import_module("train_build")
    training.train(World(users=3, messages_per_user=2))
    training.train(World.from_jsonl(training.escaped(2, 3, 5)))
