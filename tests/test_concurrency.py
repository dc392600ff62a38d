"""Threads, Ctrl-C, tasks and event loops."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pytest

from backread import AsyncClient, BackreadError, Client
from canned import ids, paged, user, users
from interpreter import SECONDS, environment
from scripted_server import answer

needs_signals = pytest.mark.skipif(os.name == "nt", reason="SIGINT goes to a console there")


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
    client = Client(server.url, server.secret, server.vendor, timeout=0.4, max_retries=0)
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
    assert turns > 50


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
    server = scripted(lambda request: waiting if request.path.endswith("43") else server.stall())
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
        if name == "a wait":
            # Nothing shows from here when the client has read the answer and begins to wait.
            time.sleep(0.2)
        sent = time.time()
        process.send_signal(signal.SIGINT)
        said, complaint = process.communicate()
        limit.cancel()
    assert said.startswith("interrupted"), complaint
    assert float(said.split()[1]) - sent < 1
    assert (process.returncode, complaint) == (0, "")
    assert len(server.requests) == 1


@pytest.mark.parametrize("what", ["get", "page", "list", "all", "arrow"])
def test_a_cancelled_task_ends_its_request(scripted: Any, what: str) -> None:
    if what == "arrow":
        pytest.importorskip("pyarrow")
    asked, gone = threading.Event(), threading.Event()

    def drip() -> Any:
        asked.set()
        yield b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"
        try:
            for _ in range(1_000):
                time.sleep(0.01)
                # Sending to a peer that went away fails, and this generator is dropped.
                yield b" "
        finally:
            gone.set()

    server = scripted(lambda request: drip())

    async def main() -> None:
        async with AsyncClient(
            server.url, server.secret, server.vendor, timeout=None, max_retries=0
        ) as client:
            calls = {
                "get": lambda: client.users.get(42),
                "page": client.users.page,
                "list": client.users.list().to_list,
                "all": client.messages.all().to_list,
                "arrow": client.users.list().to_arrow,
            }
            task = asyncio.ensure_future(calls[what]())
            assert await asyncio.to_thread(asked.wait, 10)
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
