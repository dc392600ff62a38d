"""Reads of two kinds, and answers that are broken on the wire."""

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow

from helpers.api_rows import envelope, message, user
from helpers.scripted_server import HANG_UP, RESET, Answer, Request, answer

Read = Callable[[Any, Any], list[int]]
"""Reads by a face and a client; gives the ids."""

READS: dict[str, Read] = {
    "get": lambda face, client: [face.call(client.users.get, 42).id],
    "columns": lambda face, client: face.call(client.users.list().to_arrow)["id"].to_pylist(),
}
"""One request, and the pages of a walk."""


def body_for(request: Request) -> bytes:
    """What was asked for: the one row with the id 42, or a list of it."""
    made = message if "messages" in request.path else user
    if request.path.endswith(("users", "messages")):
        key = request.path.rsplit("/", 1)[1]
        return json.dumps(envelope([made(42)], key=key)).encode()
    return json.dumps(made(42)).encode()


def serve(make: Callable[[bytes], Answer]) -> Callable[[Request], Answer]:
    """A service whose answers are made of the body that was asked for."""
    return lambda request: make(body_for(request))


def head(*lines: str, version: str = "HTTP/1.1") -> bytes:
    return "\r\n".join([f"{version} 200 OK", *lines, "", ""]).encode("latin-1")


def chunked(body: bytes, *lines: str, last: bytes = b"0\r\n\r\n") -> bytes:
    size = f"{len(body):x}\r\n".encode()
    return head("transfer-encoding: chunked", *lines) + size + body + b"\r\n" + last


def sized(body: bytes, *lines: str, length: Any = None) -> bytes:
    return head(f"content-length: {len(body) if length is None else length}", *lines) + body


def packed(encoding: str, spoil: Callable[[bytes], bytes] = bytes) -> Callable[[bytes], bytes]:
    """A whole answer whose body is packed, and then spoilt."""

    def make(body: bytes) -> bytes:
        return sized(spoil(pack(encoding, body)), f"content-encoding: {encoding}")

    return make


def pack(encoding: str, body: bytes) -> bytes:
    if encoding == "gzip":
        return gzip.compress(body)
    if encoding == "deflate":
        return zlib.compress(body)
    return pyarrow.compress(body, codec={"br": "brotli"}.get(encoding, encoding), asbytes=True)


def many_headers(count: int) -> list[str]:
    return [f"x-{number}: a" for number in range(count)]


