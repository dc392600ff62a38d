"""Forks at any moment: while others work, in task runners and servers, and how children end."""

import concurrent.futures
import multiprocessing
import os
import signal
import sys
from pathlib import Path

import pytest

from backread import Client, ServerError
from helpers.python_process import SECONDS, check_silent, environment, run
from helpers.waiting import wait_for

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

CHILDREN = """
import os, signal, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads at a fork

def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def fork(work, leave=os._exit):
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(50)
    code = 1
    try:
        work()
        code = 0
    finally:
        if code or leave is os._exit:
            os._exit(code)
    # The children of others are not this one's to wait for.
    leave(0)
"""


@pytest.mark.parametrize("what", ["get", "list", "error", "async"])
def test_forks_while_threads_make_the_first_calls(backread_server, what):
    """What is imported and made at a first call is not half made in a child for good."""
    done = run(
        CHILDREN
        + f"""
import asyncio, sys, threading, time
from backread import AsyncClient, Client, NotFoundError
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

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
pids = []
for _ in range(12):
    pids.append(fork(work))
    time.sleep(0.001)
print(set(map(ended, pids)))
for thread in threads: thread.join()
""",
        backread_server,
    )
    check_silent(done, "{0}")


@pytest.mark.long
def test_many_forks_while_others_read(backread_server):
    """Whatever lock is held at the moment; children end in both ways, with what they inherited."""
    pytest.importorskip("pyarrow")
    done = run(
        CHILDREN
        + """
import itertools, sys, threading
import pyarrow
from backread import Client
client = Client()
total = len(client.users.list().to_list())
pyarrow.table(client.users.list())  # which imports pandas, where that is
stop, failed = threading.Event(), []

def again_and_again(work):
    try:
        while not stop.is_set(): work()
    except BaseException as error:
        failed.append(error)

def check(condition):
    assert condition

works = [
    lambda: check(client.users.get(42).id == 42),
    lambda: check(len(client.users.list(page_size=20).to_list()) == total),
    lambda: check(pyarrow.table(client.messages.all(users=[42])).num_rows > 0),
]
threads = [threading.Thread(target=again_and_again, args=(work,), daemon=True) for work in works]
for thread in threads: thread.start()
codes = []
for _, leave in itertools.product(range(2), (os._exit, sys.exit)):
    pids = [fork(work, leave) for work in works]
    codes += map(ended, pids)
stop.set()
for thread in threads: thread.join(60)
print(set(codes), failed, any(thread.is_alive() for thread in threads))
""",
        backread_server,
    )
    check_silent(done, "{0} [] False")


@pytest.mark.parametrize("leave", ["os._exit", "sys.exit"])
def test_the_end_of_a_child_leaves_the_parents_connections_open(backread_mock, leave):
    """The parent reads on over the connection that it had; the child had one of its own."""
    client = backread_mock.client()
    client.users.get(42)
    before = connections()
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        assert client.users.get(42).id == 42
        del client
        if leave == "os._exit":
            os._exit(0)
        os.execv(sys.executable, [sys.executable, "-c", "pass"])
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
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


def test_children_that_were_forked_alike_do_not_retry_all_at_once(backread_mock, tmp_path):
    """Full jitter is drawn anew in each, though they inherit the same state of chance."""
    from backread.testing import Fault

    backread_mock.on("user", user=42).fail(Fault.status(500), times=1_000)
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


def test_a_subinterpreter_is_told_that_it_cannot_have_the_module(backread_server):
    done = run(
        """
        import sys
        if sys.version_info >= (3, 13):
            import _interpreters as interpreters
        else:
            import _xxsubinterpreters as interpreters
        from backread import Client
        client = Client()
        other = interpreters.create()
        code = '''if True:
            import sys
            sys.path[:] = %r
            try:
                from backread import Client
                Client()
            except ImportError as error:
                print("subinterpreters" in str(error), flush=True)
        ''' % sys.path
        getattr(interpreters, "exec", interpreters.run_string)(other, code)
        interpreters.destroy(other)
        print(client.users.get(42).id)
        """,
        backread_server,
    )
    check_silent(done, "True\n42")
