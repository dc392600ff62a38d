"""The secret is sent to the service, and shows nowhere else."""

import copy
import gc
import json
import logging
import pickle
import secrets
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from backread import (
    BackreadError,
    Client,
    ConfigurationError,
    StatusError,
)
from backread.testing import World
from helpers.api_rows import envelope, paged, user, users
from helpers.debug_output import (
    error_output,
    everything_public,
    traceback_with_locals,
    without_the_callers_frame,
)
from helpers.python_process import run
from helpers.scripted_server import HANG_UP, answer

SECRET = "t0p5ecretOfTheService"


pytestmark = pytest.mark.usefixtures("no_settings")


@pytest.fixture
def scripted(scripted: Any) -> Any:
    """As everywhere, with the secret of this file."""
    return lambda *script: scripted(*script, secret=SECRET)


def test_no_public_object_shows_the_secret(each_face, scripted):
    client = each_face.client(scripted(paged(users(120))), deadline=20)
    listing = client.users.list()
    page = each_face.call(client.users.page)
    items = each_face.collect(listing)
    for thing in (
        client,
        client.with_options(timeout=1),
        copy.copy(client),
        client.users,
        client.messages,
        listing,
        client.messages.all(),
        listing.report,
        page,
        items[0],
    ):
        assert SECRET not in everything_public(thing)


def test_no_python_object_of_a_client_holds_the_secret(each_face, scripted):
    """Nor that of its proxy."""
    proxy = f"http://ada:{SECRET}@127.0.0.1:9"
    client = each_face.kind("https://chat.example.com", SECRET, "example", proxy=proxy)
    known = [client, client._native, client._options]
    for _ in range(3):
        known = [*known, *gc.get_referents(*known)]
    texts = {one for one in known if isinstance(one, (str, bytes))}
    # An option's value: the walk over the references got as far as the options.
    assert "wait" in texts
    assert not [one for one in texts if SECRET in str(one)]


def test_unpickled_client_takes_the_secret_from_the_environment(face, scripted, monkeypatch):
    server = scripted(answer(503), answer(200, user(42)))
    made = face.client(server, max_retries=0)
    for thing in (made, made.users, made.users.list(), made.messages.all()):
        pickled = pickle.dumps(thing)
        assert SECRET.encode() not in pickled
    pickled = pickle.dumps(made)
    with pytest.raises(ConfigurationError, match="BACKREAD_API_SECRET"):
        pickle.loads(pickled)
    monkeypatch.setenv("BACKREAD_API_SECRET", "another")
    client = pickle.loads(pickled)
    assert type(client) is face.kind
    assert (client.base_url, client.vendor) == (server.url, server.vendor)
    with pytest.raises(BackreadError, match="503"):
        face.call(client.users.get, 42)
    assert server.requests[0].headers["authorization"] == "Bearer another"
    face.close(client)


def test_a_pickled_listing_is_read_elsewhere(face, scripted, monkeypatch):
    server = scripted(paged(users(120)))
    monkeypatch.setenv("BACKREAD_API_SECRET", SECRET)
    listing = face.client(server).users.list(page_size=50, max_items=70)
    face.collect(listing)
    loaded = pickle.loads(pickle.dumps(listing))
    assert loaded.report.requests == 0
    assert [one.id for one in face.collect(loaded)] == list(range(1, 71))
    assert [one.query["limit"] for one in server.requests] == ["50", "23", "50", "23"]


CHATTY = """
import logging, sys
logging.basicConfig(level=0, stream=sys.stderr)
from backread import Client, BackreadError
client = Client()
try:
    client.users.list().to_list()
except BackreadError as error:
    logging.getLogger("test").exception("failed")
print(client, vars(type(client)), sys.exc_info())
"""


