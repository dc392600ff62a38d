"""Ctrl-C where Python or a library may lose it: while a module is imported or a folder removed."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from backread._files.unfinished import private_folder, remove_folder
from helpers.python_process import SECONDS

fcntl = pytest.importorskip("fcntl", reason="Windows sends SIGINT to a console")

LOSES_IT = """
import os, signal
class Lost:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1_000_000): pass
Lost()
__version__ = "2.1.0"
"""
"""A module in whose import the exception of a signal's handler is lost, as it may be in others."""

LOAD_DUCKDB = """
from backread.mirror.store.engine import load_duckdb
try:
    load_duckdb()
except KeyboardInterrupt:
    raise SystemExit("told") from None
"""

COMMAND = """
from backread.cli import main
sys.argv = ["backread", "sync", "chats"]
main()
"""


@pytest.mark.parametrize(
    ("module", "code", "expected"),
    [
        ("duckdb", LOAD_DUCKDB, (1, "told\n")),
        ("typer", COMMAND, (130, "backread: stopped by Ctrl-C\n")),
    ],
    ids=["DuckDB", "the command"],
)
def test_ctrl_c_during_an_import_is_not_lost(tmp_path, module, code, expected):
    for needed in ("duckdb", "rich"):
        pytest.importorskip(needed)
    (tmp_path / f"{module}.py").write_text(LOSES_IT, encoding="utf-8")
    path = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", path + code], capture_output=True, text=True, timeout=SECONDS
    )
    assert (done.returncode, done.stderr) == expected


def fill(folder: Path) -> None:
    """Puts much into the folder; sends Ctrl-C when some of it is removed."""
    for number in range(3_000):
        (folder / str(number)).mkdir(parents=True)

    def interrupt() -> None:
        while len(list(folder.iterdir())) > 2_990:
            pass
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()


def test_a_folder_is_removed_to_its_end_and_then_ctrl_c_is_raised(tmp_path):
    folder = tmp_path / "folder"
    fill(folder)
    with pytest.raises(KeyboardInterrupt):
        remove_folder(folder)
    assert not folder.exists()


def test_a_private_folder_is_unlocked_all_the_same(tmp_path):
    private = private_folder(tmp_path, "any")
    folder = private.__enter__()
    descriptor = os.open(folder, os.O_RDONLY)
    fill(folder)
    with pytest.raises(KeyboardInterrupt):
        private.__exit__(None, None, None)
    # Its lock is of the file, not of the process.
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("before", ["pass", "run_to_its_end(int)"], ids=["first", "later"])
def test_work_in_a_finalizer_does_not_hang(before):
    code = f"""
from backread._interruptible import run_to_its_end
{before}
class Last:
    def __del__(self):
        print(run_to_its_end(lambda: "ran"))
last = Last()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
