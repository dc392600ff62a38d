"""Life in a process: forks, threads, Ctrl-C, tasks, event loops, and the interpreter's exit.

What may hang runs in a process of its own, with a time limit.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pytest

from backread import AsyncClient, BackreadError, Client, NotFoundError
from canned import ids, paged, user, users
from scripted_server import answer

SECONDS = 60

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
needs_signals = pytest.mark.skipif(os.name == "nt", reason="SIGINT goes to a console there")


def environment(server: Any) -> dict[str, str]:
    return {
        **os.environ,
        "BACKREAD_BASE_URL": server.url,
        "BACKREAD_API_SECRET": server.secret,
        "BACKREAD_VENDOR": server.vendor,
        "PYTHONUNBUFFERED": "1",
    }


def run(code: str, server: Any, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a fresh interpreter, and fails if it takes longer than SECONDS."""
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(code)],
        env=environment(server),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def check_silent(done: subprocess.CompletedProcess[str], said: str = "") -> None:
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == said


# --- the import ----------------------------------------------------------------------------


def test_the_import_brings_little_and_starts_nothing(backread_server: Any) -> None:
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


def test_every_public_name_is_there(backread_server: Any) -> None:
    code = "import backread; [getattr(backread, name) for name in backread.__all__]; print('all')"
    check_silent(run(code, backread_server), "all")


def test_the_docstrings_may_be_stripped(backread_server: Any) -> None:
    code = "import backread; print(backread.Client().users.get(42).id)"
    check_silent(run(code, backread_server, "-OO"), "42")


# --- threads -------------------------------------------------------------------------------


def test_one_client_serves_many_threads(backread_server: Any) -> None:
    world = backread_server.world
    user_ids = world.user_ids()
    with (
        backread_server.client(max_concurrency=4) as client,
        concurrent.futures.ThreadPoolExecutor(16) as pool,
    ):
        lists = [pool.submit(client.users.list().to_list) for _ in range(8)]
        read = list(pool.map(lambda one: client.users.get(one, as_dict=True), user_ids))
        assert read == [world.user(one) for one in user_ids]
        for one in lists:
            assert ids(one.result()) == user_ids


def test_a_waiting_call_lets_other_threads_run(scripted: Any) -> None:
    server = scripted(lambda request: server.stall())
    client = Client(server.url, server.secret, server.vendor, timeout=1, max_retries=0)
    done = threading.Event()

    def call() -> None:
        with contextlib.suppress(BackreadError):
            client.users.get(42)
        done.set()

    thread = threading.Thread(target=call)
    thread.start()
    turns = 0
    while not done.is_set():
        turns += 1
        time.sleep(0.001)
    thread.join()
    client.close()
    assert turns > 100


def test_two_threads_may_share_one_iterator_of_pages(backread_server: Any) -> None:
    with backread_server.client() as client:
        walk = client.users._walk(False, 10, None)
        pages = []

        def read() -> None:
            while (page := walk.next_page(False, True)) is not None:
                pages.append(page)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    read_ids = sorted(one.id for page in pages for one in page)
    assert read_ids == backread_server.world.user_ids()


def test_a_client_of_one_thread_is_closed_by_another(scripted: Any) -> None:
    server = scripted(paged(users(10_000)))
    client = Client(server.url, server.secret, server.vendor)
    rows = iter(client.users.list(page_size=5))
    assert next(rows).id == 1
    closer = threading.Thread(target=client.close)
    closer.start()
    closer.join()
    with pytest.raises(BackreadError, match="closed"):
        list(rows)