@pytest.mark.parametrize("failing", [False, True])
def test_no_log_shows_the_secret(scripted, failing):
    server = scripted(answer(403) if failing else answer(200, envelope([user(1)])))
    done = run(CHATTY, server, "-X", "dev", RUST_LOG="trace", RUST_BACKTRACE="full")
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == 1
    assert ("failed" in done.stderr) is failing
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.backread(world=World(seed=7, users=20, messages_per_user=(0, 3)))
def test_no_mirror_file_or_progress_has_the_secret(tmp_path, backread_mock):
    pytest.importorskip("duckdb")
    from backread import Mirror

    told: list[str] = []
    progress: list[Any] = []
    secret = backread_mock.secret
    mirror = Mirror(tmp_path / "chats")
    with Client(backread_mock.url, secret, backread_mock.vendor) as client:
        for mode in ("incremental", "full"):
            report = mirror.sync(client, mode=mode, on_progress=progress.append)
            told += [repr(report), report._repr_html_()]
    files = [file for file in (tmp_path / "chats").rglob("*") if file.is_file()]
    assert len(files) > 3
    assert progress
    for file in files:
        assert secret.encode() not in file.read_bytes()
        assert secret not in str(file)
    assert secret not in "\n".join([*told, *map(repr, progress)])


def sent_back(request: Any) -> dict[str, str]:
    return {"authorization": request.headers["authorization"], **request.headers}


def moved(location: str) -> Any:
    return lambda request: answer(302, b"", {"location": location})


