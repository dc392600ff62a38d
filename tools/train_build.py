"""What an optimised build is trained on: the compiler sees which code it runs, and how often.

Run by maturin between two builds (``pgo-command`` in pyproject.toml), with the first one installed.
Reads a fake of the service in every shape and mirrors it, so that what most programs do counts
most: rows as they come, rows of many escapes and long ones, and lists of one row. Asserts nothing.
"""

import asyncio
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from backread import AsyncClient, Client, Mirror
from backread.testing import MockServer, World

WORDS = [
    *("the", "order,", "когда", '"придёт"', "ждать\nпосылку?"),
    *("merci", "été", "荷物は", "https://shop.example/x", "tomorrow"),
]
AT_ONCE = 64


def escaped(users: int, messages: int, words: int) -> Iterator[str]:
    """Users as JSON lines, each with their messages; all but ASCII is written as `\\u` escapes."""
    draw = random.Random(7)
    at = "2024-01-01T10:00:00.000Z"
    for user in range(1, users + 1):
        sender = {"id": user, "name": "Zoë", "email": None}
        rows = [
            {
                "id": user * 1_000 + number,
                "body": " ".join(draw.choices(WORDS, k=words)),
                "read_by_user": True,
                "read_by_operator": number % 2 == 0,
                "created_at": at,
                "file_url": None,
                "auto_invitation": False,
                "sender_type": "user",
                "sender": sender,
            }
            for number in range(messages)
        ]
        row = {
            **sender,
            "reference": None,
            "created_at": at,
            "updated_at": at,
            "online_at": None,
            "last_url": "https://shop.example/",
            "user_attributes": [{"name": "plan", "value": "pro"}],
            "messages": rows,
        }
        yield json.dumps(row)


def read(client: Client) -> list[int]:
    """Reads everything in each shape; returns the users' ids."""
    for rows in (client.messages.all, client.users.list):
        for _ in range(2):
            for _batch in pa.RecordBatchReader.from_stream(rows()):
                pass
            pa.table(rows())
            rows().to_list()
            rows(as_dict=True).to_list()
    return [user.id for user in client.users.list()]


def call(client: Client, ids: list[int]) -> None:
    """Calls for one user after the other."""
    for number in range(2_000):
        client.users.get(ids[number % len(ids)])
        client.users.get(ids[number % len(ids)], as_dict=True)


async def call_at_once(client: AsyncClient, ids: list[int]) -> None:
    """Calls for many users at once, then reads everything."""
    for _ in range(20):
        await asyncio.gather(*(client.users.get(ids[n % len(ids)]) for n in range(AT_ONCE)))
    await client.messages.all().to_list()


async def read_async(server: MockServer, ids: list[int]) -> None:
    """What an asynchronous program does."""
    async with AsyncClient(server.url, server.secret, server.vendor) as client:
        await call_at_once(client, ids)


def train(world: World) -> None:
    """Does with one service what programs do."""
    with (
        MockServer(world) as server,
        Client(server.url, server.secret, server.vendor) as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        ids = read(client)
        call(client, ids)
        asyncio.run(read_async(server, ids))
        mirror = Mirror(Path(folder) / "mirror")
        for _ in range(2):
            mirror.sync(client)


if __name__ == "__main__":
    for each in (
        World(seed=3, users=300, messages_per_user=(0, 400)),
        World(seed=4, users=2_000, messages_per_user=1),
        World(seed=5, users=5, messages_per_user=5_000),
        World.from_jsonl(escaped(100, 250, 20)),
        World.from_jsonl(escaped(20, 100, 700)),
    ):
        train(each)
