"""``export``, ``changes`` and ``forget`` as a shell sees them."""

import csv
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from backread import Mirror
from helpers.command_line import posix_only
from helpers.export_rows import ALICE, BOB, GUARDED, TEXTS, fill
from helpers.mirrors import BatchSource, batch, rows
from helpers.pseudo_terminal import on_terminal
from helpers.shards import land


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("mirror") / "chats").folder


def test_export_says_what_it_wrote_and_what_it_guarded(backread, chats, tmp_path):
    out = tmp_path / "out"
    done = backread("export", chats, out, "--format", "csv")
    assert done.code == 0
    count, _, written = done.out.partition(": ")
    assert count == f"3 users, {len(TEXTS) + 2} messages, 3 conversations"
    assert written.endswith(f" of csv in 3 files, {out}\n")
    guards = len(GUARDED) + 2
    assert done.line.startswith(f"backread: {guards} cells begin with an apostrophe")
    assert "--raw-csv" in done.line
    raw = backread("export", chats, tmp_path / "raw", "--format", "csv", "--raw-csv", "--deleted")
    assert (raw.code, raw.error) == (0, "")
    assert raw.out.startswith("4 users, ")


def test_export_of_one_table_is_a_file_of_its_suffix(backread, chats, tmp_path):
    path = tmp_path / "c.jsonl"
    assert backread("export", chats, path, "--conversations").code == 0
    read = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert {row["user_id"]: row["messages"] for row in read}[ALICE] == len(TEXTS)
    path = tmp_path / "m.csv"
    arguments = ("--table", "messages", "--user", BOB, "--until", "2024-02-02", "--excel")
    assert backread("export", chats, path, *arguments).code == 0
    with path.open(encoding="utf-8-sig", newline="") as file:
        assert [row["body"] for row in csv.DictReader(file)] == ["hello"]