# --- forks ---------------------------------------------------------------------------------


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
def test_a_client_used_before_a_fork_works_in_the_child_and_after_it(
    face: Any, backread_server: Any
) -> None:
    world = backread_server.world
    client = face.client(backread_server)
    assert face.call(client.users.get, 42).id == 42
    first = client.users.list()
    assert len(face.collect(first)) == world.total_users

    def work() -> Any:
        # The parent's event loop is not the child's to run.
        if face.name == "async":

            async def main() -> int:
                await client.users.get(42)
                return len([one async for one in client.users.list()])

            return asyncio.new_event_loop().run_until_complete(main())
        client.users.get(42)
        return len(list(client.users.list()))

    for _ in range(3):
        assert in_child(work) == (0, str(world.total_users))
        assert face.call(client.users.get, 42).id == 42


@needs_fork
def test_a_child_of_a_child_works_too(backread_server: Any) -> None:
    with backread_server.client() as client:
        client.users.get(42)
        assert in_child(lambda: in_child(lambda: client.users.get(42).id)) == (0, "(0, '42')")
        assert client.users.get(42).id == 42


@needs_fork
def test_a_fork_in_the_middle_of_a_walk(backread_server: Any) -> None:
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


@needs_fork
def test_forks_while_other_threads_are_at_work(backread_server: Any) -> None:
    stop = threading.Event()
    failed: list[BaseException] = []
    with backread_server.client() as client:

        def work() -> None:
            try:
                while not stop.is_set():
                    client.users.page()
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(10):
                assert in_child(lambda: client.users.get(42).id) == (0, "42")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    assert not failed


@needs_fork
def test_a_pool_of_forked_processes(backread_server: Any) -> None:
    """As task runners do it: the client is made and used ahead of the fork, and exits are normal."""
    done = run(
        """
        import multiprocessing
        from backread import Client

        client = Client()
        ids = [user.id for user in client.users.list()][:40]

        def read(user_id):
            return client.users.get(user_id).id

        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(3) as pool:
                print(pool.map(read, ids) == ids)
            process = multiprocessing.get_context("fork").Process(target=read, args=(ids[0],))
            process.start()
            process.join(30)
            print(process.exitcode)
        """,
        backread_server,
        "-W",
        "ignore::DeprecationWarning",
    )
    check_silent(done, "True\n0")


def get_name(client: Client, user_id: int) -> str | None:
    return client.users.get(user_id).name


def get_nobody(client: Client) -> None:
    client.users.get(1)


