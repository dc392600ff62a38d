"""Answers that would fill the memory: small when sent, or without an end."""

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator

import pyarrow

MEGABYTE = b" " * 1_000_000


def head(encoding: str = "identity") -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\nconnection: close\r\n\r\n".encode()


def plain() -> Iterator[bytes]:
    yield head()
    while True:
        yield MEGABYTE


def chunked() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    while True:
        yield b"f4240\r\n" + MEGABYTE + b"\r\n"


def in_gzip() -> Iterator[bytes]:
    """A thousand times as large as what is sent, and without an end."""
    yield head("gzip")
    compressor = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    while True:
        yield compressor.compress(MEGABYTE)


def in_gzip_members() -> Iterator[bytes]:
    yield head("gzip")
    while True:
        yield gzip.compress(b" " * 1_000) * 1_000


def in_gzip_twice() -> Iterator[bytes]:
    """What is packed twice was not asked for, and is not unpacked even once."""
    yield head("gzip, gzip") + gzip.compress(gzip.compress(MEGABYTE * 100))


def in_brotli() -> Iterator[bytes]:
    """300 MB in some hundred bytes."""
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "brotli") as packed:
        for _ in range(300):
            packed.write(MEGABYTE)
    yield head("br") + sink.getvalue().to_pybytes()


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


def in_zstd_frames() -> Iterator[bytes]:
    """Frames that are to be skipped: they unpack to nothing, for ever."""
    yield head("zstd")
    while True:
        yield b"\x50\x2a\x4d\x18\x00\x00\x00\x00" * 8_000


BOMBS: dict[str, Callable[[], Iterable[bytes]]] = {
    "plain": plain,
    "chunked": chunked,
    "gzip": in_gzip,
    "gzip members": in_gzip_members,
    "br": in_brotli,
    "zstd": in_zstd(23),
    "zstd frames": in_zstd_frames,
}
"""What is refused for its size."""

UNASKED: dict[str, Callable[[], Iterable[bytes]]] = {
    "gzip twice": in_gzip_twice,
    "zstd 16 MiB": in_zstd(24),
    "zstd 128 MiB": in_zstd(27),
    "zstd 2 GiB": in_zstd(31),
    "br 1 GiB": lambda: [head("br") + b"\x11\x1e" + b"\xff" * 100],
}
"""What is refused for the way it is packed."""
