"""Waits that a service states are ended by closing, and the body of an error is not waited for."""

import threading
import time
from typing import Any

import pytest

from backread import (
    AuthenticationError,
    BackreadError,
    Client,
    DecodeError,
    NotFoundError,
    PermissionDeniedError,
)
from helpers.api_rows import user
from helpers.scripted_server import Request, answer
from helpers.waiting import PATIENCE, wait_for


def test_a_call_that_is_not_retried_holds_no_other(face, scripted):
    server = scripted(answer(429, b"", {"Retry-After": "600"}), answer(200, user(42)))
    client = face.client(server, max_retries=0)
    with pytest.raises(BackreadError):
        face.call(client.users.get, 42)
    assert face.call(client.users.get, 42).id == 42


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize("closed", ["itself", "its origin", "what was made of it"])
def test_closing_ends_a_wait(scripted, calls, closed):
    server = scripted(lambda _: answer(429, b"", {"Retry-After": "600"}))
    origin = Client(server.url, server.secret, server.vendor)
    made = origin.with_options(max_concurrency=4)
    waiting, to_close = {
        "itself": (origin, origin),
        "its origin": (made, origin),
        "what was made of it": (origin, made),
    }[closed]
    ended: list[BaseException] = []

    def call() -> None:
        try:
            waiting.users.get(42)
        except BackreadError as error:
            ended.append(error)

    threads = [threading.Thread(target=call) for _ in range(calls)]
    for thread in threads:
        thread.start()
    wait_for(lambda: server.requests)
    to_close.close()
    for thread in threads:
        thread.join(PATIENCE)
    assert [str(error).count("closed") for error in ended] == [1] * calls


@pytest.mark.parametrize("timeout", [2, 30])
@pytest.mark.parametrize(("status", "error"), [(401, AuthenticationError), (404, NotFoundError)])
def test_an_error_is_that_of_its_status_though_its_body_does_not_end(
    face, scripted, status, error, timeout
):
    def service(_: Request) -> Any:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: text/plain\r\nContent-Length: 50\r\n\r\n"
        return server.stall(head.encode() + b"not found")

    server = scripted(service)
    began = time.monotonic()
    with pytest.raises(error):
        face.call(face.client(server, timeout=timeout).users.get, 42)
    assert time.monotonic() - began < 25
    assert len(server.requests) == 1


@pytest.mark.parametrize("end", ["", "\n"])
def test_no_part_of_a_long_secret_is_quoted(scripted, end):
    secret = "".join(f"{number:02x}" for number in range(100, 200))
    body = f'{{"authorization":"{secret[:150]}{end}'
    server = scripted(lambda _: answer(200, body.encode()))
    client = Client(server.url, secret, server.vendor, max_retries=0)
    with client, pytest.raises(DecodeError) as caught:
        client.users.get(42)
    quoted = str(caught.value)
    assert not any(secret[at : at + 6] in quoted for at in range(len(secret) - 6))


@pytest.mark.parametrize(
    ("headers", "options", "kept"),
    [
        ({"content-encoding": "gzip"}, {}, b"(the body cannot be decoded: "),
        ({}, {"max_response_bytes": 20}, b"blocked by the firew"),
    ],
    ids=["not gzip", "too large"],
)
def test_an_error_keeps_its_status_and_headers_whatever_its_body(
    face, scripted, headers, options, kept
):
    server = scripted(lambda _: answer(403, b"blocked by the firewall, rule 7", headers))
    with pytest.raises(PermissionDeniedError) as caught:
        face.call(face.client(server, **options).users.get, 42)
    assert caught.value.body.startswith(kept)
    assert caught.value.headers["connection"] == "close"
