"""The mock as a thing that starts, takes what comes, and stops."""

import http.client
import mmap
import os
import socket
import subprocess
import sys
import time

import pytest

from backread.testing import MockServer, World
from helpers.raw_requests import Caller
from helpers.waiting import PATIENCE


def test_its_options_are_what_clients_must_bring():
    with MockServer(World(users=2), secret="mock_of_mine", vendor="acme.chat") as server:
        assert (server.secret, server.vendor) == ("mock_of_mine", "acme.chat")
        assert server.url == f"http://127.0.0.1:{server.port}"
        with server.client(timeout=PATIENCE) as client:
            assert client.vendor == "acme.chat"
            assert len(client.users.page()) == 2


def test_a_server_on_all_addresses_is_reached_on_loopback():
    with MockServer(host="0.0.0.0") as server:
        assert server.url == f"http://127.0.0.1:{server.port}"
        with server.client() as client:
            assert len(client.users.page()) > 0


def test_a_taken_port_is_an_error_that_names_it():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"127.0.0.1:{port}"):
            MockServer(port=port)


@pytest.mark.parametrize(
    "options",
    [
        {"host": "nowhere.example.com"},
        {"port": 70_000},
        {"secret": ""},
        {"secret": "a\nb"},
        {"vendor": "a b"},
    ],
    ids=repr,
)
def test_a_server_that_makes_no_sense_is_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        MockServer(**options)


def test_it_stops_at_once_with_connections_open_and_frees_its_port():
    # A loaded machine may hold one server up, but not one after another.
    for _ in range(3):
        server = MockServer(World(users=3))
        callers = [Caller(server) for _ in range(20)]
        for ask in callers:
            assert ask("/external/users").status == 200
        began = time.monotonic()
        server.stop()
        seconds = time.monotonic() - began
        server.stop()
        if seconds < 0.5:
            break
    assert seconds < 0.5
    with pytest.raises((http.client.HTTPException, OSError)):
        callers[0]("/external/users")
    with MockServer(port=server.port) as again:
        assert again.port == server.port
    for ask in callers:
        ask.connection.close()


def test_a_server_that_is_dropped_stops():
    port = MockServer(World(users=1)).port
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", port))


def test_no_python_runs_while_it_answers(tmp_path):
    """Another process reads a page while this one holds the GIL, and marks a shared byte."""
    flag = tmp_path / "flag"
    flag.write_bytes(b"-")
    code = """
import pathlib, sys
from backread import Client
assert len(Client().users.page()) == 99
pathlib.Path(sys.argv[1]).open("r+b").write(b"+")
"""
    with (
        MockServer(World(users=99)) as server,
        flag.open("r+b") as file,
        mmap.mmap(file.fileno(), 1) as shared,
    ):
        settings = {
            "BACKREAD_BASE_URL": server.url,
            "BACKREAD_API_SECRET": server.secret,
            "BACKREAD_VENDOR": server.vendor,
        }
        interval = sys.getswitchinterval()
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(flag)], env={**os.environ, **settings}
        )
        # Nothing in this loop lets go of the GIL.
        sys.setswitchinterval(1_000)
        try:
            end = time.monotonic() + PATIENCE
            while shared[0] != ord("+") and time.monotonic() < end:
                pass
            answered = shared[:]
        finally:
            sys.setswitchinterval(interval)
        assert process.wait(PATIENCE) == 0
    assert answered == b"+"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_does_not_keep_the_port():
    server = MockServer(World(users=1))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    try:
        server.stop()
        with MockServer(World(users=1), port=server.port) as again, again.client() as client:
            assert client.users.page().total == 1
    finally:
        os.close(write)
        os.close(read)
        assert os.waitpid(child, 0)[1] == 0
