"""Event loops that are not asyncio's own: anyio on asyncio works, trio is told so."""

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
