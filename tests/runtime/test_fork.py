"""Forks at any moment: while others work, in task runners and servers, and how children end."""

import asyncio
import concurrent.futures
import multiprocessing
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from backread import BackreadError, Client, ServerError
from helpers.python_process import SECONDS, check_silent, environment, run
from helpers.waiting import wait_for

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@pytest.mark.parametrize("what", ["get", "list", "error", "async"])
def test_forks_while_threads_make_the_first_calls(backread_server, what):
    """What is imported and made at a first call is not half made in a child for good."""
    done = run(
        f"""
import asyncio, os, signal, sys, threading, time, warnings
from backread import AsyncClient, Client, NotFoundError
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads at a fork
# asyncio holds a lock while it makes its first loop; a child that was forked then would hang.
asyncio.new_event_loop().close()
sys.setswitchinterval(1e-6)
client, asynchronous = Client(), AsyncClient()

def work():
    if {what!r} == "get": assert client.users.get(42).id == 42
    if {what!r} == "list": assert client.users.list().to_list()
    if {what!r} == "async": assert asyncio.run(asynchronous.users.get(42)).id == 42
    if {what!r} == "error":
        try: client.users.get(1)
        except NotFoundError: pass

def fork():
    if pid := os.fork(): return pid
    signal.alarm(50)
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
pids = []
for _ in range(12):
    pids.append(fork())
    time.sleep(0.001)
print({{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids}})
for thread in threads: thread.join()
""",
        backread_server,
    )
    check_silent(done, "{0}")


@pytest.mark.parametrize("leave", ["os._exit", "exec"])
def test_the_end_of_a_child_leaves_the_parents_connections_open(backread_mock, leave):
    """The parent reads on over the connection that it had; the child had one of its own."""
    client = backread_mock.client()
    client.users.get(42)
    before = connections()

    def work() -> int | None:
        read = client.users.get(42).id
        if leave == "exec":
            os.execv(sys.executable, [sys.executable, "-c", "print(42, end='')"])
        return read

    assert in_child(work)[0] == 0
    assert client.users.get(42).id == 42
    # The mock, in this process too, closes its ends of connections in its own time.
    wait_for(lambda: connections() == before)


def connections() -> set[str]:
    """The sockets of this process."""
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("this system does not list a process's open files")
    links = [str(entry.readlink()) for entry in folder.iterdir() if entry.is_symlink()]
    return {link for link in links if link.startswith("socket:")}


def set_environment(variables: dict[str, str]) -> None:
    os.environ.update(variables)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_process_pool_of_each_kind(backread_server, monkeypatch, method):
    for name, value in environment(backread_server).items():
        monkeypatch.setenv(name, value)
    with Client() as client:
        user_ids = [user.id for user in client.users.list()][:20]
        with concurrent.futures.ProcessPoolExecutor(
            2,
            mp_context=multiprocessing.get_context(method),
            # A fork server keeps the environment of the first test that started it.
            initializer=set_environment,
            initargs=(environment(backread_server),),
        ) as pool:
            read = list(pool.map(client.users.get, user_ids, timeout=SECONDS))
            counts = list(pool.map(count_messages, [client] * 4, user_ids[:4], timeout=SECONDS))
        assert [user.id for user in read] == user_ids
        assert counts == [count_messages(client, user_id) for user_id in user_ids[:4]]


def count_messages(client: Client, user_id: int) -> int:
    return len(client.messages.list(user_id).to_list())


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
    # So it does in a child's child.
    assert in_child(lambda: in_child(work)) == (0, f"(0, '{world.total_users}')")


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


def test_children_that_were_forked_alike_do_not_retry_all_at_once(backread_mock, tmp_path):
    """Full jitter is drawn anew in each, though they inherit the same state of chance."""
    backread_mock.on("user", user=42).fail("status(500)", times=1_000)
    client = backread_mock.client(max_retries=1)
    with pytest.raises(ServerError):
        client.users.get(42)
    for number in range(6):
        pid = os.fork()
        if pid == 0:
            try:
                client.users.get(42)
            except Exception as error:
                waited = error.attempts[1].seconds_waited  # type: ignore[attr-defined]
                (tmp_path / str(number)).write_text(str(waited))
            os._exit(0)
        os.waitpid(pid, 0)
    waits = [float(said.read_text()) for said in tmp_path.iterdir()]
    assert len(waits) == 6
    assert max(waits) - min(waits) > 0.05
