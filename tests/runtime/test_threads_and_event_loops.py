"""Threads, tasks and event loops: asyncio's, others that work, and trio, which is told so."""

import asyncio
import ctypes
import gc
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from backread import BackreadError
from helpers.api_rows import ids, paged, users
from helpers.python_process import SECONDS, check_silent
from helpers.waiting import PATIENCE


def dripping(scripted: Any) -> tuple[Any, threading.Event, threading.Event]:
    """A server whose answers never end: whether one was asked for, and whether a client left it."""
    asked, gone = threading.Event(), threading.Event()

    def drip() -> Any:
        asked.set()
        yield b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"
        try:
            while True:
                time.sleep(0.01)
                # Sending to a peer that went away fails, and this generator is dropped.
                yield b" "
        finally:
            gone.set()

    return scripted(lambda request: drip()), asked, gone


@pytest.mark.parametrize("end", ["timeout", "deadline"])
def test_a_call_that_took_too_long_ends_its_request(scripted, end):
    server, _, gone = dripping(scripted)
    with server.client(max_retries=0, **{end: 1}) as client, pytest.raises(TimeoutError):
        client.users.get(42)
    assert gone.wait(PATIENCE)
    assert len(server.requests) == 1


@pytest.mark.parametrize("method", ["to_arrow", "to_polars", "to_pandas"])
def test_an_exception_set_for_a_thread_ends_its_conversion_and_the_requests(scripted, method):
    """As task runners end a task at its timeout, while no Python code runs."""
    pytest.importorskip(method.removeprefix("to_").replace("arrow", "pyarrow"))
    pytest.importorskip("pyarrow")
    server, asked, gone = dripping(scripted)
    client = server.client(timeout=None, max_retries=0)
    raised = threading.Event()

    class Stopped(BaseException):
        pass

    def convert() -> None:
        try:
            getattr(client.users.list(), method)()
        except Stopped:
            raised.set()

    thread = threading.Thread(target=convert, daemon=True)
    thread.start()
    assert asked.wait(PATIENCE)
    stop = ctypes.pythonapi.PyThreadState_SetAsyncExc
    stop(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Stopped))
    assert raised.wait(PATIENCE)
    assert gone.wait(PATIENCE)
    client.close()


def test_a_client_of_one_thread_is_closed_by_another(scripted):
    server = scripted(paged(users(10_000)))
    client = server.client()
    rows = iter(client.users.list(page_size=5))
    assert next(rows).id == 1
    with ThreadPoolExecutor(1) as pool:
        pool.submit(client.close).result()
    with pytest.raises(BackreadError, match="closed"):
        list(rows)


@pytest.mark.parametrize("what", ["get", "page", "list", "all", "arrow"])
def test_a_cancelled_task_ends_its_request(scripted, what):
    if what == "arrow":
        pytest.importorskip("pyarrow")
    server, asked, gone = dripping(scripted)

    async def main() -> None:
        async with server.async_client(timeout=None, max_retries=0) as client:
            calls = {
                "get": lambda: client.users.get(42),
                "page": client.users.page,
                "list": client.users.list().to_list,
                "all": client.messages.all().to_list,
                "arrow": client.users.list().to_arrow,
            }
            task = asyncio.ensure_future(calls[what]())
            assert await asyncio.to_thread(asked.wait, PATIENCE)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(gone.wait, PATIENCE)

    asyncio.run(main())
    assert len(server.requests) == 1


def test_one_async_client_serves_event_loops_one_after_another_and_in_several_threads(
    backread_server,
):
    client = backread_server.async_client()
    everyone = backread_server.world.user_ids()

    async def main() -> list[int]:
        assert ids([one async for one in client.users.list()]) == everyone
        return ids(await asyncio.gather(*(client.users.get(42) for _ in range(20))))

    for _ in range(3):
        assert asyncio.run(main()) == [42] * 20
    with ThreadPoolExecutor(4) as pool:
        for read in [pool.submit(asyncio.run, main()) for _ in range(8)]:
            assert read.result(SECONDS) == [42] * 20
    asyncio.run(client.aclose())


class LoopWithoutReaders(asyncio.SelectorEventLoop):
    """As the usual loop of Windows is."""

    def add_reader(self, *arguments: Any) -> None:
        raise NotImplementedError


def uvloop_loop() -> asyncio.AbstractEventLoop:
    return pytest.importorskip("uvloop").new_event_loop()


@pytest.mark.parametrize("make", [LoopWithoutReaders, uvloop_loop])
def test_event_loops_of_other_kinds(backread_server, make):
    async def main() -> list[int]:
        async with backread_server.async_client() as client:
            read = await asyncio.gather(
                client.messages.get(10**9, 1),
                *(client.users.get(42) for _ in range(100)),
                return_exceptions=True,
            )
            assert isinstance(read[0], BackreadError)
            total = len([one async for one in client.users.list(page_size=10)])
            assert total == backread_server.world.total_users
            return ids(read[1:])

    with asyncio.Runner(loop_factory=make) as runner:
        assert runner.run(main()) == [42] * 100


def test_trio_is_told_that_it_is_not_supported_and_what_to_do(backread_server):
    trio = pytest.importorskip("trio")

    async def main() -> int:
        with pytest.raises(RuntimeError, match="trio's is not supported"):
            await backread_server.async_client().users.get(42)
        with backread_server.client() as client:
            read = await trio.to_thread.run_sync(client.users.get, 42)
            return int(read.id)

    assert trio.run(main) == 42


THREADS = 16

WITHOUT_GIL = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def together(work: Callable[[int], Any]) -> list[Any]:
    """What the work gives in each of the threads, which begin it at one moment."""
    barrier = threading.Barrier(THREADS)

    def begin(number: int) -> Any:
        barrier.wait(timeout=60)
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def test_the_import_leaves_the_gil_as_it_is():
    program = "import sys, backread.testing; print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    command = [sys.executable, "-W", "error", "-c", program]
    check_silent(subprocess.run(command, capture_output=True, text=True), str(not WITHOUT_GIL))


def test_threads_read_in_every_way_at_once(backread_mock):
    client = backread_mock.client()
    world = backread_mock.world
    everything = {(user, one) for user in world.user_ids() for one in world.message_ids(user)}
    was_on = gc.isenabled()

    def read(number: int) -> Any:
        listing = client.messages.all(as_dict=number % 2 == 0)
        if number % 2:
            return {(one.user_id, one.id) for one in listing} == everything
        return {one["id"] for one in listing} == {one for _, one in everything}

    assert together(read) == [True] * THREADS
    assert gc.isenabled() is was_on


def test_threads_share_one_listing_and_each_row_comes_once(backread_mock):
    rows = iter(backread_mock.client().users.list())
    lock = threading.Lock()

    def take(_: int) -> list[int]:
        mine = []
        while True:
            # An iterator of Python's own runs in one thread at a time.
            with lock:
                row = next(rows, None)
            if row is None:
                return mine
            mine.append(row.id)

    taken = [one for mine in together(take) for one in mine]
    assert sorted(taken) == sorted(backread_mock.world.user_ids())