ANSWERS: dict[str, Any] = {
    "401": lambda request: answer(401, b"who?"),
    "no answer": lambda request: HANG_UP,
    "half a body": lambda request: b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{",
    "headers as JSON": lambda request: answer(200, sent_back(request)),
    "headers as HTML": lambda request: answer(200, f"<pre>{sent_back(request)}</pre>"),
    "half a JSON": lambda request: answer(200, json.dumps(sent_back(request))[:-1]),
    "an id": lambda request: answer(200, {"id": SECRET, "users": SECRET}),
    "an id of a row": lambda request: answer(200, {"users": [{"id": SECRET}]}),
    "parts": lambda request: answer(200, {"id": ["Bearer", SECRET]}),
    "far within": lambda request: answer(200, "<" * 30 + SECRET + "x" * 90),
    "another host": moved(f"http://{SECRET}.example.com/"),
    "a user and a query": moved(f"http://{SECRET}@elsewhere.example.com/?key={SECRET}"),
    "no scheme": moved(f"//{SECRET.upper()}.example.com/"),
    "no address": moved(f"http://[{SECRET}"),
}
"""Failures, what echoes its request as a debug page does, and redirects."""


def shows_it(told: str) -> bool:
    """Whether the text has the secret, as it is or escaped."""
    return SECRET.lower() in unquote(told).replace("\\", "").lower()


def raised(kinds: Any, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """The error of a call, which shows the secret in nothing, nor in the locals of its frames."""
    try:
        call(*arguments, **named)
    except kinds as caught:
        error = without_the_callers_frame(caught)
    else:
        pytest.fail("no error was raised")
    assert not shows_it(error_output(error) + traceback_with_locals(error))
    assert SECRET.encode() not in pickle.dumps((type(error), error.args))
    return error


@pytest.mark.parametrize("name", ANSWERS)
def test_no_error_and_no_log_shows_the_secret(each_face, scripted, caplog, name):
    caplog.set_level(logging.DEBUG)
    client = each_face.client(scripted(ANSWERS[name]), max_retries=1, deadline=5)
    listing = client.users.list()
    # What a list takes for a row that does not fit is only reported.
    if name != "an id of a row":
        raised(BackreadError, each_face.collect, listing)
        raised(BackreadError, each_face.collect, client.messages.all(users=[1]))
    # A user of no integer id; other fields of the answer are its `extra`.
    raised(BackreadError, each_face.call, client.users.get, 42)
    assert not shows_it(repr(listing.report))
    assert not shows_it(caplog.text + str([vars(record) for record in caplog.records]))


SPELLINGS = {
    "of Bearer": f"Bearer {SECRET}",
    "a host": f"{SECRET.lower()}.example.com",
    "with percent": quote(f"a/{SECRET}", safe="").replace("t0p", "%74%30p"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_error_redacts_the_secret_in_what_the_service_sends(face, scripted, caplog, spelling):
    caplog.set_level(logging.DEBUG)
    text = SPELLINGS[spelling]
    assert shows_it(text)
    names = ("x-request-id", "location", "x-echo")
    headers = {**dict.fromkeys(names, f"a {text} b"), f"x-{SECRET}": "1"}
    server = scripted(lambda request: answer(503, f"caf\xe9 {text}".encode("latin-1"), headers))
    client = face.client(server, max_retries=1)
    error = raised(StatusError, face.call, client.users.get, 42)
    assert not shows_it(caplog.text)
    assert not shows_it(repr(pickle.loads(pickle.dumps(error)).__dict__))
    for name in names:
        assert error.headers[name].startswith("a ")
        assert error.headers[name].endswith(" b")
    assert "***" in str(error)
    assert error.body.startswith(b"caf\xe9 ")
    assert b"***" in error.body
    server.url += f"/{SECRET}"
    error = face.failure(server, StatusError, max_retries=0)
    assert error.url.endswith(f"/{'*' * len(SECRET)}/external/users/42")
    assert not shows_it(str(error))


MISPLACED: dict[str, dict[str, Any]] = {
    "no base_url": {"base_url": None},
    "no text": {"api_secret": [SECRET]},
    "a surrogate": {"api_secret": SECRET + "\ud800"},
    "a number": {"max_retries": 2**70},
    "a name with it": {f"header_{SECRET}_x": 1},
    "vendor": {"vendor": f"{SECRET}/"},
    "base_url": {"base_url": f"http://{SECRET}.example.com/{SECRET}"},
    "proxy": {"proxy": f"{SECRET}://proxy"},
    "ca_bundle": {"ca_bundle": f"/{SECRET}.pem"},
    "user_agent": {"user_agent": f"{SECRET}\n"},
    "on_rate_limit": {"on_rate_limit": SECRET},
    "deadline": {"deadline": [SECRET]},
    "max_retries": {"max_retries": SECRET},
}


@pytest.mark.parametrize("misplaced", MISPLACED)
@pytest.mark.parametrize("by_variable", [False, True])
def test_error_redacts_the_secret_in_arguments(face, monkeypatch, misplaced, by_variable):
    given: dict[str, Any] = {"base_url": "https://chat.example.com", "vendor": "acme"}
    if by_variable:
        monkeypatch.setenv("BACKREAD_API_SECRET", SECRET)
    else:
        given["api_secret"] = SECRET
    given.update(MISPLACED[misplaced])
    raised((ValueError, TypeError, OverflowError), face.kind, **given)


@pytest.mark.parametrize("changes", [{SECRET: 1}, {"on_rate_limit": SECRET}, {"proxy": SECRET}])
def test_a_change_that_repeats_it_does_not_get_it_into_an_error(face, scripted, changes):
    raised((ValueError, TypeError), face.client(scripted()).with_options, **changes)


@pytest.mark.parametrize(
    "arguments",
    [
        [SECRET],
        ["users", "--format", SECRET],
        ["users", "--output", f"missing/{SECRET}"],
        ["users", "--base-url", f"http://{SECRET}.example.com"],
        ["sync", f"missing/{SECRET}/x", "--profile", SECRET],
    ],
)
def test_command_does_not_repeat_a_misplaced_secret(backread, monkeypatch, arguments):
    monkeypatch.setenv("BACKREAD_API_SECRET", SECRET)
    done = backread(*arguments)
    assert done.code == 2
    assert "***" in done.error
    assert not shows_it(done.out + done.error)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (f"\n  {SECRET}\r\n\n", 0),
        (f"{SECRET}\n{SECRET}\n", 2),
        (f"API_SECRET={SECRET} # ours\n", 2),
        (SECRET.encode("utf-16"), 2),
        ("", 2),
    ],
)
def test_a_secret_file_is_read_or_refused_and_never_shown(
    backread, scripted, tmp_path, monkeypatch, content, code
):
    server = scripted(lambda request: answer(200, user(42)))
    monkeypatch.delenv("BACKREAD_API_SECRET")
    file = tmp_path / "secret"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    done = backread("user", 42, "--secret-file", file, "--base-url", server.url)
    assert done.code == code
    assert SECRET not in done.out + done.error
    if code == 0:
        assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    else:
        assert "secret" in done.line
        assert server.requests == []


@pytest.mark.parametrize("arguments", [["--api-secret", SECRET], [f"--token={SECRET}"]])
def test_a_secret_among_the_arguments_is_refused_and_not_repeated(backread, arguments):
    done = backread("users", *arguments)
    assert done.code == 2
    assert SECRET not in done.out + done.error


def test_traceback_of_an_internal_error_has_no_secret(scripted, monkeypatch):
    monkeypatch.setenv("BACKREAD_TRACEBACK", "1")
    command = "import sys; from backread.cli import main; sys.argv[1:] = ['user', '42']; main()"
    done = run(command, scripted(answer(400)))
    assert "Traceback" in done.stderr
    assert SECRET not in done.stdout + done.stderr


READER = """
import asyncio, ctypes, gc, inspect, sys
from backread import AsyncClient, Client

masked, kind, url, vendor, bundle = sys.argv[1:]

async def result(made):
    return await made if inspect.isawaitable(made) else made

async def main():
    secret = "".join([chr(byte ^ 0x55) for byte in bytes.fromhex(masked)])
    client = {"sync": Client, "async": AsyncClient}[kind](url, secret, vendor, ca_bundle=bundle)
    # The characters of an ASCII string follow its head.
    ctypes.memset(id(secret) + sys.getsizeof("") - 1, 0, len(secret))
    for _ in range(3):
        await result(client.users.get(42))
        await result(client.users.list().to_list())
    print("open", flush=True)
    sys.stdin.readline()
    await result((client.close if kind == "sync" else client.aclose)())

asyncio.run(main())
gc.collect()
print("closed", flush=True)
sys.stdin.readline()
"""
"""Reads with a secret that is nowhere else in its process; waits before and after it is closed."""


def occurrences(process: int, text: bytes) -> int:
    """How often a text is in the writable memory of a process."""
    count = 0
    with Path(f"/proc/{process}/mem").open("rb", 0) as memory:
        for line in Path(f"/proc/{process}/maps").read_text().splitlines():
            span, mode, *_ = line.split()
            begin, end = (int(each, 16) for each in span.split("-"))
            if mode.startswith("rw"):
                memory.seek(begin)
                with suppress(OSError):
                    count += memory.read(end - begin).count(text)
    return count


@pytest.mark.skipif(
    not Path("/proc/self/mem").exists(), reason="a process cannot look at another's memory here"
)
@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
def test_a_closed_client_leaves_no_secret_in_memory(each_face, authority, version):
    """Except, over HTTP/1.1, in the buffer of each connection, which is freed as it is."""
    pytest.importorskip("h2")
    from helpers.http2_server import Http2Server
    from helpers.tls_server import SecureServer

    http1 = version == "HTTP/1.1"
    made = SecureServer(authority.context("localhost")) if http1 else Http2Server(authority)
    secret = secrets.token_hex(60).encode()
    masked = bytes(byte ^ 0x55 for byte in secret).hex()
    with made as server:
        arguments = (masked, each_face.name, server.url, server.vendor, str(authority.file))
        with subprocess.Popen(
            [sys.executable, "-c", READER, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            counts = {}
            for moment in ("open", "closed"):
                assert process.stdout.readline() == f"{moment}\n"
                # What is freed loses its first bytes to the allocator, and may lose its last.
                counts[moment] = occurrences(process.pid, secret[30:60])
                process.stdin.write("\n")
                process.stdin.flush()
    assert counts["closed"] <= (server.connections if http1 else 0) < counts["open"]
