"""Event loops that are not asyncio's own: anyio on asyncio works, trio is told so."""

import asyncio
from typing import Any

import pytest

from helpers.api_rows import ids


def test_anyio_on_asyncio_works(backread_server):
    anyio = pytest.importorskip("anyio")

    async def main() -> list[Any]:
        read: list[Any] = []

        async def get(client: Any) -> None:
            read.append(await client.users.get(42))

        async with backread_server.async_client() as client:
            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(get, client)
            with anyio.move_on_after(20):
                read += await client.users.list().to_list()
        return read

    expected = [42] * 5 + backread_server.world.user_ids()
    assert ids(anyio.run(main, backend="asyncio")) == expected


def test_trio_is_told_that_it_is_not_supported_and_what_to_do(backread_server):
    trio = pytest.importorskip("trio")

    async def main() -> int:
        with pytest.raises(RuntimeError, match="trio's is not supported"):
            await backread_server.async_client().users.get(42)
        with backread_server.client() as client:
            read = await trio.to_thread.run_sync(client.users.get, 42)
            return int(read.id)

    assert trio.run(main) == 42


def test_sync_calls_are_made_in_callbacks_of_a_running_loop(backread_server):
    """Nested as well: in a callback, in a task, and in what a sync call's iteration calls."""

    async def main() -> list[Any]:
        loop = asyncio.get_running_loop()
        read: list[Any] = []
        done = loop.create_future()

        def call() -> None:
            for one in client.users.list(page_size=50):
                if len(read) < 5:
                    read.append(client.users.get(one.id))
            done.set_result(None)

        async with backread_server.async_client() as asynchronous:
            waiting = asyncio.ensure_future(asynchronous.users.get(42))
            loop.call_soon(call)
            await done
            return [*read, await waiting]

    with backread_server.client() as client:
        assert ids(asyncio.run(main())) == [*backread_server.world.user_ids()[:5], 42]
