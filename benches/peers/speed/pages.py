"""Every user, then every user's messages, 16 lists at a time: what each peer is given to do.

A peer brings ``fetch``, which gets the bytes at a path, and two decoders of a page. With ``frozen``
as an argument, what has been read is put out of the garbage collector's sight after each list; with
``uvloop``, the event loop is that.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

if "uvloop" in sys.argv:
    from uvloop import run as run
else:
    from asyncio import run as run

LIMIT = 99
IN_FLIGHT = 16
HEADERS = {"Authorization": "Bearer bench", "Accept": "application/vnd.bench.v1+json"}

Fetch = Callable[[str], Awaitable[Any]]
# What a page's bytes are decoded to: the list's total, and its rows.
Decode = Callable[[Any], tuple[int, Sequence[Any]]]


def arguments() -> tuple[str, int]:
    """The service's URL, and how many users are read."""
    return sys.argv[1], int(sys.argv[2])


async def pages(fetch: Fetch, decode: Decode, path: str) -> AsyncIterator[Sequence[Any]]:
    """The pages of one list, one after another."""
    offset, total = 0, 1
    while offset < total:
        total, rows = decode(await fetch(f"{path}?offset={offset}&limit={LIMIT}"))
        yield rows
        offset += len(rows)


async def read(
    fetch: Fetch, users: Decode, messages: Decode, most: int, id_of: Callable[[Any], int]
) -> list[Any]:
    """The messages of that many users."""
    ids: list[int] = []
    async for rows in pages(fetch, users, "/external/users"):
        ids += map(id_of, rows)
        if len(ids) >= most:
            break
    kept: list[Any] = []
    waiting = iter(ids[:most])
    freeze = "frozen" in sys.argv

    async def reader() -> None:
        for user in waiting:
            async for rows in pages(fetch, messages, f"/external/users/{user}/messages"):
                kept.extend(rows)
            if freeze:
                gc.freeze()

    await asyncio.gather(*(reader() for _ in range(IN_FLIGHT)))
    return kept