def test_xlsx_says_what_it_changed(backread, tmp_path):
    pytest.importorskip("xlsxwriter")
    said = [{"user_id": 1, "id": 1, "body": "x" * 40_000}, {"user_id": 1, "id": 2, "body": "\x1b"}]
    BatchSource(batch([{"id": 1}], said, swept="snapshot", lists={1: "snapshot"})).sync_into(
        tmp_path / "chats"
    )
    done = backread("export", tmp_path / "chats", tmp_path / "chats.xlsx")
    assert done.code == 0
    cut, replaced = done.error.splitlines()
    assert cut == "backread: 1 cell cut to the 32,767 characters that XLSX allows"
    assert replaced.startswith("backread: 1 cell with U+FFFD in place of control characters")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("out",), 2, "out does not end in a format: end the name in one of .parquet, "),
        (("out.csv",), 2, "holds one table"),
        (("out", "--format", "ods"), 2, "'ods'"),
        (("out", "--format", "csv", "--table", "users", "--conversations"), 2, "either"),
        (("out", "--format", "csv", "--since", "noon"), 2, "must be a date or time"),
        (("out", "--format", "csv", "--user", "99"), 7, "has no user 99"),
        (("out", "--everything"), 2, "exactly one user"),
    ],
)
def test_what_is_refused_leaves_nothing(
    backread, chats, tmp_path, monkeypatch, arguments, code, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").touch()
    done = backread("export", chats, *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.line
    assert [each.name for each in tmp_path.iterdir()] == ["here"]


def test_ctrl_c_during_an_export_says_that_nothing_was_written(
    backread, chats, tmp_path, monkeypatch
):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Mirror, "export", stop)
    done = backread("export", chats, tmp_path / "out", "--format", "csv")
    assert (done.code, done.line) == (130, "backread: stopped; nothing was written")


# --- changes --------------------------------------------------------------------------------------


HOSTILE = '=1+1 \x9b31m \u202e, "quoted"\nline'


ADA = {
    "id": 1,
    "name": HOSTILE,
    "created_at": datetime(2024, 3, 1, tzinfo=UTC),
    "user_attributes": [{"name": "plan", "value": "pro"}],
    "extra": '{"vip": true}',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    publish(tmp_path / "chats", ADA)
    return tmp_path / "chats"


def publish(folder: Path, *users: dict[str, Any]) -> None:
    messages = [{"user_id": each["id"], "id": 7, "body": "hello"} for each in users]
    BatchSource(batch(users, messages, swept="snapshot")).sync_into(folder)


def test_rows_are_json_lines_and_the_cursor_leads_on(backread, folder):
    done = backread("changes", folder)
    assert done.code == 0
    assert not {*done.out} & {*"\x9b\u202e"}
    user, message = sorted(map(json.loads, done.out.splitlines()), key=lambda row: row["id"])
    assert (user["table"], user["change"], user["name"]) == ("users", "added", HOSTILE)
    assert user["created_at"] == "2024-03-01T00:00:00.000000Z"
    assert user["user_attributes"] == [{"name": "plan", "value": "pro", "extra": None}]
    assert user["extra"] == {"vip": True}
    assert (message["user_id"], message["body"], message["name"]) == (1, "hello", None)
    assert done.error.startswith("2 changes; --since for the next: ")
    cursor = done.error.split()[-1]
    assert cursor == Mirror(folder).changes().cursor
    assert backread("changes", folder, "--since", cursor).out == ""
    publish(folder, ADA, {"id": 2})
    later = ("changes", folder, "--since", "1", "--table", "users")
    [row] = json.loads(backread(*later, "--json").out)
    assert (row["change"], row["id"]) == ("added", 2)
    assert "body" not in row
    heading, line = backread(*later, "--format", "table").out.splitlines()
    assert (heading.split()[:2], line.split()[:2]) == (["table", "change"], ["users", "added"])


def test_a_cursor_file_is_replaced_after_the_output(backread, folder, tmp_path):
    file = tmp_path / "cursor"
    command = ("changes", folder, "--cursor-file", file)
    missing = tmp_path / "no" / "such.csv"
    assert backread(*command, "--output", missing).code == 2
    assert not file.exists()
    first = backread(*command)
    assert (len(first.out.splitlines()), first.error) == (2, "")
    assert file.read_text().strip() == Mirror(folder).changes().cursor
    assert backread(*command).out == ""
    publish(folder, ADA, {"id": 2})
    before = file.read_bytes()
    assert backread(*command, "--output", missing).code == 2
    assert file.read_bytes() == before
    assert len(backread(*command).out.splitlines()) == 2
    assert "has a cursor already" in backread(*command, "--since", "1").line
    damaged = f"another{before.decode().strip()}"
    file.write_text(damaged)
    wrong = backread(*command)
    assert wrong.code == 7
    assert f"remove {file} to get every row" in wrong.line
    assert file.read_text() == damaged
    # Another file is not quoted, nor to be removed.
    file.write_text("s.s.secret")
    refused = backread(*command)
    assert (refused.code, refused.out) == (2, "")
    assert f"{file} is not a cursor file of backread; name another" in refused.line
    assert not re.search("secret|remove", refused.line)
    assert file.read_text() == "s.s.secret"


@posix_only
def test_changes_that_cannot_be_given_or_whose_cursor_cannot_be_kept_are_one_line(
    backread, folder, tmp_path
):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    output, users = tmp_path / "rows.jsonl", tmp_path / "users"
    assert backread("changes", folder, "--cursor-file", users, "--table", "users").code == 0
    for arguments, code, said in (
        (("--since", "9" * 40), 7, "no finished run 9"),
        (("--since", "x"), 7, "leave --since out to get every row"),
        (("--output", "x.xlsx"), 2, "does not write .xlsx files"),
        (("--cursor-file", tmp_path), 2, "cannot be read"),
        (("--cursor-file", tmp_path / "shared/c"), 2, "every user of this machine may write to"),
        (("--cursor-file", tmp_path / "none/c"), 2, "cannot be written: No such file"),
        (("--cursor-file", users), 2, "use a separate file for each --table"),
        (("--output", output, "--cursor-file", tmp_path / "link/rows.jsonl"), 2, "the same file"),
    ):
        done = backread("changes", folder, *arguments)
        assert (done.code, done.out, said in done.line) == (code, "", True), done.line
    assert not output.exists()
    assert list((tmp_path / "shared").iterdir()) == []


# --- forget ---------------------------------------------------------------------------------------


def test_forget_says_what_it_removed(backread, server, tmp_path):
    folder = tmp_path / "chats"
    first, second, *_ = users = server.world.user_ids()[:9]
    with server.client() as client:
        Mirror(folder).sync(client, users=users)
    land(tmp_path / "landed", server)
    count = len(server.world.message_ids(first))
    about = f"user {first}, {server.world.user(first)['name']}, "
    tried = backread("forget", folder, first, "--dry-run")
    assert (tried.code, tried.out.startswith(about)) == (0, True)
    assert backread("forget", folder, 999_999, "--dry-run").code == 7
    assert rows(Mirror(folder), "SELECT count(*) FROM users") == [(9,)]
    s = "" if count == 1 else "s"
    done = backread("forget", folder, first, "--landing", tmp_path / "landed")
    assert done.code == 0
    assert done.out.startswith(
        f"1 user forgotten; 1 user, {count:,} message{s} and 0 rejects removed; "
        f"{count:,} row{s} of 1 landing file removed; "
    )
    done = backread("forget", folder, first, second)
    assert done.out.startswith(f"1 user forgotten; forgotten before: {first}; 1 user, ")
    assert rows(Mirror(folder), "SELECT count(*) FROM users") == [(7,)]


def test_forget_says_which_of_the_users_messages_stay_in_lists_of_others(backread, tmp_path):
    messages = [
        {"user_id": user_id, "id": number, "sender_type": kind, "sender_id": 42}
        for number, (user_id, kind) in enumerate(
            [(42, "user"), (43, "user"), (43, "user"), (43, "operator"), (43, None)]
        )
    ]
    folder = tmp_path / "chats"
    BatchSource(batch([{"id": 42}, {"id": 43}], messages, swept="linked")).sync_into(folder)
    stay = "; 2 messages of theirs stay in other users' lists, see docs/how-to/forget.md\n"
    for _ in range(2):
        assert backread("forget", folder, 42).out.endswith(stay)
    assert "stay" not in backread("forget", folder, 42, 43).out


@posix_only
def test_a_terminal_is_asked_unless_it_said_yes(folder):
    for more, typed, code, said in (
        ((), "n\n", 2, "nothing was removed; answer y, or add --yes"),
        (("--yes",), "", 0, "1 user forgotten"),
    ):
        shown = on_terminal("forget", folder, 1, *more, typed=typed, TERM="dumb")
        assert (shown.code, said in shown.text) == (code, True), shown.text
        assert (
            ("Remove them for good? [y/N]" in shown.text)
            == ("user 1, " in shown.text)
            == (not more)
        )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("999999",), 7, "holds nothing of user 999999, so nothing was changed"),
        (("Anna",), 2, ""),
        (("1", "--landing", "."), 7, "is not a landing folder"),
    ],
)
def test_whom_forget_cannot_remove_is_one_line(
    backread, folder, tmp_path, monkeypatch, arguments, code, said
):
    monkeypatch.chdir(tmp_path)
    done = backread("forget", folder, *arguments)
    assert (done.code, said in done.line) == (code, True), done.line
    assert backread("forget", folder, 999_999, "--anyway").code == 0
