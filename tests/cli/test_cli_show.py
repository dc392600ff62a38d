"""``show``, ``search`` and ``report``: conversations of the mirror, and their figures."""

import json
import re
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from rich.cells import cell_len

from backread import Mirror
from backread._report.page import is_report
from backread.testing import MockServer, World
from helpers.command_line import posix_only
from helpers.mirrors import BatchSource, batch, sync
from helpers.pseudo_terminal import on_terminal

HOSTILE = "late \x1b]0;owned\x07 \x9b31m \u202einvoice\r\nnext line \u2028 end"

LONG = "word " * 60
ZOE = {"id": 2, "name": "Zoë \x1b[link=x]", "email": "zoe@example.com"}


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
    users = [{"id": 1, "name": "Eve\x1b[2J", "email": "eve@example.com"}, ZOE]
    mirror = Mirror(tmp_path / "chats")
    BatchSource(batch(users, messages, swept="snapshot")).sync_into(mirror.folder)
    return mirror.folder


def test_a_user_whom_the_service_has_deleted_is_said_to_be_so(backread, folder):
    BatchSource(batch([ZOE], swept="snapshot")).sync_into(folder, "full")
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
def test_a_terminal_gets_wrapped_lines_and_a_pager_for_what_does_not_fit(
    folder, tmp_path, monkeypatch
):
    def seen(*options: str, **environment: str) -> str:
        settings = {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "40", "LINES": "10"}
        shown = on_terminal("show", folder, 1, *options, typed="", **(settings | environment))
        assert shown.code == 0
        # On a slow machine, progress was there before.
        return re.sub(r"\rreading the conversation[^\n]*\r", "", shown.text)

    lines = seen(PAGER="cat").splitlines()
    body = lines.index("09:02 Anna Berg, operator (not read by the user)") + 1
    assert lines[body].startswith("       word word")
    assert all(len(line) <= 40 for line in lines if line.startswith("       word"))
    assert sum(line.count("word") for line in lines) == 60
    assert not {*"".join(lines)} & {*"\x1b\x07\x9b\u202e\u2028\r"}
    paged = seen(PAGER="sed s/^/+/")
    assert paged.startswith("+Eve")
    assert paged.endswith("+       no time\n")
    assert seen("--no-pager", PAGER="sed s/^/+/").startswith("Eve")
    # One that ends early is no error.
    seen(PAGER="true")
    # So less shows colours, and ends at once if all fits.
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\ncat > /dev/null\necho "with $LESS"\n')
    pager.chmod(0o755)
    assert seen(PAGER=str(pager), LESS="iM").endswith("with iM\n")
    monkeypatch.delenv("LESS", raising=False)
    assert seen(PAGER=str(pager)).endswith("with FRX\n")


# --- search ---------------------------------------------------------------------------------------


def test_a_hit_is_a_row_that_no_terminal_obeys(backread, folder):
    done = backread("search", folder, "IN", "--format", "table", "--until", "2024-03-02T10:00")
    assert (done.code, done.error) == (0, "")
    heading, newest, oldest = done.out.splitlines()
    assert heading.split() == ["created_at", "(UTC)", "user_id", "id", "sender", "text"]
    assert oldest.split()[:5] == ["2024-03-01", "09:01", "1", "1", "Eve\ufffd[2J"]
    assert newest.endswith("late \ufffd]0;owned\ufffd \ufffd31m \ufffdinvoice next line end")
    assert not {*done.out} & {*"\x1b\x07\x9b\u202e\u2028\r"}


def test_options_and_json_of_a_search(backread, folder):
    done = backread("search", folder, "in", "--limit", 1, "--user", 1, "--json")
    [document] = json.loads(done.out)
    assert document["body"] == HOSTILE
    assert document["created_at"] == "2024-03-02T09:03:00.000000Z"
    assert document["snippet"][slice(*document["matches"][0])] == "in"
    assert "newest 1; --limit shows more" in done.error
    none = backread("search", folder, "xyzzy")
    assert (none.code, none.out) == (0, "")
    assert "no message has all of these words" in none.error