@pytest.mark.slow
def test_a_client_goes_to_a_spawned_process_and_models_and_errors_come_back(
    backread_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKREAD_API_SECRET", backread_server.secret)
    context = multiprocessing.get_context("spawn")
    with (
        backread_server.client() as client,
        concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool,
    ):
        expected = backread_server.world.user(42)["name"]
        assert pool.submit(get_name, client, 42).result(SECONDS) == expected
        assert pool.submit(client.users.get, 42).result(SECONDS) == client.users.get(42)
        error = pool.submit(get_nobody, client).exception(SECONDS)
    assert isinstance(error, NotFoundError)
    assert b"unknown_user" in error.body
    assert len(error.attempts) == 1


def test_what_was_read_pickles(face: Any, backread_server: Any) -> None:
    client = face.client(backread_server)
    listing = client.messages.all(users=[42])
    for thing in (
        face.call(client.users.get, 42),
        face.call(client.users.page),
        face.collect(listing),
        listing.report,
        face.call(client.users.get, 42, as_dict=True),
    ):
        assert pickle.loads(pickle.dumps(thing)) == thing


# --- Ctrl-C --------------------------------------------------------------------------------

INTERRUPTED = {
    "get": "client.users.get(42)",
    "list": "client.users.list().to_list()",
    "all": "client.messages.all().to_list()",
    "arrow": "import pyarrow; client.users.list().to_arrow()",
    "async get": "asyncio.run(asynchronous.users.get(42))",
    "async list": "asyncio.run(asynchronous.users.list().to_list())",
    "a wait": "client.users.get(43)",
}


@needs_signals
@pytest.mark.parametrize("name", INTERRUPTED)
def test_ctrl_c_ends_a_call_that_hangs_within_a_second(scripted: Any, name: str) -> None:
    if name == "arrow":
        pytest.importorskip("pyarrow")
    waiting = answer(429, b"", {"retry-after": "3000"})
    server = scripted(
        lambda request: waiting if request.path.endswith("43") else server.stall()
    )
    code = f"""
    import asyncio, time
    from backread import AsyncClient, Client
    client, asynchronous = Client(timeout=None), AsyncClient(timeout=None)
    try:
        {INTERRUPTED[name]}
    except KeyboardInterrupt:
        print("interrupted", time.time())
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
        while not server.requests and process.poll() is None:
            time.sleep(0.01)
        # The request is out; the call waits, or is about to.
        time.sleep(0.2)
        sent = time.time()
        process.send_signal(signal.SIGINT)
        said, complaint = process.communicate()
        limit.cancel()
    assert said.startswith("interrupted"), complaint
    assert float(said.split()[1]) - sent < 1
    assert (process.returncode, complaint) == (0, "")
    assert len(server.requests) == 1


# --- tasks and event loops -------------------------------------------------------------------


def closed_by_client(server: Any, connections: int) -> bool:
    """Whether the server sees its stalled connections end, in good time."""
    ended = [server.ended.wait(10) for _ in range(connections)]
    return all(ended)


@pytest.mark.parametrize("what", ["get", "page", "list", "all"])
def test_a_cancelled_task_ends_its_request(scripted: Any, what: str) -> None:
    gone = threading.Event()

    def watch(first: bytes) -> Any:
        yield first
        for _ in range(1_000):
            time.sleep(0.01)
            # Sending to a peer that went away fails, which closes this generator.
            yield b" "

    def tell(request: Any) -> Any:
        try:
            yield from watch(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        finally:
            gone.set()

    server = scripted(lambda request: tell(request))

    async def main() -> None:
        async with AsyncClient(
            server.url, server.secret, server.vendor, timeout=None, max_retries=0
        ) as client:
            calls = {
                "get": lambda: client.users.get(42),
                "page": client.users.page,
                "list": client.users.list().to_list,
                "all": client.messages.all().to_list,
            }
            task = asyncio.ensure_future(calls[what]())
            while not server.requests:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(gone.wait, 5)

    asyncio.run(main())
    assert len(server.requests) == 1


def test_a_cancelled_call_gives_its_place_back(scripted: Any) -> None:
    server = scripted(
        lambda request: answer(200, user(42)) if request.path.endswith("42") else server.stall()
    )

    async def main() -> None:
        async with AsyncClient(
            server.url, server.secret, server.vendor, max_concurrency=1, timeout=20
        ) as client:
            for _ in range(5):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await client.users.get(1)
            async with asyncio.timeout(5):
                assert (await client.users.get(42)).id == 42

    asyncio.run(main())


def test_many_tasks_at_once(backread_server: Any) -> None:
    async def main() -> None:
        async with backread_server.async_client() as client:
            read = await asyncio.gather(
                *(client.users.get(one) for one in backread_server.world.user_ids())
            )
            assert ids(read) == backread_server.world.user_ids()

    asyncio.run(main())


def test_the_event_loop_turns_while_a_call_waits(scripted: Any) -> None:
    server = scripted(lambda request: server.stall())

    async def main() -> int:
        turns = 0
        async with AsyncClient(
            server.url, server.secret, server.vendor, timeout=0.5, max_retries=0
        ) as client:
            task = asyncio.ensure_future(client.users.get(42))
            while not task.done():
                turns += 1
                await asyncio.sleep(0.001)
            assert task.exception() is not None
        return turns

    assert asyncio.run(main()) > 50


def test_one_async_client_serves_one_event_loop_after_another(backread_server: Any) -> None:
    client = backread_server.async_client()

    async def main() -> int:
        await client.users.get(42)
        return len([one async for one in client.users.list()])

    for _ in range(3):
        assert asyncio.run(main()) == backread_server.world.total_users
    asyncio.run(client.aclose())


def test_one_async_client_serves_event_loops_of_several_threads(backread_server: Any) -> None:
    client = backread_server.async_client()

    async def main() -> list[int]:
        return ids(await asyncio.gather(*(client.users.get(42) for _ in range(20))))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for read in [pool.submit(asyncio.run, main()) for _ in range(8)]:
            assert read.result(SECONDS) == [42] * 20
    asyncio.run(client.aclose())


def test_a_loop_that_ends_with_calls_under_way_is_no_matter(backread_server: Any) -> None:
    client = backread_server.async_client()

    async def leave() -> None:
        for _ in range(50):
            asyncio.ensure_future(client.users.page())  # noqa: RUF006
        await asyncio.sleep(0)

    for _ in range(5):
        asyncio.run(leave())
    assert asyncio.run(client.users.get(42)).id == 42
    asyncio.run(client.aclose())


# --- the interpreter's exit ------------------------------------------------------------------

LEFT = {
    "a walk": """
        rows = iter(client.users.list(page_size=1)); next(rows)
    """,
    "a daemon thread in a call": """
        import threading
        threading.Thread(target=client.users.get, args=(43,), daemon=True).start()
        while not requests(): time.sleep(0.01)
    """,
    "daemon threads in walks": """
        import threading
        def read():
            while True: client.users.list(page_size=1).to_list()
        for _ in range(4): threading.Thread(target=read, daemon=True).start()
        time.sleep(0.3)
    """,
    "a task": """
        import asyncio
        from backread import AsyncClient
        async def main():
            task = asyncio.ensure_future(AsyncClient().users.get(43))
            while not requests(): await asyncio.sleep(0.01)
        asyncio.run(main())
    """,
    "a loop that was never closed": """
        import asyncio
        from backread import AsyncClient
        loop = asyncio.new_event_loop()
        async def main():
            global task
            task = asyncio.ensure_future(AsyncClient().users.get(43))
            while not requests(): await asyncio.sleep(0.01)
        loop.run_until_complete(main())
        task._log_destroy_pending = False
    """,
    "a stream half read": """
        import pyarrow
        reader = pyarrow.RecordBatchReader.from_stream(client.users.list(page_size=1))
        reader.schema
        global_reader = reader
    """,
    "a mock server": """
        from backread.testing import MockServer, World
        server = MockServer(World(users=3))
        other = server.client()
        other.users.get(42)
    """,
    "an error that nobody took": """
        client.users.list().__iter__()
        listing = client.users.list()
    """,
}


@pytest.mark.parametrize("name", LEFT)
def test_the_interpreter_exits_cleanly_with_work_in_flight(scripted: Any, name: str) -> None:
    if "pyarrow" in LEFT[name]:
        pytest.importorskip("pyarrow")
    hanging = threading.Event()

    def service(request: Any) -> Any:
        if request.path.endswith("43"):
            hanging.set()
            return server.stall()
        if request.path == "/hanging/external/users/1":
            return answer(200, user(1)) if hanging.is_set() else answer(404)
        return paged(users(2_000))(request)

    server = scripted(service)
    code = f"""
    import sys, time
    from backread import Client, NotFoundError
    client = Client(timeout=None)
    look = Client(client.base_url + "/hanging")
    def requests():
        try: return look.users.get(1)
        except NotFoundError: return None
    def left():
        global rows, listing, global_reader, server, other
        {textwrap.indent(textwrap.dedent(LEFT[name]), " " * 8).strip()}
    left()
    print("left", flush=True)
    """
    began = time.monotonic()
    done = run(code, server)
    check_silent(done, "left")
    assert time.monotonic() - began < 20


def test_a_client_can_be_used_in_an_exit_handler(backread_server: Any) -> None:
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


def test_a_client_used_after_the_runtime_has_ended_says_so(backread_server: Any) -> None:
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
