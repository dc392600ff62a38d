"""Answers without an end, and small ones that unpack to gigabytes: the memory that they get."""

import json
import sys
from typing import Any

import pytest

from backread import (
    DecodeError,
    ResponseTooLargeError,
)
from helpers.api_rows import user
from helpers.scripted_server import answer

pytest.importorskip("pyarrow")

import zlib
from collections.abc import Callable, Iterable, Iterator

import pyarrow

from backread import TruncatedBodyError
from helpers.python_process import run

MEGABYTE = b" " * 1_000_000


def head(encoding: str = "identity") -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\nconnection: close\r\n\r\n".encode()


def plain() -> Iterator[bytes]:
    yield head()
    while True:
        yield MEGABYTE


def in_gzip() -> Iterator[bytes]:
    """A thousand times as large as what is sent, and without an end."""
    yield head("gzip")
    compressor = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    while True:
        yield compressor.compress(MEGABYTE)


def in_zstd(window: int) -> Callable[[], Iterator[bytes]]:
    """Blocks of one byte each that stand for 128 KiB, behind a header that asks for a window.

    ``window`` is its size in bytes, as a power of two (RFC 8878, 3.1.1).
    """

    def bomb() -> Iterator[bytes]:
        yield head("zstd") + b"\x28\xb5\x2f\xfd\x00" + bytes([(window - 10) << 3])
        # A block of 2^17 equal bytes that is not the last: 2^17 << 3 | 1 << 1.
        block = (131_072 << 3 | 2).to_bytes(3, "little") + b" "
        while True:
            yield block * 8

    return bomb


BOMBS: dict[str, Callable[[], Iterable[bytes]]] = {
    "plain": plain,
    "gzip": in_gzip,
    "br": lambda: [head("br") + pyarrow.compress(MEGABYTE * 100, codec="brotli", asbytes=True)],
    "zstd": in_zstd(23),
}
"""What is refused for its size. A window of 8 MB is the largest that HTTP allows (RFC 9659, 3)."""


ABOVE_THE_LIMIT = 32
"""How many MB a read may take in addition to the limit."""

PROGRAM = """
import asyncio, inspect, json
from pathlib import Path
from backread import AsyncClient, BackreadError, Client, Page

def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1_000

async def result(made):
    return await made if inspect.isawaitable(made) else made

async def main():
    client = {face}(max_response_bytes={limit}, max_retries=0, timeout=50)
    await result(client.users.get(1))
    before = memory("VmRSS")
    try:
        await result(client.{read})
    except BackreadError as error:
        print(json.dumps([type(error).__name__, memory("VmHWM") - before]))

# What pyarrow takes for itself is not what a read takes.
Page(9, 0, 0, (), "users").to_arrow()
asyncio.run(main())
"""
"""A read that fails; writes the error and by how many MB the peak of memory is above what was taken
before."""

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc says what memory was taken")


def refused(
    scripted: Any, bomb: Any, limit: int, read: str = "users.get(42)", face: str = ""
) -> str:
    """The error of a read in a separate process, whose memory is checked."""

    def service(request: Any) -> Any:
        first = request.path == "/external/users/1"
        return answer(200, user(1)) if first else bomb()

    program = PROGRAM.format(face=face or "Client", limit=limit, read=read)
    done = run(program, scripted(service))
    assert (done.returncode, done.stderr) == (0, "")
    error, taken = json.loads(done.stdout)
    assert taken < limit / 1_000_000 + ABOVE_THE_LIMIT
    return str(error)


@needs_linux
@pytest.mark.parametrize("limit", [100_000, pytest.param(64 * 2**20, marks=pytest.mark.long)])
@pytest.mark.parametrize("bomb", BOMBS)
def test_decompression_bomb_takes_at_most_max_response_bytes(scripted, bomb, limit):
    assert refused(scripted, BOMBS[bomb], limit) == "ResponseTooLargeError"


@needs_linux
@pytest.mark.parametrize(
    ("face", "read"),
    [
        ("Client", "messages.list(42, as_dict=True).to_list()"),
        ("Client", "users.list().to_arrow()"),
        ("AsyncClient", "messages.all().to_list()"),
    ],
)
def test_each_read_takes_at_most_max_response_bytes(scripted, face, read):
    assert refused(scripted, BOMBS["gzip"], 4_000_000, read, face) == "ResponseTooLargeError"


@needs_linux
def test_repaired_lone_surrogates_take_at_most_max_response_bytes(scripted):
    """Each is a few bytes, and a list of them all would be larger than what they stand in."""
    body = b'{"id": "x", "name": "' + rb"\ud800" * 1_500_000 + b'"}'
    assert refused(scripted, lambda: answer(200, body), len(body)) == "DecodeError"


@pytest.mark.parametrize("bomb", ["plain", "zstd"])
def test_a_bomb_is_an_error_that_is_tried_again_in_smaller_pages_alone(face, scripted, bomb):
    server = scripted(lambda request: BOMBS[bomb]())
    client = face.client(server, max_response_bytes=300_000, timeout=30)
    listing = client.users.list()
    with pytest.raises(ResponseTooLargeError, match="max_response_bytes="):
        face.call(client.users.get, 42)
    with pytest.raises(ResponseTooLargeError, match="300000"):
        face.collect(listing)
    assert listing.report.rows == 0
    limits = [one.query["limit"] for one in server.requests[1:]]
    assert limits == ["99", "49", "24", "12", "6", "3", "1", "1"]


def test_a_zstd_window_of_2_gib_is_an_error(face, scripted):
    server = scripted(lambda request: in_zstd(31)())
    face.failure(server, TruncatedBodyError, "incomplete", max_retries=0, timeout=30)


def test_millions_of_elements_that_are_no_rows_are_an_error(face, scripted):
    """Each would take some hundred bytes of memory."""
    body = b'{"users": [' + b"1," * 1_000_000 + b"1]}"
    client = face.client(scripted(lambda request: answer(200, body)), max_retries=0)
    for call in (lambda: face.call(client.users.page), lambda: face.collect(client.users.list())):
        with pytest.raises(DecodeError, match="more rows than their size allows for"):
            call()


def test_an_answer_of_just_the_bound_is_taken(face, scripted):
    body = b'{"id": 42}'
    server = scripted(lambda request: answer(200, body))
    assert face.get(server, max_response_bytes=len(body)).id == 42
    face.failure(server, ResponseTooLargeError, max_response_bytes=len(body) - 1)
