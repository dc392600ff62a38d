"""A process that reads with a secret made at run time, ends its client, and looks for what is left.

Started by test_secret_not_shown.py with a server's URL. It prints how often the secret is
in its memory: while the client lives, and after it. No part of the search is itself the secret.
"""

import asyncio
import ctypes
import gc
import re
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

from backread import AsyncClient, Client

ODD = 0x55


def overwrite(text: str) -> None:
    """Overwrites the characters of an ASCII string, which follow its head."""
    ctypes.memset(id(text) + sys.getsizeof("") - 1, 0, len(text))


def make(masked: bytes) -> str:
    return "".join([chr(byte ^ ODD) for byte in masked])


def around(first: int, end: int) -> Iterator[tuple[int, int]]:
    """The ranges of writable memory, without the one from ``first`` to ``end``."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        begins, ends, mode = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
        if mode.startswith("rw"):
            at, last = int(begins, 16), int(ends, 16)
            yield at, max(at, min(last, first))
            yield min(last, max(at, end)), last


def found(masked: bytes) -> int:
    """How often its middle is in the writable memory of this process.

    What is freed loses its first bytes to the allocator, and may lose its last to the next owner.
    """
    count = 0
    masked = masked[len(masked) // 4 : len(masked) // 2]
    # The halves are never side by side in the search's own memory.
    half = len(masked) // 2
    first = bytes(byte ^ ODD for byte in masked[:half])
    second = bytes(byte ^ ODD for byte in masked[half:])
    seen = bytearray(1 << 18)
    own = ctypes.addressof(ctypes.c_char.from_buffer(seen))
    with Path("/proc/self/mem").open("rb", 0) as memory:
        # What the search itself has read is not looked at.
        for at, last in around(own, own + len(seen)):
            while at < last:
                memory.seek(at)
                try:
                    read = memory.readinto(memoryview(seen)[: min(len(seen), last - at)])
                except OSError:
                    break
                place = seen.find(first, 0, read)
                while place >= 0:
                    count += seen.startswith(second, place + half, read)
                    place = seen.find(first, place + 1, read)
                at += read if read == last - at else max(1, read - len(masked) + 1)
    ctypes.memset(own, 0, len(seen))
    return count


def report(moment: str, masked: bytes) -> None:
    gc.collect()
    print(moment, found(masked), flush=True)


def wait_for_answers(masked: bytes, *service: str, **options: str) -> None:
    url, vendor = service
    secret = make(masked)
    client = Client(url, secret, vendor, **options)
    overwrite(secret)
    for _ in range(3):
        assert client.users.get(42).id == 42
        assert len(client.users.list().to_list()) == 5
    report("open", masked)
    client.close()


async def await_answers(masked: bytes, *service: str, **options: str) -> None:
    url, vendor = service
    secret = make(masked)
    client = AsyncClient(url, secret, vendor, **options)
    overwrite(secret)
    for _ in range(3):
        assert (await client.users.get(42)).id == 42
        assert len([user async for user in client.users.list()]) == 5
    report("open", masked)
    await client.aclose()


if __name__ == "__main__":
    face, url, vendor, *bundle = sys.argv[1:]
    masked = bytes(
        secrets.choice(b"0123456789abcdefghijklmnopqrstuvwxyz") ^ ODD for _ in range(120)
    )
    options = {"ca_bundle": bundle[0]} if bundle else {}
    report("before", masked)
    if face == "sync":
        wait_for_answers(masked, url, vendor, **options)
    else:
        asyncio.run(await_answers(masked, url, vendor, **options))
    report("after", masked)
