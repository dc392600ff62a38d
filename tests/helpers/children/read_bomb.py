"""One read in a process of its own that is to fail, and the memory that it took.

Usage: ``python read_bomb.py FACE READ LIMIT``, the service in the environment; a user is got ahead
of the read. It writes a line of JSON: the name of the error, and by how many MB the peak of the
memory is above what was taken before.
"""

import asyncio
import inspect
import json
import sys
from pathlib import Path
from typing import Any

from backread import AsyncClient, BackreadError, Client, Page

READS = {
    "get": lambda client: client.users.get(42),
    "dicts": lambda client: client.messages.list(42, as_dict=True).to_list(),
    "arrow": lambda client: client.users.list().to_arrow(),
    "all": lambda client: client.messages.all().to_list(),
}


def memory(name: str) -> float:
    """In MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1_000


async def result(made: Any) -> Any:
    return await made if inspect.isawaitable(made) else made


async def read_async(name: str, **options: Any) -> None:
    async with AsyncClient(**options) as client:
        await client.users.get(1)
        before = memory("VmRSS")
        try:
            await result(READS[name](client))
        except BackreadError as error:
            report(error, before)


def read(name: str, **options: Any) -> None:
    with Client(**options) as client:
        client.users.get(1)
        before = memory("VmRSS")
        try:
            READS[name](client)
        except BackreadError as error:
            report(error, before)


def report(error: BackreadError, before: float) -> None:
    print(json.dumps([type(error).__name__, memory("VmHWM") - before]))


if __name__ == "__main__":
    _, face, name, limit = sys.argv
    # What pyarrow takes for itself is not what a read takes.
    Page(9, 0, 0, (), "users").to_arrow()
    options: dict[str, Any] = {"max_response_bytes": int(limit), "max_retries": 0, "timeout": 50}
    if face == "async":
        asyncio.run(read_async(name, **options))
    else:
        read(name, **options)
