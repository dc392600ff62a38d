"""Ctrl-C and other signals while something waits: where, in whose code, and what a handler does."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backread import Client
from helpers.api_rows import paged, user, users
from helpers.python_process import SECONDS, environment
from helpers.scripted_server import answer
from helpers.waiting import PATIENCE

pytestmark = pytest.mark.skipif(os.name == "nt", reason="SIGINT goes to a console there")

# What a call waits for makes no difference: the thread that waits looks for signals alone.
READ = {
    "one user": ("", "client.users.get(42)"),
    "an item": ("", "for one in listing: pass"),
    "a page": ("", "for page in listing.pages(): pass"),
    "to_list": ("", "listing.to_list()"),
    "all messages": ("", "client.messages.all().to_list()"),
    "probe": ("", "client.probe()"),
    "to_arrow": ("pyarrow", "listing.to_arrow()"),
    "pyarrow, batch by batch": (
        "pyarrow",
        "for batch in pyarrow.RecordBatchReader.from_stream(listing): pass",
    ),
    "polars, lazily": ("polars", "polars.LazyFrame(listing).collect()"),
    "pandas": ("pandas", "pandas.DataFrame.from_arrow(listing)"),
    "arro3": ("arro3.core", "arro3.core.Table.from_arrow(listing)"),
    "duckdb": (
        "duckdb",
        "duckdb.connect(config={'threads': 1}).sql('SELECT * FROM listing').fetchall()",
    ),
}


def interrupted(
    code: str, server: Any, wait: Callable[[], Any], number: int = signal.SIGINT
) -> tuple[float, int, str]:
    """Runs code that a signal ends: seconds until it ended, the exit code, what is on stderr.

    The code prints "ready" first, and the time once what waits has ended; ``wait`` returns when it
    is time for the signal.
    """
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
        wait()
        sent = time.time()
        process.send_signal(number)
        said, complaint = process.communicate()
        limit.cancel()
    assert said, (process.returncode, complaint)
    return float(said.split()[0]) - sent, process.returncode, complaint


def at_once(interrupt: Callable[[], tuple[float, int, str]]) -> tuple[int, str]:
    """The exit code and what is on stderr, once the process has ended within a second.

    A loaded machine may hold one process up for longer, but not one after another.
    """
    for _ in range(3):
        seconds, exit_code, complaint = interrupt()
        if seconds < 1:
            return exit_code, complaint
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
    pages = paged(users(4_000))

    def interrupt() -> tuple[float, int, str]:
        stalls = threading.Event()

        def service(request: Any) -> Any:
            if len(server.requests) <= answered:
                return pages(request)
            stalls.set()
            return server.stall()

        server = scripted(service)
        return interrupted(
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
            server,
            lambda: stalls.wait(SECONDS),
        )

    exit_code, complaint = at_once(interrupt)
    assert exit_code == -signal.SIGINT
    if module != "duckdb":  # which complains at any exit after an error
        assert complaint.startswith("Traceback")
        # arro3 adds a note to the exception.
        assert "\nKeyboardInterrupt\n" in complaint
        assert "During handling" not in complaint


def test_what_a_handler_raises_comes_out_of_another_librarys_reading(scripted):
    """Unchanged, with its attributes, as task runners end a task by SIGTERM or SIGALRM."""
    pytest.importorskip("pyarrow")

    def interrupt() -> tuple[float, int, str]:
        server = scripted(lambda request: server.stall())
        return interrupted(
            """
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
            """,
            server,
            lambda: [time.sleep(0.01) for _ in iter(lambda: not server.requests, False)],
            signal.SIGTERM,
        )

    exit_code, complaint = at_once(interrupt)
    assert (exit_code, complaint) == (0, "")


def test_ctrl_c_follows_a_librarys_own_error_far_into_a_stream(scripted):
    """Past the part that is read ahead, the library is told of an error, not of an end."""
    pytest.importorskip("pyarrow")
    pages = paged([user(number, name="n" * 200_000) for number in range(1, 1_000)])
    stalls = threading.Event()

    def service(request: Any) -> Any:
        if int(request.query["offset"]) >= 390:
            stalls.set()
            return server.stall()
        return pages(request)

    server = scripted(service)
    _, exit_code, complaint = interrupted(
        """
        import time
        import pyarrow
        from backread import Client
        client = Client(timeout=None, max_concurrency=1)
        reader = pyarrow.RecordBatchReader.from_stream(client.users.list())
        print("ready", flush=True)
        try:
            try:
                reader.read_all()
            except pyarrow.ArrowInvalid as error:
                assert "KeyboardInterrupt" in str(error)
                time.sleep(0)
        except KeyboardInterrupt as error:
            assert isinstance(error.__context__, pyarrow.ArrowInvalid)
            print(time.time(), flush=True)
        """,
        server,
        lambda: (stalls.wait(SECONDS), time.sleep(0.3)),
    )
    assert (exit_code, complaint) == (0, "")


def test_a_signal_handler_may_read_a_listing_while_one_is_read(scripted):
    asked, heard = threading.Event(), threading.Event()
    pages = paged(users(250))

    def late(request: Any) -> Iterator[bytes]:
        asked.set()
        heard.wait(PATIENCE)
        yield pages(request)

    def service(request: Any) -> Any:
        return pages(request) if asked.is_set() else late(request)

    server = scripted(service)
    client = Client(server.url, server.secret, server.vendor)
    listing = client.users.list()
    read: list[int] = []

    def handle(*_: Any) -> None:
        read.append(len(client.users.list().to_list()))
        heard.set()

    def send() -> None:
        asked.wait(PATIENCE)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handle)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        read.append(len(listing.to_list()))
    finally:
        signal.signal(signal.SIGUSR1, before)
        heard.set()
        sender.join()
        client.close()
    assert read == [250, 250]


def test_a_signal_handler_may_fork(scripted):
    """The child goes another way; what the parent waits for comes all the same."""
    asked, heard = threading.Event(), threading.Event()

    def late() -> Iterator[bytes]:
        asked.set()
        heard.wait(PATIENCE)
        yield answer(200, user(42))

    server = scripted(
        lambda request: late() if request.path.endswith("42") else answer(200, user(7))
    )
    client = Client(server.url, server.secret, server.vendor, max_retries=0, timeout=PATIENCE)
    parent, children = os.getpid(), []

    def handle(*_: Any) -> None:
        children.append(os.fork())
        if children[0] == 0:
            signal.alarm(60)
            assert client.users.get(7).id == 7

    def send() -> None:
        asked.wait(PATIENCE)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        while not children or not children[0]:
            time.sleep(0.01)
        # The child has ended, and what it held of the call with it.
        ended.append(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
        heard.set()

    ended: list[int] = []
    before = signal.signal(signal.SIGUSR1, handle)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        read = client.users.get(42).id
    except BaseException as error:
        if os.getpid() != parent:
            os._exit(0 if "fork" in str(error) and client.users.get(7).id == 7 else 1)
        raise
    finally:
        if os.getpid() != parent:
            os._exit(2)
        signal.signal(signal.SIGUSR1, before)
        heard.set()
        sender.join()
        client.close()
    assert (read, ended) == (42, [0])
    assert len(server.requests) == 3