TRUNCATED: dict[str, Callable[[bytes], Answer]] = {
    "Content-Length": lambda body: sized(body)[:-1],
    "Content-Length of 2**63": lambda body: sized(body, length=2**63),
    "no body at all": lambda body: head(f"content-length: {len(body)}"),
    "HTTP/1.0 with a length": lambda body: sized(body).replace(b"HTTP/1.1", b"HTTP/1.0")[:-1],
    "chunked, no last chunk": lambda body: chunked(body, last=b""),
    "chunked, half a last chunk": lambda body: chunked(body, last=b"0\r\n"),
    "chunked, within a chunk": lambda body: chunked(body, last=b"")[:-9],
    "chunked, no size": lambda body: head("transfer-encoding: chunked") + b"zz\r\n" + body,
    "chunked, a negative size": lambda body: head("transfer-encoding: chunked") + b"-5\r\n" + body,
    "chunked, too large a size": lambda body: (
        head("transfer-encoding: chunked") + b"f" * 17 + b"\r\n" + body
    ),
    "gzip, wrong checksum": packed("gzip", lambda body: body[:-8] + b"\0\1\2\3" + body[-4:]),
    "gzip in chunks, cut": lambda body: chunked(gzip.compress(body)[:-1], "content-encoding: gzip"),
    "gzip, whole, no last chunk": lambda body: chunked(
        gzip.compress(body), "content-encoding: gzip", last=b""
    ),
    "gzip, whole, shorter than said": lambda body: sized(
        gzip.compress(body), "content-encoding: gzip", length=5_000
    ),
    "deflate without the header of zlib": lambda body: sized(
        zlib.compress(body)[2:-4], "content-encoding: deflate"
    ),
    "br, half": packed("br", lambda body: body[: len(body) // 2]),
}
"""Bodies that are not whole."""

UNHEARD: dict[str, Callable[[bytes], Answer]] = {
    "nothing": lambda body: HANG_UP,
    "a reset": lambda body: RESET,
    "half a head": lambda body: head("content-type: text/plain")[:-9],
}
"""Answers that end before their head does."""

MALFORMED: dict[str, Callable[[bytes], Answer]] = {
    "HTTP/0.9": lambda body: body,
    "HTTP/3.7": lambda body: sized(body).replace(b"HTTP/1.1", b"HTTP/3.7"),
    "a status of four digits": lambda body: sized(body).replace(b"200", b"2000"),
    "two lengths": lambda body: sized(body, "content-length: 5"),
    "a list of lengths": lambda body: sized(body, length=f"{len(body)}, 5"),
    "a negative length": lambda body: sized(body, length=-5),
    "a length that is no number": lambda body: sized(body, length="many"),
    "a length past all bounds": lambda body: sized(body, length="9" * 30),
    "HTTP/1.0 in chunks": lambda body: chunked(body).replace(b"HTTP/1.1", b"HTTP/1.0"),
    "NUL in a header": lambda body: sized(body, "x: a\0b"),
    "a line that is no header": lambda body: sized(body, "no header"),
    "a header over two lines": lambda body: sized(body, "x: a\r\n b"),
    "a blank before the colon": lambda body: sized(body, "x : a"),
}
"""Answers whose head is not HTTP."""

OVERSIZED: dict[str, Callable[[bytes], Answer]] = {
    "too many headers": lambda body: sized(body, *many_headers(200)),
    "a header of a megabyte": lambda body: sized(body, "x: " + "a" * 1_000_000),
}
"""Answers with more of a head than is read."""

NO_JSON: dict[str, Callable[[bytes], Answer]] = {
    "empty": lambda body: answer(200),
    "204": lambda body: answer(204),
    "packed nothing": lambda body: sized(b"", "content-encoding: gzip"),
    "HTML": lambda body: answer(200, "<!doctype html><title>Sign in</title>"),
    "half": lambda body: answer(200, body[:-9]),
    "NUL within": lambda body: answer(200, body[:1] + b"\0" + body[1:]),
    "NUL behind": lambda body: answer(200, body + b"\0"),
    "twice": lambda body: answer(200, body + body),
    "UTF-16": lambda body: answer(200, body.decode().encode("utf-16")),
    "NaN": lambda body: answer(200, body.replace(b'"id": 42', b'"id": 42, "x": NaN')),
    "Infinity": lambda body: answer(200, body.replace(b'"id": 42', b'"id": 42, "x": -Infinity')),
    "gzip twice": lambda body: sized(
        gzip.compress(gzip.compress(body)), "content-encoding: gzip, gzip"
    ),
    "x-gzip": lambda body: sized(gzip.compress(body), "content-encoding: x-gzip"),
    "chunks within gzip": lambda body: (
        head("transfer-encoding: gzip, chunked")
        + chunked(gzip.compress(body)).split(b"\r\n\r\n", 1)[1]
    ),
}
"""A 200 whose body is no JSON."""

FINE: dict[str, Callable[[bytes], Answer]] = {
    "HTTP/1.0 without a length": lambda body: head(version="HTTP/1.0") + body,
    "HTTP/1.0 with a length": lambda body: sized(body).replace(b"HTTP/1.1", b"HTTP/1.0"),
    "longer than it says": lambda body: sized(body) + b"more of it",
    "a length that is said twice": lambda body: sized(body, f"content-length: {len(body)}"),
    "in chunks and of a length": lambda body: chunked(body, "content-length: 3"),
    "chunks with extensions": lambda body: (
        head("transfer-encoding: chunked")
        + f"{len(body):x};a=b;c\r\n".encode()
        + body
        + b"\r\n0;d\r\n\r\n"
    ),
    "trailers": lambda body: chunked(body, last=b"0\r\nx-trailer: a\r\n\r\n"),
    "lines without a return": lambda body: (
        sized(b"").replace(b"\r\n", b"\n").replace(b"length: 0", f"length: {len(body)}".encode())
        + body
    ),
    "no reason": lambda body: sized(body).replace(b"200 OK", b"200"),
    "100 ahead": lambda body: b"HTTP/1.1 100 Continue\r\n\r\n" + sized(body),
    "103 ahead, often": lambda body: b"HTTP/1.1 103 Hints\r\nlink: </a>\r\n\r\n" * 50 + sized(body),
    "a header that is no ASCII": lambda body: sized(body, "x: \xe9"),
    "90 headers": lambda body: sized(body, *many_headers(90)),
    "a header of 200 KB": lambda body: sized(body, "x: " + "a" * 200_000),
    "a byte order mark": lambda body: sized(b"\xef\xbb\xbf" + body),
    "gzip": packed("gzip"),
    "br": packed("br"),
    "zstd": packed("zstd"),
    "deflate": packed("deflate"),
    "gzip, and more": packed("gzip", lambda body: body + b"junk!"),
    "zstd, in two frames": lambda body: sized(
        pack("zstd", body[:9]) + pack("zstd", body[9:]), "content-encoding: zstd"
    ),
    "identity": lambda body: sized(body, "content-encoding: identity"),
    "an encoding that it does not have": lambda body: sized(body, "content-encoding: utf-8"),
}
"""Odd, and yet all there."""
