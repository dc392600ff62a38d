"""Where else a secret could end up: on disk, in output, in other processes, in an echo."""

import io
import json
import logging
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

import pytest

from backread import BackreadError, Client, DecodeError, StatusError
from backread.testing import MockServer, World
from helpers.api_rows import envelope, user
from helpers.debug_output import error_output, traceback_with_locals, without_the_callers_frame
from helpers.python_process import SECONDS, environment, run
from helpers.scripted_server import answer

SECRET = "t0p5ecretOfTheService"


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


@pytest.fixture
def scripted(scripted: Any) -> Any:
    """As everywhere, with the secret of this file."""
    return lambda *script: scripted(*script, secret=SECRET)


@pytest.mark.parametrize("level", [1, logging.DEBUG, logging.INFO, logging.WARNING])
def test_no_log_record_of_any_level_has_the_secret(face, scripted, caplog, level):
    """Each record whole, with its arguments, and of every logger there is."""
    caplog.set_level(level)
    caplog.set_level(level, "backread")
    location = {"location": "https://elsewhere.example.com/x"}
    server = scripted(
        *(answer(503), answer(401, SECRET), answer(302, b"", location), answer(200, SECRET))
    )
    for _ in range(3):
        face.failure(server, BackreadError, max_retries=1)
    for record in caplog.records:
        assert SECRET not in repr(vars(record)) + record.getMessage()


def test_no_log_record_of_an_outage_has_the_secret(scripted, caplog):
    caplog.set_level(logging.DEBUG)
    location = {"location": f"https://{SECRET}.example.com/x"}
    first = [answer(200, envelope([user(42)]))]

    def respond(request: Any) -> bytes:
        if request.path.endswith("/users"):
            return first.pop() if first else answer(302, b"", location)
        return answer(502)

    server = scripted(respond)
    with Client(server.url, SECRET, server.vendor, outage_patience=3) as client:
        client.users.page()
        with pytest.raises(BackreadError):
            client.users.get(42)
    told = [record.getMessage() for record in caplog.records]
    assert any("a redirect to another origin" in message for message in told)
    assert SECRET.lower() not in "\n".join(told).lower()


def sent_back(request: Any) -> dict[str, str]:
    return {"authorization": request.headers["authorization"], **request.headers}


