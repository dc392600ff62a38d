"""What the services of `reliability.py` do wrong: one function for each fault."""

from __future__ import annotations

import gzip
import itertools
import json
import subprocess
import time
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from reliability_servers import BODY, JSON, USER, Behaviour, Exchange, head

PACE = 1 << 20
"""Bytes at a time where there is no end to them."""


def good(exchange: Exchange) -> bool:
    """A good answer."""
    return exchange.answer()


def body(text: bytes, encoding: str | None = None) -> Behaviour:
    """A whole answer with another body."""
    headers = JSON if encoding is None else {**JSON, "Content-Encoding": encoding}
    return lambda exchange: exchange.answer(text, headers=headers)


def user(name: bytes = b'"Ada Lovelace"', more: bytes | None = None) -> bytes:
    """The user as JSON, with a name and with an unknown field as they are given."""
    fields = [b'"id": 42', b'"name": ' + name, b'"reference": "' + b"r" * 400 + b'"']
    fields += [] if more is None else [b'"more": ' + more]
    return b"{" + b", ".join(fields) + b"}"


# --- connections ----------------------------------------------------------------------------------


def cut_length(exchange: Exchange) -> bool:
    """Half of the bytes that were announced."""
    length = {"Content-Length": str(len(BODY))}
    exchange.send(head(200, {**JSON, **length}) + BODY[: len(BODY) // 2])
    return False


def cut_chunks(exchange: Exchange) -> bool:
    """Chunks without the last one."""
    half = BODY[: len(BODY) // 2]
    chunk = f"{len(half):x}\r\n".encode() + half + b"\r\n"
    exchange.send(head(200, {**JSON, "Transfer-Encoding": "chunked"}) + chunk)
    return False


def cut_gzip(honest: bool) -> Behaviour:
    """Gzip that lacks its second half, with the length of all of it or of what is sent."""
    whole = gzip.compress(user(b'"' + bytes(range(97, 123)) * 40 + b'"'))

    def behave(exchange: Exchange) -> bool:
        sent = whole[: len(whole) // 2]
        length = {"Content-Length": str(len(sent if honest else whole))}
        exchange.send(head(200, {**JSON, **length, "Content-Encoding": "gzip"}) + sent)
        return False

    return behave


def reset_before(exchange: Exchange) -> bool:
    """No answer: the connection breaks."""
    return exchange.reset()


def reset_during(exchange: Exchange) -> bool:
    """The connection breaks in the middle of the body."""
    exchange.send(head(200, {**JSON, "Content-Length": str(len(BODY))}) + BODY[:100])
    time.sleep(0.1)
    return exchange.reset()


def stale(exchange: Exchange) -> bool:
    """The connection is closed just as the second request arrives on it."""
    return exchange.number != 2 and exchange.answer()


# --- time and size --------------------------------------------------------------------------------


def silence(exchange: Exchange) -> bool:
    """No byte of an answer."""
    return exchange.silence()


def silence_in_body(exchange: Exchange) -> bool:
    """Half of an answer, and then nothing."""
    length = {"Content-Length": str(len(BODY))}
    exchange.send(head(200, {**JSON, **length}) + BODY[: len(BODY) // 2])
    return exchange.silence()


def drip(exchange: Exchange) -> bool:
    """A byte each 0.2 seconds, for ever."""
    exchange.send(head(200, {**JSON, "Content-Length": "1000000"}))
    for byte in itertools.chain(BODY, itertools.repeat(32)):
        exchange.send(bytes([byte]))
        if exchange.server.closing.wait(0.2):
            break
    return False


def endless(exchange: Exchange) -> bool:
    """A name without an end, some hundred megabytes a second."""
    exchange.send(head(200, {**JSON, "Transfer-Encoding": "chunked"}))
    chunk = f"{PACE:x}\r\n".encode() + b"a" * PACE + b"\r\n"
    exchange.send(b'14\r\n{"id": 42, "name": "\r\n')
    while not exchange.server.closing.wait(0.004):
        exchange.send(chunk)
    return False


def huge_header(exchange: Exchange) -> bool:
    """A header of 64 MB."""
    exchange.send(b"HTTP/1.1 200 OK\r\nX-Huge: " + b"h" * (64 << 20) + b"\r\n")
    exchange.send(head(200, {**JSON, "Content-Length": str(len(BODY))}).split(b"\r\n", 1)[1] + BODY)
    return True


def endless_headers(exchange: Exchange) -> bool:
    """Header lines for ever."""
    exchange.send(b"HTTP/1.1 200 OK\r\n")
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"h" * 100) for number in range(1_000))
    while not exchange.server.closing.wait(0.001):
        exchange.send(lines)
    return False


PEERS = Path(__file__).resolve().parent.parent / "target" / "reliability-peers" / "bin" / "python"
BROTLI = """
import sys, brotli
packer = brotli.Compressor(quality=5)
packed = packer.process(sys.argv[1].encode())
packed += b"".join(packer.process(b"a" * 1_000_000) for _ in range(1_000))
sys.stdout.buffer.write(packed + packer.process(b'"}') + packer.finish())
"""
DECODED = 1_000_000_000
"""Bytes that a bomb becomes."""


OPENED = b'{"id": 42, "reference": "' + b"r" * 400 + b'", "name": "'


def name_of(size: int) -> Iterator[bytes]:
    """A user with a name of so many bytes, in pieces."""
    yield OPENED
    for _ in range(size // PACE):
        yield b"a" * PACE
    yield b'"}'


def gzip_bomb() -> bytes:
    """A user whose name is a gigabyte, as gzip."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(map(packer.compress, name_of(DECODED))) + packer.flush()


def zstd_bomb() -> bytes:
    """The same as zstd, put together by hand: blocks that repeat a byte (RFC 8878)."""
    frame = b"\x28\xb5\x2f\xfd" + b"\x00" + b"\x38"
    start, *pieces, end = name_of(DECODED)
    repeated = (128 << 10) << 3 | 1 << 1
    blocks = [(len(start) << 3).to_bytes(3, "little") + start]
    blocks += [repeated.to_bytes(3, "little") + b"a"] * (len(pieces) * PACE >> 17)
    return frame + b"".join(blocks) + (len(end) << 3 | 1).to_bytes(3, "little") + end


def brotli_bomb() -> bytes:
    """The same as brotli, by the package that the peers have."""
    made = subprocess.run([PEERS, "-c", BROTLI, OPENED.decode()], capture_output=True, check=True)
    return made.stdout


@cache
def packed(encoding: str) -> bytes:
    """The bomb of an encoding, made once."""
    return {"gzip": gzip_bomb, "br": brotli_bomb, "zstd": zstd_bomb}[encoding]()


def bomb(encoding: str) -> Behaviour:
    """An answer of a few kilobytes that becomes a gigabyte."""
    return lambda exchange: body(packed(encoding), encoding)(exchange)


# --- statuses and redirects -----------------------------------------------------------------------


def status(code: int, **headers: str) -> Behaviour:
    """An error without anything in it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.answer(b"{}", code, {**JSON, **named})


def circle(exchange: Exchange) -> bool:
    """A redirect to the same place."""
    return exchange.answer(b"", 302, {"Location": "/external/users/42"})


def leave(url: str) -> Behaviour:
    """A redirect to another origin."""
    return status(302, Location=f"{url}/external/users/42")


def until_released(exchange: Exchange) -> bool:
    """Silence until the child asks for answers; the requests that wait are answered then too."""
    return exchange.wait_for_release() and exchange.answer()


# --- bodies ---------------------------------------------------------------------------------------

HTML = b"<!doctype html><title>Maintenance</title><p>Back soon."
DEEP = b"[" * 200_000 + b"]" * 200_000
DIGITS = b"1" + b"0" * 4_999
TWICE = b'{"id": 42, "name": "the first", "reference": "' + b"r" * 400 + b'", "name": "the last"}'
HALF = BODY[: len(BODY) // 2]
BYTE_ORDER_MARK = b"\xef\xbb\xbf" + json.dumps(USER).encode()
BAD_UTF8 = user(b'"Ada \xff Lovelace"')
SURROGATE = user(b'"Ada \\ud83d Lovelace"')
