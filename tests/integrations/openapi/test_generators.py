"""Clients that two generators make from the OpenAPI document of a running mock read the mock."""

import importlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from backread.testing import Lane, MockServer, World

SECONDS = 240
"""What any one wait may take, on a machine that has much else to do."""


def run(*command: str | Path, cwd: Path) -> str:
    """Runs a program to its end; gives what it printed, and fails the test if it failed."""
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, cwd=cwd, **both, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def service() -> Iterator[MockServer]:
    """A service with a vendor word other than the document's own."""
    with MockServer(World(seed=7, users=30, messages_per_user=(0, 60)), vendor="acme") as server:
        yield server


@pytest.fixture(scope="session")
def document(service: MockServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The document as the running mock serves it."""
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    with urllib.request.urlopen(f"{service.url}/openapi.json", timeout=SECONDS) as answer:
        path.write_text(json.dumps(json.load(answer)), encoding="utf-8")
    return path


PLAIN_FIELDS = [
    "id",
    "body",
    "read_by_user",
    "read_by_operator",
    "file_url",
    "auto_invitation",
    "sender_type",
]
SENDER_FIELDS = {
    "user": {"id", "name", "email"},
    "operator": {"id", "forename", "surname", "email", "picture_thumb_url"},
}
UNKNOWN_USER = 41


@pytest.fixture
def lane(service: MockServer) -> Iterator[Lane]:
    """A lane whose senders are of all kinds, known and unknown, with fields nobody knows."""
    with service.lane(dialect="sender_type=others extra_fields=some") as opened:
        yield opened


def check_message(message: Any, sent: Any) -> None:
    """A message of a generated client has what the mock sent, its sender included."""
    assert {name: getattr(message, name) for name in PLAIN_FIELDS} == {
        name: sent[name] for name in PLAIN_FIELDS
    }
    assert message.created_at == datetime.fromisoformat(sent["created_at"])
    # openapi-generator wraps what may be one of several types.
    sender = getattr(message.sender, "actual_instance", message.sender)
    fields = sender if isinstance(sender, dict) else sender.to_dict()
    if (documented := SENDER_FIELDS.get(sent["sender_type"])) is None:
        assert fields == sent["sender"]
    else:
        assert type(sender).__name__ == f"{sent['sender_type'].title()}Sender"
        assert {name: fields[name] for name in documented} == {
            name: sent["sender"][name] for name in documented
        }


def check_senders(messages: list[Any]) -> None:
    """What was compared had every kind of sender, and both forms of what may be null."""
    senders = {message["sender_type"] for message in messages}
    assert senders > {"user", "operator"}
    assert {message["file_url"] is None for message in messages} == {True, False}
    pictures = {
        message["sender"]["picture_thumb_url"] is None
        for message in messages
        if message["sender_type"] == "operator"
    }
    assert pictures == {True, False}


def compare(
    lane: Lane, list_users: Any, get_user: Any, list_messages: Any, get_message: Any
) -> None:
    """What the calls of a generated client give is what the mock sent."""
    compared: list[Any] = []
    users = list_users(limit=99)
    assert users.total == len(users.users) == lane.world.total_users
    assert list_users(offset=7, limit=3).users == users.users[7:10]
    with lane.client() as client:
        for user, sent_user in zip(users.users, client.users.list(as_dict=True), strict=True):
            assert (user.id, user.name) == (sent_user["id"], sent_user["name"])
            assert user.user_attributes == get_user(user.id).user_attributes
            messages = list_messages(user.id, limit=99).messages
            sent = list(client.messages.list(user.id, as_dict=True))
            for message, raw in zip(messages, sent, strict=True):
                check_message(message, raw)
            compared += sent
            if messages:
                assert get_message(user.id, messages[-1].id) == messages[-1]
    check_senders(compared)


def test_a_client_of_openapi_generator_reads_every_message(lane, document, tmp_path, monkeypatch):
    tool = Path(sys.executable).with_name("openapi-generator-cli")
    package = ["--package-name", "by_openapi_generator"]
    run(tool, "generate", "-i", document, "-g", "python", "-o", tmp_path, *package, cwd=tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    generated: Any = importlib.import_module("by_openapi_generator")
    settings = generated.Configuration(host=lane.url, access_token=lane.secret)
    with generated.ApiClient(settings) as connection:
        calls = generated.DefaultApi(connection)
        compare(lane, calls.list_users, calls.get_user, calls.list_messages, calls.get_message)
        with pytest.raises(generated.exceptions.NotFoundException) as refused:
            calls.get_user(UNKNOWN_USER)
    assert refused.value.data.error.code == "unknown_user"


def test_a_client_of_openapi_python_client_reads_every_message(
    lane, document, tmp_path, monkeypatch
):
    tool = Path(sys.executable).with_name("openapi-python-client")
    name = "by_openapi_python_client"
    config = tmp_path / "config.yaml"
    config.write_text("post_hooks: []", encoding="utf-8")
    options = ["--meta", "none", "--fail-on-warning", "--config", config]
    folder = ["--output-path", tmp_path / name]
    run(tool, "generate", "--path", document, *options, *folder, cwd=tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    generated: Any = importlib.import_module(name)
    # It sends no Accept unless it is told to.
    accept = {"Accept": f"application/vnd.{lane.vendor}.v1+json"}
    connection = generated.AuthenticatedClient(lane.url, token=lane.secret, headers=accept)

    def call(name: str) -> Any:
        operation = importlib.import_module(f"{generated.__name__}.api.default.{name}")
        return lambda *given, **named: operation.sync(*given, client=connection, **named)

    with connection:
        compare(lane, *map(call, ("list_users", "get_user", "list_messages", "get_message")))
        assert call("get_user")(UNKNOWN_USER).error.code == "unknown_user"
