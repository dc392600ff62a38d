"""``backread show``: a conversation of the mirror in the terminal."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")

from backread import Mirror
from helpers.command_line import posix_only
from helpers.mirrors import BatchSource, batch
from helpers.pseudo_terminal import Shown, on_terminal

HOSTILE = "late \x1b]0;owned\x07 \x9b31m \u202einvoice\r\nnext line \u2028 end"
LONG = "word " * 60


def message(number, body, **more):
    values = {
        "user_id": 1,
        "id": number,
        "body": body,
        "created_at": datetime(2024, 3, 1 + number // 3, 9, number, tzinfo=UTC),
        "sender_type": "user",
        "sender_id": 1,
        "sender_name": "Eve\x1b[2J",
    }
    return values | more


@pytest.fixture
def folder(tmp_path):
    operator = {"sender_type": "operator", "sender_id": 9, "sender_name": None}
    operator |= {"sender_forename": "Anna", "sender_surname": "Berg"}
    messages = [
        message(1, "Is it in stock?", read_by_operator=False),
        message(2, LONG, **operator, read_by_user=False),
        message(3, HOSTILE, file_url="https://files.example.com/a.png"),
        message(4, None),
        message(5, "Welcome", **operator, auto_invitation=True),
        message(6, "no time", created_at=None, sender_type="bot", sender_name=None),
    ]
    users = [{"id": 1, "name": "Eve\x1b[2J", "email": "eve@example.com"}, {"id": 2}]
    mirror = Mirror(tmp_path / "chats")
    BatchSource(batch(users, messages, swept="snapshot")).sync_into(mirror.folder)
    return mirror.folder


def seen(folder: Path, *options: str, **environment: Any) -> Shown:
    """What is left on the terminal: on a slow machine, progress was there before."""
    shown = on_terminal("show", folder, 1, *options, typed="", **environment)
    return Shown(shown.code, re.sub(r"\rreading the conversation[^\n]*\r", "", shown.text))


def test_a_user_whom_the_service_has_deleted_is_said_to_be_so(backread, folder):
    BatchSource(batch([{"id": 2}], swept="snapshot")).sync_into(folder, "full")
    done = backread("show", folder, 1, "--format", "table")
    assert done.code == 0
    assert done.out.splitlines() == [
        "Eve␛[2J, user 1, eve@example.com",
        "0 messages; times are UTC",
        "The service no longer has this user.",
        "6 deleted messages are not shown.",
    ]
    assert "no longer" not in backread("show", folder, 2, "--format", "table").out


def test_a_conversation_has_days_times_names_files_and_what_is_not_read(backread, folder):
    done = backread("show", folder, 1, "--format", "table")
    assert (done.code, done.error) == (0, "")
    assert done.out.splitlines() == [
        "Eve␛[2J, user 1, eve@example.com",
        "6 messages; times are UTC",
        "",
        "Friday, 2024-03-01",
        "09:01 Eve␛[2J (not read by an operator)",
        "       Is it in stock?",
        "09:02 Anna Berg, operator (not read by the user)",
        # Not wrapped in a pipe.
        "       " + LONG.rstrip(),
        "",
        "Saturday, 2024-03-02",
        "09:03 Eve␛[2J",
        "       late ␛]0;owned␇ \ufffd31m invoice",
        "       next line",
        "        end",
        "       file: https://files.example.com/a.png",
        "09:04 Eve␛[2J",
        "       no text",
        "09:05 Anna Berg, automatic invitation",
        "       Welcome",
        "--:-- bot",
        "       no time",
    ]


def test_a_pipe_gets_a_line_of_json_for_each_message(backread, folder):
    documents = [json.loads(line) for line in backread("show", folder, 1).out.splitlines()]
    assert [each["id"] for each in documents] == [1, 2, 3, 4, 5, 6]
    assert json.loads(backread("show", folder, 1, "--json").out) == documents
    assert documents[2]["body"] == HOSTILE
    assert documents[2]["created_at"] == "2024-03-02T09:03:00.000000Z"
    assert documents[1]["sender"]["forename"] == "Anna"
    assert next(iter(documents[0])) == "user_id"


def test_a_part_of_it(backread, folder):
    last = backread("show", folder, 1, "--last", 1, "--format", "table").out
    assert "5 earlier messages not shown" in last
    assert "no time" in last
    assert "stock" not in last
    around = backread("show", folder, 1, "--message", 3, "--format", "table").out
    assert "<- message 3" in around
    assert around.count("<- ") == 1
    both = backread("show", folder, 1, "--message", 3, "--last", 2)
    assert both.code == 2
    assert both.line.endswith("give either --last or --message")


def test_what_is_not_there_is_said(backread, folder, tmp_path):
    unknown = backread("show", folder, 7)
    assert unknown.code == 7
    assert "no user 7" in unknown.line
    assert "has no message 99" in backread("show", folder, 1, "--message", 99).line
    assert "nothing is published" in backread("show", tmp_path / "none", 1).line


@posix_only
def test_a_terminal_gets_wrapped_lines(folder):
    settings = {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "40", "PAGER": "cat"}
    lines = seen(folder, **settings).text.splitlines()
    body = lines.index("09:02 Anna Berg, operator (not read by the user)") + 1
    assert lines[body].startswith("       word word")
    assert all(len(line) <= 40 for line in lines if line.startswith("       word"))
    assert sum(line.count("word") for line in lines) == 60
    assert not {*"".join(lines)} & {*"\x1b\x07\x9b\u202e\u2028\r"}


@posix_only
def test_what_does_not_fit_goes_to_the_pager(folder):
    settings = {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "80", "LINES": "10"}
    paged = seen(folder, PAGER="sed s/^/+/", **settings)
    assert paged.text.startswith("+Eve")
    assert paged.text.endswith("+       no time\n")
    for more, arguments in (
        ({"PAGER": "sed s/^/+/"}, ["--no-pager"]),
        ({"PAGER": "sed s/^/+/", "TERM": "dumb"}, []),
    ):
        text = seen(folder, *arguments, **(settings | more)).text
        assert text.startswith("Eve")
        assert text.endswith("       no time\n")
    # One that ends early is no error.
    assert seen(folder, PAGER="true", **settings).code == 0


@posix_only
def test_less_shows_colours_and_ends_at_once_if_all_fits(folder, tmp_path, monkeypatch):
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\ncat > /dev/null\necho "with $LESS"\n')
    pager.chmod(0o755)
    settings = {"TERM": "xterm", "LINES": "10", "PAGER": str(pager)}
    monkeypatch.delenv("LESS", raising=False)
    assert seen(folder, **settings).text == "with FRX\n"
    assert seen(folder, LESS="iM", **settings).text == "with iM\n"
