"""Cancelled tasks: 10,000 of them, at every stage, leave nothing behind."""

import asyncio
import contextlib
import gc
import random
import resource
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from backread import BackreadError
from helpers.api_rows import paged, user, users
from helpers.scripted_server import answer
from helpers.waiting import PATIENCE, eventually

CANCELLATIONS = 10_000


async def cancelled_soon(call: Callable[[], Awaitable[Any]]) -> None:
    """While it waits for its place, connects, sends, reads, or has just ended."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(random.random() * 0.003):
            await call()


def held() -> tuple[int, int]:
    """Files open and threads running in this process."""
    if not Path("/proc/self").is_dir():
        pytest.skip("this system does not list what a process holds")
    files, threads = ((len(list(Path("/proc/self", each).iterdir()))) for each in ("fd", "task"))
    return files, threads


def check_held(before: tuple[int, int]) -> None:
    """No more is held than before, except four connections, which have two ends each."""
    gc.collect()
    files, threads = held()
    assert files <= before[0] + 2 * 4
    assert threads <= before[1]


@pytest.mark.long
def test_ten_thousand_cancellations_leave_nothing_behind(backread_server):
    """No task, file, thread or memory, and no place among the requests under way."""
    client = backread_server.async_client(max_concurrency=4, max_retries=0)

    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: client.users.get(42),
        client.users.page,
        lambda: client.users.list(page_size=5).to_list(),
        lambda: client.messages.all(users=[42]).to_list(),
    ]

    async def cancel(count: int) -> None:
        for _ in range(count // 50):
            await asyncio.gather(*(cancelled_soon(calls[number % 4]) for number in range(50)))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    async def main() -> None:
        await cancel(2_000)
        gc.collect()
        before, memory = held(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await cancel(CANCELLATIONS)
        # Every place is free: as many calls at once as there may be.
        async with asyncio.timeout(PATIENCE):
            read = await asyncio.gather(*(client.users.get(42) for _ in range(4)))
        assert [one.id for one in read] == [42] * 4
        # The mock, in this process too, closes its ends of the connections in its own time.
        eventually(lambda: check_held(before))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
        assert grown < 16 * 1024 * (1024 if sys.platform == "darwin" else 1)
        await client.aclose()

    asyncio.run(main())


@pytest.mark.parametrize(
    "stage", ["connecting", "waiting for its turn", "reading", "waiting to retry", "in a walk"]
)
def test_a_call_that_is_cancelled_at_a_stage_gives_its_place_back(scripted, stage):
    pages = paged(users(400))
    asked = threading.Event()

    def service(request: Any) -> Any:
        if request.path.endswith("/42"):
            return answer(200, user(42))
        if stage == "in a walk" and request.query.get("offset", "0") == "0":
            return pages(request)
        asked.set()
        if stage == "waiting to retry":
            return answer(500)
        return server.stall() if stage != "reading" else half()

    def half() -> Any:
        yield b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n{"
        yield from server.stall()

    server = scripted(service)

    async def main() -> None:
        client = server.async_client(max_concurrency=1)
        calls: list[Callable[[], Awaitable[Any]]] = [lambda: client.users.get(1)]
        if stage == "in a walk":
            calls = [client.users.list().to_list]
        elif stage == "waiting for its turn":
            calls *= 3
        for _ in range(3):
            asked.clear()
            tasks = [asyncio.ensure_future(call()) for call in calls]
            if stage == "connecting":
                await asyncio.sleep(0)
            else:
                assert await asyncio.to_thread(asked.wait, PATIENCE)
            for task in tasks:
                task.cancel()
            gathered = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in gathered)
        async with asyncio.timeout(PATIENCE):
            assert (await client.users.get(42)).id == 42
        await client.aclose()
        with pytest.raises(BackreadError, match="closed"):
            await client.users.get(42)

    asyncio.run(main())
