"""Life in a process: the import, little memory, and the interpreter's exit."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.python_process import check_silent, run


def test_the_import_brings_little_and_starts_nothing(backread_server):
    done = run(
        """
        import os, sys
        import backread
        tasks = lambda: len(os.listdir("/proc/self/task")) if os.path.isdir("/proc") else 1
        heavy = {"asyncio", "pyarrow", "polars", "pandas", "duckdb", "typer", "rich", "ssl",
                 "logging", "json"}
        print(sorted(heavy & set(sys.modules)), tasks())
        client = backread.Client()
        print(sorted(heavy & set(sys.modules)), tasks())
        client.users.get(42)
        client.users.list().to_list()
        print(sorted(heavy & set(sys.modules)))
        """,
        backread_server,
    )
    check_silent(done, "[] 1\n[] 1\n[]")


def test_the_docstrings_may_be_stripped(backread_server):
    code = "import backread; print(backread.Client().users.get(42).id)"
    check_silent(run(code, backread_server, "-OO"), "42")


def test_a_client_can_be_used_in_an_exit_handler(backread_server):
    """Handlers run last in, first out: those registered after the import run before ours."""
    done = run(
        """
        import atexit

        def late():
            try:
                client.users.get(42)
            except BackreadError:
                print("too late")

        atexit.register(late)
        from backread import BackreadError, Client
        client = Client()
        atexit.register(lambda: print(client.users.get(42).id))
        """,
        backread_server,
    )
    check_silent(done, "42\ntoo late")


# A build without optimisation needs more: make test-long installs the release build.
@pytest.mark.long
@pytest.mark.parametrize(
    "call",
    [
        "client.users.get(42)",
        "client.messages.all().to_list()",
        "client.probe()",
        "asyncio.run(AsyncClient().messages.all().to_list())",
    ],
)
def test_a_call_needs_no_more_stack_than_musl_gives_a_thread(backread_server, call):
    """128 KiB; a stack that is too small ends the process, so each call has one."""
    code = f"""
    import asyncio, threading
    from backread import AsyncClient, Client
    client = Client()
    threading.stack_size(128 * 1024)
    thread = threading.Thread(target=lambda: print(bool({call})))
    thread.start()
    thread.join()
    """
    check_silent(run(code, backread_server), "True")


REQUESTS = 5_000
SOAK = Path(__file__).parents[1] / "soak.py"


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells what a process holds")
def test_a_client_reads_a_hostile_service_for_long_and_holds_no_more_than_before():
    """``make test-long`` does the same with a million requests."""
    pytest.importorskip("pyarrow")
    command = [sys.executable, str(SOAK), str(REQUESTS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=560)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"(\d+) requests, (\d+) rows, .* counted \d+, snapshot \d+", done.stdout)
    assert found is not None, done.stdout
    requests, rows = map(int, found.groups())
    assert requests >= REQUESTS
    assert rows > requests
