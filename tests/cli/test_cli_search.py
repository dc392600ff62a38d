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
    BatchSource(batch([{"id": 1}], messages, swept="snapshot")).sync_into(mirror.folder)
    return mirror.folder


def test_it_prints_a_line_for_each_hit_that_no_terminal_obeys(backread, folder):
    done = backread("search", folder, "INVOICE")
    assert (done.code, done.error) == (0, "")
    newest, oldest = done.out.splitlines()
    assert oldest == "2024-03-01 00:00  user 1, message 1  Eve␛[2J: An Invoice"
    assert newest.startswith("2024-03-03 00:00  user 1, message 3  Eve␛[2J: late ␛]0;owned␇")
    assert newest.endswith("invoice next line end")
    assert not {*done.out} & {*"\x1b\x07\x9b\u202e\u2028\r"}


def test_words_options_and_json(backread, folder):
    assert len(backread("search", folder, "next", "late").out.splitlines()) == 1
    assert len(backread("search", folder, '"next late"').out.splitlines()) == 0
    assert "message 2" in backread("search", folder, "0%").out
    done = backread("search", folder, "invoice", "--limit", 1, "--format", "json")
    document = json.loads(done.out)
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


def test_what_cannot_be_searched_is_one_line(backread, folder, tmp_path):
    assert backread("search", folder, " ").code == 2
    assert "at least one word" in backread("search", folder, " ").line
    assert "since must be a date" in backread("search", folder, "a", "--since", "soon").line
    assert backread("search", tmp_path / "none", "a").code == 7


def test_json_in_a_file_is_utf_8_whatever_the_locale(tmp_path):
    message = {"user_id": 1, "id": 1, "body": "счёт 你好 😀"}
    BatchSource(batch([{"id": 1}], [message], swept="snapshot")).sync_into(tmp_path)
    done = subprocess.run(
        [*COMMAND, "search", str(tmp_path), "счёт", "--format", "json"],
        env=os.environ | {"PYTHONIOENCODING": "iso-8859-1"},
        capture_output=True,
        timeout=SECONDS,
    )
    assert json.loads(done.stdout.decode())["body"] == message["body"]