def test_people_are_found_by_name_address_and_id(backread, folder):
    for words, found in (("zoë", [2]), ("ZOE@", [2]), ("1", [1])):
        lines = backread("search", folder, "--people", words).out.splitlines()
        assert [json.loads(line)["user_id"] for line in lines] == found
    table = backread("search", folder, "--people", "zoe", "--format", "table").out
    assert "Zoë \ufffd[link=x]" in table
    assert "no one has all of these words" in backread("search", folder, "--people", "nix").error


def test_what_cannot_be_searched_is_one_line(backread, folder):
    for arguments, said in (
        ([" "], "WORDS must have at least one word"),
        (["a", "--since", "2024-02-01", "--until", "2024-01-01"], "--since must be earlier than"),
        (["--people", "zoe", "--user", "1"], "--people and --user do not agree"),
    ):
        done = backread("search", folder, *arguments)
        assert (done.code, said in done.line) == (2, True)


# --- report ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mirror = Mirror(tmp_path_factory.mktemp("report") / "chats")
    with MockServer(World(seed=3, users=120, messages_per_user=(0, 40))) as server:
        sync(mirror, server)
    return mirror.folder


def test_without_a_file_the_main_figures_fit_a_narrow_terminal(backread, chats):
    done = backread(
        "report", chats, "--timezone", "europe/berlin", "--opening-hours", "mon-fri 9-17"
    )
    assert (done.code, done.error) == (0, "")
    assert done.out.startswith("Conversations of chats, times in Europe/Berlin\n")
    figures = Mirror(chats).figures()
    assert f"{figures['totals']['messages']:,}" in done.out
    assert str(figures["operators"][0]["name"]) in done.out
    hours = Mirror(chats).figures(timezone="Europe/Berlin", opening_hours="mon-fri 9-17")
    outside = hours["responses"]["answered_outside_hours"]
    assert f" {outside}  answered outside opening hours\n" in done.out
    assert max(map(cell_len, done.out.splitlines())) <= 80
    assert "times in UTC\n" in backread("report", chats).out


def test_json_has_all_figures(backread, chats, tmp_path):
    command = ("report", chats, "--format", "json", "--since", "2019-03-01")
    assert backread(*command, "-o", tmp_path / "r.json").code == 0
    document = json.loads(backread(*command).out)
    assert json.loads((tmp_path / "r.json").read_bytes()).keys() == document.keys()
    assert document["since"] == "2019-03-01T00:00:00+00:00"
    expected = Mirror(chats).figures(since="2019-03-01")
    volatile = ("computed_at", "coverage")
    assert document | dict.fromkeys(volatile) == {**expected, **dict.fromkeys(volatile)}


@posix_only
def test_a_report_is_private_opened_and_replaces_nothing_but_a_report(
    backread, chats, tmp_path, monkeypatch
):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or False)
    tmp_path.chmod(0o700)
    path = tmp_path / "report.html"
    done = backread("report", chats, "-o", path, "--open")
    assert (done.code, opened) == (0, [path.as_uri()])
    assert "open " in done.error
    assert str(path) in done.out
    assert is_report(path.read_bytes())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("<p>years of work", encoding="utf-8")
    done = backread("report", chats, "-o", path)
    assert (done.code, done.out) == (2, "")
    assert "is no report of backread, so it is not replaced" in done.line
    path.write_bytes(b"")
    assert backread("report", chats, "-o", path).code == 0


def test_a_report_that_cannot_be_made_is_one_line(backread, chats, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments, words in (
        (("--timezone", "Berlin"), "--timezone: 'Berlin' is unknown; did you mean Europe/Berlin?"),
        (("--opening-hours", "nine to five"), "--opening-hours: 'nine' in 'nine to five'"),
        (("--since", "soon"), "--since must be a date or time"),
        (("--open",), "add -o report.html"),
        (("-o", "r.json", "--format", "json", "--open"), "--open needs a report"),
        (("-o", tmp_path), f"{tmp_path} "),
        (("-o", "none/report.html"), "does not exist; create it"),
    ):
        done = backread("report", chats, *arguments)
        assert (done.code, done.out) == (2, "")
        assert words in done.line
    assert list(tmp_path.iterdir()) == []
