"""Life in a process: the import, forks, pickles, and the interpreter's exit."""

import asyncio
import os
import signal
import threading
from typing import Any

import pytest

from backread import BackreadError
from helpers.python_process import check_silent, run

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


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


@pytest.mark.skipif(
    getattr(os, "getuid", lambda: 1)() != 0, reason="only root can become another user"
)
def test_columns_are_read_where_no_more_threads_may_be_started(backread_server):
    pytest.importorskip("pyarrow")
    done = run(
        """
        import os, resource
        import pyarrow as pa
        import backread
        client = backread.Client()
        client.users.get(42)
        # The limit counts the threads of a user, and not those of root.
        os.setuid(40_000 + os.getpid() % 20_000)
        resource.setrlimit(resource.RLIMIT_NPROC, (4, 4))
        print(len(client.users.list().to_list()) == pa.table(client.users.list()).num_rows)
        """,
        backread_server,
    )
    check_silent(done, "True")


def in_child(work: Any) -> tuple[int, str]:
    """Forks; the child works and ends at once. Gives its exit code and what it said."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(write, str(work()).encode())
            code = 0
        except BaseException as error:
            os.write(write, repr(error).encode())
        finally:
            os._exit(code)
    os.close(write)
    limit = threading.Timer(20, os.kill, (child, signal.SIGKILL))
    limit.start()
    with os.fdopen(read, "rb") as said:
        text = said.read().decode()
    _, status = os.waitpid(child, 0)
    limit.cancel()
    return os.waitstatus_to_exitcode(status), text


@needs_fork
def test_a_client_used_before_a_fork_works_in_the_child_and_after_it(each_face, backread_server):
    world = backread_server.world
    client = each_face.client(backread_server)
    assert each_face.call(client.users.get, 42).id == 42
    first = client.users.list()
    assert len(each_face.collect(first)) == world.total_users

    def work() -> Any:
        # The parent's event loop is not the child's to run.
        if each_face.name == "async":

            async def main() -> int:
                await client.users.get(42)
                return len([one async for one in client.users.list()])

            return asyncio.new_event_loop().run_until_complete(main())
        client.users.get(42)
        return len(list(client.users.list()))

    for _ in range(3):
        assert in_child(work) == (0, str(world.total_users))
        assert each_face.call(client.users.get, 42).id == 42


@needs_fork
def test_a_child_of_a_child_works_too(backread_server):
    with backread_server.client() as client:
        client.users.get(42)
        assert in_child(lambda: in_child(lambda: client.users.get(42).id)) == (0, "(0, '42')")
        assert client.users.get(42).id == 42


@needs_fork
def test_a_fork_in_the_middle_of_a_walk(backread_server):
    """The parent reads on; the child is told to begin anew, and can."""
    with backread_server.client() as client:
        listing = client.users.list(page_size=10)
        rows = iter(listing)
        next(rows)

        def go_on() -> str:
            try:
                list(rows)
            except BackreadError as error:
                return str(error)
            return "it went on"

        code, said = in_child(go_on)
        assert code == 0
        assert "fork" in said
        total = backread_server.world.total_users
        assert in_child(lambda: len(list(client.users.list()))) == (0, str(total))
        assert len(list(rows)) == total - 1


def test_a_client_can_be_used_in_an_exit_handler(backread_server):
    """Handlers run last in, first out: those registered after the import run before ours."""
    done = run(
        """
        import atexit
        from backread import Client
        client = Client()
        client.users.get(42)
        atexit.register(lambda: print(client.users.get(42).id))
        """,
        backread_server,
    )
    check_silent(done, "42")


def test_a_client_used_after_the_runtime_has_ended_says_so(backread_server):
    done = run(
        """
        import atexit

        def late():
            try:
                client.users.get(42)
            except Exception as error:
                print(type(error).__name__)

        atexit.register(late)
        from backread import Client
        client = Client()
        client.users.get(42)
        """,
        backread_server,
    )
    check_silent(done, "BackreadError")
