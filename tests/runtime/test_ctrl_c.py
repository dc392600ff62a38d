"""Ctrl-C and other signals: where, in whose code, what a handler does, where it might be lost."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from backread._files.unfinished import remove_folder
from helpers.api_rows import paged, users
from helpers.python_process import SECONDS, environment
from helpers.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.skipif(os.name == "nt", reason="SIGINT goes to a console there")

# What a call waits for makes no difference: the thread that waits looks for signals alone.
READ = {
    "one user": ("", "client.users.get(42)"),
    "an item": ("", "for one in listing: pass"),
    "to_list": ("", "listing.to_list()"),
    "probe": ("", "client.probe()"),
    "to_arrow": ("pyarrow", "listing.to_arrow()"),
    "pyarrow, batch by batch": (
        "pyarrow",
        "for batch in pyarrow.RecordBatchReader.from_stream(listing): pass",
    ),
    "polars, lazily": ("polars", "polars.LazyFrame(listing).collect()"),
    "duckdb": (
        "duckdb",
        "duckdb.connect(config={'threads': 1}).sql('SELECT * FROM listing').fetchall()",
    ),
}


def stalling(scripted: Any, answered: int) -> Any:
    """A server of many users that answers so many requests."""
    pages = paged(users(4_000))

    def service(request: Any) -> Any:
        return pages(request) if len(server.requests) <= answered else server.stall()

    server = scripted(service)
    return server


def interrupted(
    code: str, scripted: Any, number: int = signal.SIGINT, answered: int = 0
) -> tuple[int, str]:
    """The exit code and stderr of code that a signal ends once a request is not answered.

    The code prints "ready" first, and the time once what waits has ended: within a second. A loaded
    machine may hold one process up for longer, but not one after another.
    """
    for _ in range(3):
        server = stalling(scripted, answered)
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            env=environment(server),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            limit = threading.Timer(SECONDS, process.kill)
            limit.start()
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            wait_for(lambda server=server: len(server.requests) > answered)
            sent = time.time()
            process.send_signal(number)
            said, complaint = process.communicate()
            limit.cancel()
        assert said, (process.returncode, complaint)
        if (seconds := float(said.split()[0]) - sent) < 1:
            return process.returncode, complaint
    pytest.fail(f"it took {seconds} s")


@pytest.mark.parametrize(
    ("name", "answered"),
    [*((name, 0) for name in READ), ("an item", 12), ("pyarrow, batch by batch", 12)],
)
def test_ctrl_c_is_a_keyboard_interrupt_wherever_a_listing_is_read(scripted, name, answered):
    """Also in other libraries; and the process ends by SIGINT."""
    module, code = READ[name]
    if module:
        pytest.importorskip(module)
    exit_code, complaint = interrupted(
        f"""
        import time
        from backread import Client
        {f"import {module}" if module else ""}
        client = Client(timeout=None)
        listing = client.users.list()
        print("ready", flush=True)
        def read():
            {code}
        try:
            read()
        except KeyboardInterrupt:
            print(time.time(), flush=True)
            raise
        """,
        scripted,
        answered=answered,
    )
    assert exit_code == -signal.SIGINT
    if module != "duckdb":  # which complains at any exit after an error
        assert complaint.startswith("Traceback")
        assert "\nKeyboardInterrupt\n" in complaint
        assert "During handling" not in complaint


def test_what_a_handler_raises_comes_out_of_another_librarys_reading(scripted):
    """Unchanged, with its attributes, as task runners end a task by SIGTERM or SIGALRM."""
    pytest.importorskip("pyarrow")
    code = """
    import signal, time
    import pyarrow
    from backread import Client

    class TaskTimeout(BaseException):
        pass

    def end(number, frame):
        raise TaskTimeout(number, "the task took too long")

    signal.signal(signal.SIGTERM, end)
    client = Client(timeout=None)
    print("ready", flush=True)
    try:
        pyarrow.table(client.users.list())
    except TaskTimeout as error:
        print(time.time(), error.args[1], flush=True)
        assert error.args[0] == signal.SIGTERM
    """
    assert interrupted(code, scripted, signal.SIGTERM) == (0, "")


def test_a_signal_handler_may_read_a_listing_while_one_is_read(scripted):
    heard = threading.Event()
    pages = paged(users(250))

    def late(request: Any) -> Iterator[bytes]:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        heard.wait(PATIENCE)
        yield pages(request)

    server = scripted(lambda asked: late(asked) if len(server.requests) == 1 else pages(asked))
    client = server.client()
    read: list[int] = []

    def handle(*_: Any) -> None:
        read.append(len(client.users.list().to_list()))
        heard.set()

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        read.append(len(client.users.list().to_list()))
    finally:
        signal.signal(signal.SIGUSR1, before)
        client.close()
    assert read == [250, 250]


def python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)


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
    done = python(path + code)
    assert (done.returncode, done.stderr) == expected


def test_a_folder_is_removed_to_its_end_and_then_ctrl_c_is_raised(tmp_path):
    folder = tmp_path / "folder"
    for number in range(3_000):
        (folder / str(number)).mkdir(parents=True)

    def interrupt() -> None:
        while len(list(folder.iterdir())) > 2_990:
            pass
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        remove_folder(folder)
    assert not folder.exists()
