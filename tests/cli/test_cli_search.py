"""``backread search`` as a shell sees it."""

import json
import os
import subprocess

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")

from datetime import UTC, datetime

from backread import Mirror
from helpers.command_line import COMMAND, SECONDS
from helpers.mirrors import BatchSource, batch

HOSTILE = "late \x1b]0;owned\x07 \x9b31m \u202einvoice\r\nnext line \u2028 end"

ZOE = {"id": 2, "name": "Zoë \x1b[link=x]", "email": "zoe@example.com"}


@pytest.fixture
def folder(tmp_path):
    messages = [
        {
            "user_id": 1,
            "id": number,
            "body": body,
            "created_at": datetime(2024, 3, number, tzinfo=UTC),
            "sender_type": "user",
            "sender_name": "Eve\x1b[2J",
        }
        for number, body in enumerate(("An Invoice", "100%", HOSTILE), start=1)
    ]
    mirror = Mirror(tmp_path / "chats")
    BatchSource(batch([{"id": 1}, ZOE], messages, swept="snapshot")).sync_into(mirror.folder)
    return mirror.folder


def test_a_hit_is_a_row_that_no_terminal_obeys(backread, folder):
    done = backread("search", folder, "INVOICE", "--format", "table")
    assert (done.code, done.error) == (0, "")
    heading, newest, oldest = done.out.splitlines()
    assert heading.split() == ["created_at", "(UTC)", "user_id", "id", "sender", "text"]
    assert oldest.split() == ["2024-03-01", "00:00", "1", "1", "Eve\ufffd[2J", "An", "Invoice"]
    assert newest.endswith("late \ufffd]0;owned\ufffd \ufffd31m \ufffdinvoice next line end")
    assert not {*done.out} & {*"\x1b\x07\x9b\u202e\u2028\r"}


def test_words_options_and_json(backread, folder):
    assert len(backread("search", folder, "next", "late").out.splitlines()) == 1
    assert len(backread("search", folder, '"next late"').out.splitlines()) == 0
    assert json.loads(backread("search", folder, "0%").out)["id"] == 2
    done = backread("search", folder, "invoice", "--limit", 1, "--json")
    [document] = json.loads(done.out)
    assert document["body"] == HOSTILE
    assert document["created_at"] == "2024-03-03T00:00:00.000000Z"
    assert document["snippet"][slice(*document["matches"][0])] == "invoice"
    assert not {*done.out} & {*"\x1b\x07\x9b\u202e\u2028\r"}
    assert "newest 1; --limit shows more" in done.error
    earlier = backread("search", folder, "invoice", "--until", "2024-03-02", "--user", 1)
    assert len(earlier.out.splitlines()) == 1
    none = backread("search", folder, "xyzzy")
    assert (none.code, none.out) == (0, "")
    assert "no message has all of these words" in none.error


def test_people_are_found_by_name_address_and_id(backread, folder):
    for words in ("zoë", "ZOE@", "2"):
        [line] = backread("search", folder, "--people", words).out.splitlines()
        assert json.loads(line)["user_id"] == 2
    table = backread("search", folder, "--people", "zoe", "--format", "table").out
    assert "Zoë \ufffd[link=x]" in table
    assert "no one has all of these words" in backread("search", folder, "--people", "nix").error
    assert backread("search", folder, "--people", "zoe", "--user", 1).code == 2


def test_what_cannot_be_searched_is_one_line(backread, folder, tmp_path):
    assert "WORDS must have at least one word" in backread("search", folder, " ").line
    two = ("--since", "2024-02-01", "--until", "2024-01-01")
    assert "--since must be earlier than until" in backread("search", folder, "a", *two).line
    assert backread("search", tmp_path / "none", "a").code == 7


def test_json_in_a_file_is_utf_8_whatever_the_locale(folder):
    done = subprocess.run(
        [*COMMAND, "search", str(folder), "--people", "zoë"],
        env=os.environ | {"PYTHONIOENCODING": "iso-8859-1"},
        capture_output=True,
        timeout=SECONDS,
    )
    assert json.loads(done.stdout.decode())["email"] == "zoe@example.com"
