"""A terminal shows what the command writes, on stdout and stderr, and obeys none of it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from backread.testing import MockServer, World
from helpers.command_line import posix_only, settings_of
from helpers.pseudo_terminal import on_terminal
from helpers.scripted_server import answer

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("duckdb")

pytestmark = posix_only

HOSTILE = (
    "red\x1b[2J\x1b[31m",
    "\x1b]0;title\x07",
    "\x1b]52;c;cm0gLXJmIC8=\x07",
    "\x1bP1$r\x1b\\",
    "\x1b[6n\x1b[c\x05",
    "\x9b2J\x9d52;c;eA==\x9c",
    "over\rwritten\x08\x08",
    "\x00\x0b\x0c\x0e\x7f\x84\x85",
    "\u202eright to left\u2066\u2069\u202c",
    "line\u2028paragraph\u2029",
    "[link=https://evil.example][bold]markup[/][/link] [/] :smile:",
)
NAME = "chats\x1b]52;c;eA==\x07\r\u202e\u009b2J"
"""A folder, as an archive of a stranger may bring one."""


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    """Users, attributes, messages and fields with the texts."""
    world = World(seed=5, users=len(HOSTILE), messages_per_user=2)
    for user_id, text in zip(world.user_ids(), HOSTILE, strict=True):
        attributes = [{"name": text, "value": text}]
        world.edit_user(user_id, name=text, reference=text, user_attributes=attributes)
        for message_id in world.message_ids(user_id):
            world.edit_message(user_id, message_id, body=text, file_url=text, sender_type=text)
    with MockServer(world) as running:
        yield running


def first_id(server: MockServer) -> int:
    return server.world.user_ids()[0]


def seen(server: object, folder: Path, *arguments: object, expected: int = 0, **more: str) -> str:
    """What a terminal gets of one command, stdout and stderr; it may hold line ends alone."""
    # A terminal of these has no cursor to move: what moves it is none of ours.
    environment = {**settings_of(server), "COLUMNS": "300", "TERM": "dumb", **more}
    shown = on_terminal(*arguments, cwd=folder, **environment)
    text = shown.text
    assert shown.code == expected, text
    assert not re.findall(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", text
    )
    return text


@pytest.mark.parametrize("shape", ["json", "table", "csv"])
def test_users_and_messages(server, tmp_path, shape):
    first = server.world.user_ids()[0]
    for arguments in (["users"], ["messages", first], ["messages", "--all"]):
        assert "red" in seen(server, tmp_path, *arguments, "--format", shape)


def test_a_user_and_a_message(server, tmp_path):
    first = server.world.user_ids()[0]
    assert "red" in seen(server, tmp_path, "user", first)
    message = server.world.message_ids(first)[0]
    assert "red" in seen(server, tmp_path, "message", first, message)


def test_sync_escapes_the_name_of_its_folder(server, tmp_path):
    assert "users" in seen(server, tmp_path, "sync", NAME)
    assert "snapshot" in seen(server, tmp_path, "runs", NAME)
    # A file is in its way, nothing is published, a demo's marker is not there.
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / NAME).touch()
    said = seen(server, tmp_path, "sync", f"file/{NAME}", expected=7)
    assert "is a file, but a mirror is a folder" in said
    assert "nothing is published" in seen(server, tmp_path, "runs", f"{NAME} 2", expected=7)
    assert "demo FOLDER" in seen(server, tmp_path, "demo", NAME, expected=2)


def test_commands_over_a_mirror_escape_hostile_texts(server, tmp_path):
    seen(server, tmp_path, "sync", NAME)
    for user_id in server.world.user_ids():
        assert f"user {user_id}" in seen(server, tmp_path, "show", NAME, user_id, "--no-pager")
    seen(server, tmp_path, "show", NAME, user_id, "--format", "json")
    for shape in ("table", "csv", "json"):
        assert "red" in seen(server, tmp_path, "sql", NAME, "FROM messages", "--format", shape)
    for arguments in (["search", NAME, "title"], ["search", NAME, "--people", "title"]):
        assert "title" in seen(server, tmp_path, *arguments)
    assert "red" in seen(server, tmp_path, "changes", NAME)
    assert "red" in seen(server, tmp_path, "forget", NAME, first_id(server), "--dry-run")
    seen(server, tmp_path, "status", NAME)
    assert "messages" in seen(server, tmp_path, "tables", NAME)
    for query in ("SELECT '\x1b[2J' FROM", "SELECT '\x1b[2J\u202e'", "FROM \x9b2J"):
        code = 0 if query.endswith("'") else 2
        seen(server, tmp_path, "sql", NAME, query, expected=code)
    said = seen(server, tmp_path, "show", NAME, 999_999, expected=7)
    assert "no user" in said


@pytest.mark.long
def test_demo_escapes_the_name_of_its_folder(server, tmp_path):
    assert "The mirror is in" in seen(server, tmp_path, "demo", NAME)


def test_sync_escapes_what_a_lock_says_of_its_holder(server, tmp_path):
    import fcntl

    folder = tmp_path / "chats"
    folder.mkdir()
    holder = f"process 42 on {HOSTILE[2] + NAME}, since 2026-03-01 02:00:00 UTC"
    with (folder / "sync.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(holder)
        file.flush()
        said = seen(server, tmp_path, "sync", folder, expected=9)
    assert "is being synced by " in said


def test_a_profile_and_its_name(server, tmp_path):
    assert "users: order" in seen(server, tmp_path, "probe", "--save", NAME)
    profile = json.loads((tmp_path / NAME).read_text())
    profile["largest_page"] = 40
    profile["notes"] = {HOSTILE[0]: HOSTILE[1]}
    profile["users"]["order"]["field"] = HOSTILE[2]
    (tmp_path / NAME).write_text(json.dumps(profile))
    for shape in ("table", "json"):
        said = seen(server, tmp_path, "probe", "--against", NAME, "--format", shape, expected=8)
        assert "probe again" in said
    profile["refusals"] = {HOSTILE[0]: HOSTILE[1]}
    (tmp_path / NAME).write_text(json.dumps(profile))
    for command in (["probe", "--against"], ["sync", "chats", "--profile"]):
        said = seen(server, tmp_path, *command, NAME, expected=2)
        assert "profile" in said


@pytest.mark.parametrize(
    "arguments",
    [
        [HOSTILE[0]],
        ["user", HOSTILE[0]],
        ["users", "--format", HOSTILE[0]],
        ["users", f"--{HOSTILE[0]}"],
        ["users", "--output", f"{NAME}/{NAME}"],
        ["users", "--output", f"s3://{HOSTILE[0]}"],
        ["users", "--secret-file", NAME],
        ["users", "--ca-bundle", NAME],
        ["users", "--base-url", f"https://{HOSTILE[0]}"],
        ["users", "--vendor", HOSTILE[0]],
        ["users", "--proxy", HOSTILE[0]],
        ["mock", "--messages", HOSTILE[0]],
        ["mock", "--world", NAME],
        ["mock", "--dialect", HOSTILE[0]],
        ["mock", "--fault", HOSTILE[0]],
        ["mock", "--rate", HOSTILE[0]],
        ["mock", "--port-file", f"{NAME}/{NAME}"],
        ["mock", HOSTILE[0]],
    ],
    ids=repr,
)
def test_refused_arguments_are_escaped(server, tmp_path, arguments):
    said = seen(server, tmp_path, *arguments, expected=2, BACKREAD_TRACEBACK="1")
    assert "\nbackread: " in said
    # A traceback keeps its form.
    assert '\n  File "' in said


def test_error_bodies_of_a_service_are_escaped(scripted, tmp_path):
    refused = answer(403, "\x1b[2J", {"x-request-id": "a\tb\x9b2J"})
    server = scripted(lambda request: refused)  # type: ignore[operator]
    assert "403" in seen(server, tmp_path, "users", expected=4)
    unreadable = answer(200, '{"users": [\x1b[2J\u202e\x9b')
    server = scripted(lambda request: unreadable)  # type: ignore[operator]
    assert "not JSON" in seen(server, tmp_path, "users", "--max-retries", 0, expected=6)


@pytest.mark.parametrize("shape", ["csv", "parquet"])
def test_a_list_that_cannot_be_read_is_said_once_in_one_line(tmp_path, shape):
    world = World(seed=5, users=3, messages_per_user=2)
    with MockServer(world) as server:
        server.on("messages", user=world.user_ids()[1]).fail("status(500)")
        command = ("messages", "--all", "--output", f"rows.{shape}", "--max-retries", 0)
        said = seen(server, tmp_path, *command, expected=6)
    [line] = said.splitlines()
    assert line.startswith("backread: 1 list of messages could not be read")


def test_errors_of_python_steer_no_terminal(tmp_path):
    from backread import Mirror, MirrorError

    with pytest.raises(MirrorError) as caught:
        Mirror(tmp_path / NAME).sql("SELECT 1")
    assert re.search("[\x00-\x1f\x7f-\x9f\u202e]", str(caught.value)) is None
    assert "nothing is published" in str(caught.value)
