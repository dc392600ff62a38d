"""The secret is sent to the service, and shows nowhere else."""

import asyncio
import copy
import gc
import logging
import pickle
from typing import Any

import pytest

from backread import AsyncClient, BackreadError, Client, ConfigurationError
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
    client = each_face.client(scripted(paged(users(3))))
    each_face.collect(client.users.list())
    known = [client, client._native, client._options]
    for _ in range(3):
        known = [*known, *gc.get_referents(*known)]
    texts = {one for one in known if isinstance(one, (str, bytes))}
    # An option's value: the walk over the references got as far as the options.
    assert "wait" in texts
    assert not [one for one in texts if SECRET in str(one)]


FAILING = {
    "401": answer(401, b"who?"),
    "429": answer(429, b"", {"retry-after": "1"}),
    "503": answer(503),
    "no answer": HANG_UP,
    "not JSON": answer(200, "<html>"),
    "no user": answer(200, {"id": "x"}),
    "another origin": answer(302, b"", {"location": "https://elsewhere.example.com/x"}),
    "half a body": b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{",
}


@pytest.mark.parametrize("name", FAILING)
def test_no_error_shows_the_secret(each_face, scripted, caplog, name):
    caplog.set_level(logging.DEBUG)
    server = scripted(lambda request: FAILING[name])
    client = each_face.client(server, max_retries=1, deadline=0.9)
    with pytest.raises(BackreadError) as caught:
        each_face.call(client.users.get, 42)
    with pytest.raises(BackreadError) as walked:
        each_face.collect(client.messages.all(users=[1]))
    for error in (caught.value, walked.value):
        assert SECRET not in error_output(error)
        assert SECRET.encode() not in pickle.dumps(error)
        assert SECRET not in traceback_with_locals(error)
    assert len(server.requests) > 1
    assert SECRET not in caplog.text


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(
    "arguments",
    [
        {"base_url": None},
        {"base_url": "http://chat.example.com"},
        {"base_url": "chat.example.com"},
        {"vendor": "a/b"},
        {"timeout": -1},
        {"timeout": "30"},
        {"max_retries": "five"},
        {"max_retries": 2**70},
        {"proxy": "nowhere"},
        {"ca_bundle": "missing.pem"},
        {"ca_bundle": 5},
        {"api_secret": SECRET + "\n"},
        {"api_secret": SECRET + "\ud800"},
        {"api_secret": SECRET.encode()},
        {"api_secret": [SECRET]},
    ],
    ids=repr,
)
def test_client_constructor_error_has_no_secret(kind, arguments):
    given = {"base_url": "https://chat.example.com", "vendor": "acme", "api_secret": SECRET}
    with pytest.raises((ValueError, TypeError, OverflowError)) as caught:
        kind(**given | arguments)
    error = without_the_callers_frame(caught.value)
    assert SECRET not in traceback_with_locals(error) + error_output(error)
    assert SECRET.encode() not in pickle.dumps((type(error), error.args))


def test_pickled_client_has_no_secret(each_face, scripted):
    client = each_face.client(scripted(), timeout=3, max_retries=2)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        for thing in (client, client.users, client.users.list(), client.messages.all()):
            assert SECRET.encode() not in pickle.dumps(thing, protocol)


def test_unpickled_client_takes_the_secret_from_the_environment(face, scripted, monkeypatch):
    server = scripted(answer(503), answer(200, user(42)))
    pickled = pickle.dumps(face.client(server, max_retries=0))
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


def test_a_client_whose_proxy_has_a_password_is_not_pickled(face, scripted):
    client = face.client(scripted(), proxy="http://ada:hunter2@127.0.0.1:9")
    assert "hunter2" not in repr(client)
    with pytest.raises(ConfigurationError, match="proxy") as caught:
        pickle.dumps(client)
    assert "hunter2" not in str(caught.value)


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


def test_unretrieved_task_exception_has_no_secret(scripted, caplog):
    """asyncio's debug mode logs the tasks whose errors nobody took."""
    server = scripted(answer(403))

    async def main() -> None:
        async with AsyncClient(server.url, SECRET, server.vendor) as client:
            task = asyncio.create_task(client.users.get(42))
            await asyncio.wait([task])
            del task
            gc.collect()

    asyncio.run(main(), debug=True)
    assert "never retrieved" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("around", [b"", b"\xff\x00", b"caf\xe9 \xc3\xa9 "])
def test_error_redacts_a_secret_that_the_service_echoes(face, scripted, around):
    """Debug pages show a request's headers; an error may be pickled, logged or sent elsewhere."""

    def echo(request):
        return answer(400, around + request.headers["authorization"].encode() + around)

    server = scripted(echo)
    server.url += f"/{SECRET}"
    error = face.failure(server, BackreadError)
    assert error.url is not None
    assert error.url.endswith(f"/{'*' * len(SECRET)}/external/users/42")
    assert error.body == around + b"Bearer " + b"*" * len(SECRET) + around
    assert SECRET not in str(error)
    assert SECRET.encode() not in pickle.dumps(error)
