"""A terminal shows what the command writes, on stdout and stderr, and obeys none of it."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from backread import Mirror, MirrorError
from backread.testing import MockServer, World
from helpers.command_line import posix_only, settings_of
from helpers.pseudo_terminal import each_on_terminal
from helpers.scripted_server import answer

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


def seen(
    server: object, folder: Path, *commands: Sequence[object], expected: int = 0, **more: str
) -> list[str]:
    """What a terminal gets of each command, stdout and stderr; it may hold line ends alone."""
    # A terminal of these has no cursor to move: what moves it is none of ours.
    environment = {**settings_of(server), "COLUMNS": "300", "TERM": "dumb", **more}
    controls = "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
    shown = each_on_terminal(commands, cwd=folder, **environment)
    for command, each in zip(commands, shown, strict=True):
        assert each.code == expected, (command, each.text)
        assert not re.findall(controls, each.text), command
    return [each.text for each in shown]


def test_rows_of_the_service(server, tmp_path):
    user_id = server.world.user_ids()[0]
    lists = (["users"], ["messages", user_id], ["messages", "--all"])
    shapes = ("json", "table", "csv")
    commands = [[*each, "--format", shape] for each in lists for shape in shapes]
    commands += [["user", user_id], ["message", user_id, server.world.message_ids(user_id)[0]]]
    for text in seen(server, tmp_path, *commands):
        assert "red" in text


def test_commands_over_a_mirror(server, tmp_path):
    first, *_ = users = server.world.user_ids()
    with server.client() as client:
        Mirror(tmp_path / NAME).sync(client)
    commands = {
        ("sync", NAME): "users",
        ("runs", NAME): "snapshot",
        **{("show", NAME, each, "--no-pager"): f"user {each}" for each in users},
        ("show", NAME, first, "--format", "json"): "red",
        **{("sql", NAME, "FROM messages", "--format", each): "red" for each in ("table", "csv")},
        ("sql", NAME, "FROM messages", "--json"): "red",
        ("sql", NAME, "SELECT '\x1b[2J\u202e'"): "[2J",
        ("search", NAME, "title"): "title",
        ("search", NAME, "--people", "title"): "title",
        ("changes", NAME): "red",
        ("forget", NAME, first, "--dry-run"): "red",
        ("status", NAME): "list",
        ("tables", NAME): "messages",
        ("report", NAME): "Conversations of",
        ("doctor", NAME): "every list is proved",
        ("export", NAME, f"{NAME}.csv", "--conversations"): "conversations",
    }
    for text, said in zip(seen(server, tmp_path, *commands), commands.values(), strict=True):
        assert said in text
    none = f"{NAME} 2"
    refused = (["show", NAME, 999_999], ["runs", none], ["sync", f"file/{NAME}"], ["doctor", none])
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / NAME).touch()
    unknown, nothing, file, _ = seen(server, tmp_path, *refused, expected=7)
    assert "no user" in unknown
    assert "nothing is published" in nothing
    assert "is a file, but a mirror is a folder" in file
    wrong = (["demo", NAME], ["sql", NAME, "SELECT '\x1b[2J' FROM"], ["sql", NAME, "FROM \x9b2J"])
    assert "demo FOLDER" in seen(server, tmp_path, *wrong, expected=2)[0]
    # Errors of Python are shown on terminals, too.
    with pytest.raises(MirrorError, match="nothing is published") as caught:
        Mirror(tmp_path / none).sql("SELECT 1")
    assert re.search("[\x00-\x1f\x7f-\x9f\u202e]", str(caught.value)) is None


def test_sync_escapes_what_a_lock_says_of_its_holder(server, tmp_path):
    import fcntl

    folder = tmp_path / "chats"
    folder.mkdir()
    holder = f"process 42 on {HOSTILE[2] + NAME}, since 2026-03-01 02:00:00 UTC"
    with (folder / "sync.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(holder)
        file.flush()
        [said] = seen(server, tmp_path, ["sync", folder], expected=9)
    assert "is being synced by " in said


def test_a_profile_and_its_name(server, tmp_path):
    [said] = seen(server, tmp_path, ["probe", "--save", NAME])
    assert "users: order" in said
    profile = json.loads((tmp_path / NAME).read_text())
    profile["largest_page"] = 40
    profile["notes"] = {HOSTILE[0]: HOSTILE[1]}
    profile["users"]["order"]["field"] = HOSTILE[2]
    (tmp_path / NAME).write_text(json.dumps(profile))
    command = ["probe", "--against", NAME]
    for said in seen(server, tmp_path, command, [*command, "--json"], expected=8):
        assert "probe again" in said
    profile["refusals"] = {HOSTILE[0]: HOSTILE[1]}
    (tmp_path / NAME).write_text(json.dumps(profile))
    for said in seen(server, tmp_path, command, ["sync", "chats", "--profile", NAME], expected=2):
        assert "profile" in said


REFUSED = (
    [HOSTILE[0]],
    ["users", "--format", HOSTILE[0]],
    ["users", f"--{HOSTILE[0]}"],
    ["users", "--output", f"{NAME}/{NAME}"],
    ["users", "--output", f"s3://{HOSTILE[0]}"],
    ["users", "--secret-file", NAME],
    ["users", "--base-url", f"https://{HOSTILE[0]}"],
    ["users", "--vendor", HOSTILE[0]],
    ["mock", "--world", NAME],
    ["mock", "--fault", HOSTILE[0]],
    ["mock", HOSTILE[0]],
)


def test_refused_arguments(server, tmp_path):
    for said in seen(server, tmp_path, *REFUSED, expected=2, BACKREAD_TRACEBACK="1"):
        assert "\nbackread: " in said
        # A traceback keeps its form.
        assert '\n  File "' in said


def test_error_bodies_of_a_service(scripted, tmp_path):
    refused = answer(403, "\x1b[2J", {"x-request-id": "a\tb\x9b2J"})
    server = scripted(lambda request: refused)  # type: ignore[operator]
    assert "403" in seen(server, tmp_path, ["users"], ["doctor"], expected=4)[0]
    unreadable = answer(200, '{"users": [\x1b[2J\u202e\x9b')
    server = scripted(lambda request: unreadable)  # type: ignore[operator]
    [said] = seen(server, tmp_path, ["users", "--max-retries", 0], expected=6)
    assert "not JSON" in said


def test_a_list_that_cannot_be_read_is_said_once_in_one_line(tmp_path):
    world = World(seed=5, users=3, messages_per_user=2)
    command = ("messages", "--all", "--max-retries", 0, "--output")
    with MockServer(world) as server:
        server.on("messages", user=world.user_ids()[1]).fail("status(500)")
        both = ([*command, "rows.csv"], [*command, "rows.parquet"])
        for said in seen(server, tmp_path, *both, expected=6):
            [line] = said.splitlines()
            assert line.startswith("backread: 1 list of messages could not be read")