ECHOES = {
    "JSON": lambda request: answer(200, sent_back(request)),
    "HTML": lambda request: answer(200, f"<pre>{sent_back(request)}</pre>"),
    "text": lambda request: answer(200, "\n".join(map(": ".join, sent_back(request).items()))),
    "half a JSON": lambda request: answer(200, json.dumps(sent_back(request))[:-1]),
    "the secret alone": lambda request: answer(200, SECRET),
    "the secret as an id": lambda request: answer(200, {"id": SECRET, "users": SECRET}),
    "the secret as an id of a row": lambda request: answer(200, {"users": [{"id": SECRET}]}),
    "the secret as a time": lambda request: answer(200, user(1, created_at=SECRET)),
    "the secret apart": lambda request: answer(200, {"id": ["Bearer", SECRET]}),
    "the secret far within": lambda request: answer(200, "<" * 30 + SECRET + "x" * 90),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_error_redacts_echoed_request_headers(face, scripted, echo):
    """As one does that shows what it was sent, to which base_url points by mistake."""
    client = face.client(scripted(ECHOES[echo]), max_retries=0)
    listing = client.users.list()
    told = [repr(listing.report)]
    for call in (
        lambda: face.call(client.users.get, 42),
        lambda: face.call(client.users.page),
        lambda: face.collect(listing),
    ):
        # What one call takes for a row, with odd values in `extra`, is none to the next.
        try:
            call()
        except DecodeError as error:
            told.append(error_output(error))
    told.append(repr(listing.report))
    assert len(told) > 2
    assert SECRET not in "".join(told)


SPELLINGS = {
    "as it is": SECRET,
    "of Bearer": f"Bearer {SECRET}",
    "a host": f"{SECRET.lower()}.example.com",
    "with percent": quote(f"a/{SECRET}", safe="").replace("t0p", "%74%30p"),
    "in quotes": json.dumps(SECRET).replace("0", "\\0"),
}


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
    return error


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("header", ["x-request-id", "request-id", "location", "x-echo"])
def test_error_redacts_the_secret_in_response_headers(face, scripted, caplog, header, spelling):
    caplog.set_level(logging.DEBUG)
    text = SPELLINGS[spelling]
    assert shows_it(text)
    server = scripted(lambda request: answer(503, b"", {header: f"a {text} b"}))
    client = face.client(server, max_retries=1)
    error = raised(StatusError, face.call, client.users.get, 42)
    assert not shows_it(caplog.text)
    assert not shows_it(repr(pickle.loads(pickle.dumps(error)).__dict__))
    assert error.headers[header].startswith("a ")
    assert error.headers[header].endswith(" b")
    assert header == "x-echo" or header == "location" or "***" in str(error)


@pytest.mark.parametrize(
    "location",
    [
        f"http://{SECRET}.example.com/",
        f"http://{SECRET}@elsewhere.example.com/{SECRET}?key={SECRET}",
        f"//{SECRET.upper()}.example.com/",
        f"http://127.0.0.1:9/?key={SECRET}",
        f"{SECRET}://elsewhere.example.com/",
        f"http://[{SECRET}",
        f"http://{SECRET}:x/",
    ],
)
def test_error_redacts_the_secret_in_a_redirect(face, scripted, caplog, location):
    caplog.set_level(logging.DEBUG)
    server = scripted(lambda request: answer(302, b"", {"location": location}))
    client = face.client(server, max_retries=0)
    raised(BackreadError, face.call, client.users.get, 42)
    raised(BackreadError, face.collect, client.users.list())
    assert not shows_it(caplog.text)


MISPLACED: dict[str, dict[str, Any]] = {
    "an unknown name": {SECRET: 1},
    "a name with it": {f"header_{SECRET}_x": 1},
    "vendor": {"vendor": f"{SECRET}/"},
    "base_url": {"base_url": f"http://{SECRET}.example.com/{SECRET}"},
    "a scheme": {"base_url": f"{SECRET}://chat.example.com"},
    "proxy": {"proxy": f"{SECRET}://proxy"},
    "ca_bundle": {"ca_bundle": f"/{SECRET}.pem"},
    "user_agent": {"user_agent": f"{SECRET}\n"},
    "on_rate_limit": {"on_rate_limit": SECRET},
    "timeout": {"timeout": SECRET},
    "deadline": {"deadline": [SECRET]},
    "max_retries": {"max_retries": SECRET},
    "rate_limit": {"rate_limit": SECRET},
    "max_response_bytes": {"max_response_bytes": SECRET},
}


@pytest.mark.parametrize("misplaced", MISPLACED)
@pytest.mark.parametrize("by_variable", [False, True])
def test_error_redacts_the_secret_in_arguments(each_face, monkeypatch, misplaced, by_variable):
    given: dict[str, Any] = {"base_url": "https://chat.example.com", "vendor": "acme"}
    if by_variable:
        monkeypatch.setenv("BACKREAD_API_SECRET", SECRET)
    else:
        given["api_secret"] = SECRET
    given.update(MISPLACED[misplaced])
    raised((ValueError, TypeError), each_face.kind, **given)


@pytest.mark.parametrize(
    "changes", [{SECRET: 1}, {"on_rate_limit": SECRET}, {"proxy": SECRET}], ids=repr
)
def test_a_change_that_repeats_it_does_not_get_it_into_an_error(each_face, scripted, changes):
    client = each_face.client(scripted())
    raised((ValueError, TypeError), client.with_options, **changes)


@pytest.mark.parametrize(
    "arguments",
    [
        [SECRET],
        ["users", "--limit", "1", SECRET],
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


def test_a_traceback_drawn_with_its_locals_does_not_show_it(each_face, scripted):
    rich = pytest.importorskip("rich.traceback")
    console = pytest.importorskip("rich.console")
    client = each_face.client(scripted(answer(401)))
    error = raised(BackreadError, each_face.call, client.users.get, 42)
    drawn = rich.Traceback.from_exception(
        type(error), error, error.__traceback__, show_locals=True, locals_max_string=None
    )
    page = console.Console(width=200, record=True, file=io.StringIO())
    page.print(drawn)
    assert "AuthenticationError" in page.export_text(clear=False)
    assert SECRET not in page.export_text()


PYTEST = """
import backread

def test_it():
    with backread.Client() as client:
        client.users.get(42)
"""


def test_a_failing_test_that_shows_its_locals_does_not_show_it(scripted, tmp_path):
    (tmp_path / "test_it.py").write_text(PYTEST)
    options = ["--showlocals", "-vv", "--tb=long", "--full-trace", "--rootdir", tmp_path, tmp_path]
    told = told_by_module("pytest", *options, server=scripted(answer(401)))
    assert "AuthenticationError" in told


CHILDREN = """
import sys, threading
started = []
watched = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.fork", "os.system", "os.putenv")
sys.addaudithook(lambda event, arguments: event in watched and started.append(event))
from backread import Client
with Client() as client:
    client.users.get(42)
    client.users.list().to_list()
print(started)
try:
    with open("/proc/thread-self/children") as children:
        print(children.read().split())
except FileNotFoundError:
    print([])
"""


def test_no_other_process_is_started_and_no_variable_is_set(backread_mock):
    """Another process's arguments and environment are there for all to read."""
    done = run(CHILDREN.replace("42", str(backread_mock.world.user_ids()[0])), backread_mock)
    assert done.stdout.split("\n") == ["[]", "[]", ""], done.stderr


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (f"{SECRET}\r\n", 0),
        (f"\n  {SECRET}\t\n\n", 0),
        (f"{SECRET}\n{SECRET}\n", 2),
        (f"API_SECRET={SECRET} # ours\n", 2),
        (f"\ufeff{SECRET}", 2),
        (SECRET.encode("utf-16"), 2),
        (b"\xff" + SECRET.encode(), 2),
        (SECRET + "\0", 2),
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


@pytest.mark.parametrize("option", ["--api-secret", "--secret", "--api_secret", "--token"])
@pytest.mark.parametrize("joined", [True, False])
def test_a_secret_among_the_arguments_is_refused_and_not_repeated(backread, option, joined):
    done = backread("users", *([f"{option}={SECRET}"] if joined else [option, SECRET]))
    assert done.code == 2
    assert SECRET not in done.out + done.error


def told_by_module(*command: Any, server: Any) -> str:
    """What ``python -m`` writes, none of which is the secret."""
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        env=environment(server),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert SECRET not in done.stdout + done.stderr
    return done.stdout + done.stderr


def test_no_profile_has_the_secret(face):
    with MockServer(World(seed=7, users=20)) as server:
        profile = face.call(face.client(server).probe)
        for text in (repr(profile), str(profile), profile.to_json()):
            assert server.secret not in text


def test_error_redacts_the_secret_in_header_names(face, scripted):
    error = face.failure(scripted(answer(404, b"", {f"x-{SECRET}": "1"})), StatusError)
    assert SECRET.lower() not in repr(dict(error.headers)).lower()


def test_traceback_of_an_internal_error_has_no_secret(scripted, monkeypatch):
    monkeypatch.setenv("BACKREAD_TRACEBACK", "1")
    server = scripted(answer(500))
    assert "Traceback" in told_by_module(
        "backread", "user", "42", "--max-retries", "0", server=server
    )
