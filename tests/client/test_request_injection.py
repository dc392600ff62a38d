"""Nothing that a caller, the environment or a command line gives can add to a request."""

import enum
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from backread import ConfigurationError
from helpers.api_rows import envelope, user
from helpers.scripted_server import answer

URL, SECRET, VENDOR = "https://chat.example.com", "5ecretOfTheService", "acme"

BAD = {
    "CR LF": "\r\nX-Injected: 1",
    "LF": "\nX-Injected: 1",
    "CR": "\rX-Injected: 1",
    "line end": "\n",
    "NUL": "\0",
    "tab": "\t",
    "escape": "\x1b[31m",
    "DEL": "\x7f",
    "next line": "\x85",
    "line separator": "\u2028",
    "no-break space": "\xa0",
    "zero width": "\u200b",
    "letter": "é",
    "wide letter": "ＡＢ",
    "emoji": "🙂",
    "surrogate": "\ud800",
}


pytestmark = pytest.mark.usefixtures("no_settings")


def refused(face: Any, **arguments: Any) -> str:
    """A client is not made of them; the message is one line without the secret."""
    given = {"base_url": URL, "api_secret": SECRET, "vendor": VENDOR, **arguments}
    with pytest.raises(ConfigurationError) as caught:
        face.kind(**given)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert not [one for one in message if unicodedata.category(one) == "Cc"]
    assert SECRET not in message
    return message


@pytest.mark.parametrize("name", sorted(BAD.keys() - {"surrogate"}))
def test_a_ca_bundle_of_such_a_name_that_is_missing_is_one_line(face, name, tmp_path):
    """A file may be called so; it never gets into a request."""
    refused(face, ca_bundle=str(tmp_path / f"a{BAD[name]}b.pem"))


@pytest.mark.parametrize("option", ["--base-url", "--vendor", "--proxy", "--ca-bundle"])
@pytest.mark.parametrize("name", ["CR LF", "escape", "letter"])
def test_command_refuses_control_characters_in_arguments(backread, option, name):
    value = {"--base-url": URL, "--proxy": "http://proxy:1"}.get(option, VENDOR)
    done = backread("users", option, value + BAD[name] + "x")
    assert done.code == 2
    assert done.line.isprintable()
    assert option in done.line


class Number(enum.IntEnum):
    FORTY_TWO = 42


class Indexed:
    """What numpy's integers are to Python."""

    def __index__(self) -> int:
        return 42


class Spelled(int):
    """A number that writes itself as something else."""

    def __str__(self) -> str:
        return "42?limit=1 HTTP/1.1\r\nX-Injected: 1\r\n"

    __repr__ = __str__

    def __format__(self, shape: str) -> str:
        return str(self)


CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "users.get": lambda face, client, number: face.call(client.users.get, number),
    "messages.get of": lambda face, client, number: face.call(client.messages.get, number, 1),
    "messages.get": lambda face, client, number: face.call(client.messages.get, 1, number),
    "messages.page": lambda face, client, number: face.call(client.messages.page, number),
    "messages.list": lambda face, client, number: face.collect(client.messages.list(number)),
    "messages.all": lambda face, client, number: face.collect(client.messages.all(users=[number])),
    "offset": lambda face, client, number: face.call(client.users.page, number),
}
calls = pytest.mark.parametrize("call", CALLS)


def service(request: Any) -> bytes:
    if request.path.endswith("users"):
        return answer(200, envelope([user(1)]))
    if request.path.endswith("messages"):
        return answer(200, envelope([], key="messages"))
    return answer(200, {"id": 42})


@calls
@pytest.mark.parametrize("number", [Number.FORTY_TWO, Indexed(), Spelled(42)], ids=type)
def test_a_number_is_sent_as_its_digits(face, scripted, call, number):
    server = scripted(service)
    CALLS[call](face, face.client(server), number)
    assert server.requests
    for request in server.requests:
        assert "42" in request.target
        assert "X-Injected" not in request.target
        assert set(request.headers) <= {
            *("accept", "accept-encoding", "authorization", "host", "user-agent")
        }


@pytest.mark.parametrize("name", ["on_rate_limit", "timeout", "max_retries", "rate_limit"])
def test_with_options_takes_no_text_in_place_of_a_number(face, name):
    client = face.kind(URL, SECRET, VENDOR)
    with pytest.raises((TypeError, ValueError)) as caught:
        client.with_options(**{name: "5\r\nX-Injected: 1"})
    assert str(caught.value).isprintable()
    face.close(client)
