"""``backread changes`` as a shell sees it."""

import json

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")

from datetime import UTC, datetime

from backread import Mirror
from helpers.command_line import posix_only
from helpers.mirrors import BatchSource, batch

HOSTILE = '=1+1 \x9b31m \u202e, "quoted"\nline'
ADA = {
    "id": 1,
    "name": HOSTILE,
    "created_at": datetime(2024, 3, 1, tzinfo=UTC),
    "user_attributes": [{"name": "plan", "value": "pro"}],
    "extra": '{"vip": true}',
}


@pytest.fixture
def folder(tmp_path):
    mirror = Mirror(tmp_path / "chats")
    fill(mirror, ADA)
    return mirror.folder


def fill(mirror, *users):
    messages = [{"user_id": each["id"], "id": 7, "body": "hello"} for each in users]
    BatchSource(batch(users, messages, swept="snapshot")).sync_into(mirror.folder)


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
    fill(Mirror(folder), ADA, {"id": 2})
    for since in (cursor, "1"):
        later = backread("changes", folder, "--since", since, "--table", "users")
        [row] = map(json.loads, later.out.splitlines())
        assert (row["change"], row["id"]) == ("added", 2)
        assert "body" not in row


def test_json_is_one_document_and_a_table_has_the_same_rows(backread, folder):
    rows = [json.loads(line) for line in backread("changes", folder).out.splitlines()]
    document = json.loads(backread("changes", folder, "--json").out)
    assert sorted(document, key=str) == sorted(rows, key=str) != []
    table = backread("changes", folder, "--format", "table").out.splitlines()
    assert table[0].split()[:3] == ["table", "change", "user_id"]
    assert len(table) == len(rows) + 1


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
    fill(Mirror(folder), ADA, {"id": 2})
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
    for since in ("rubbish", "99"):
        assert (
            "leave --since out to get every row"
            in backread("changes", folder, "--since", since).line
        )


@posix_only
def test_a_cursor_file_that_cannot_be_kept_is_refused_before_any_row(backread, folder, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    for file, why in [
        (shared / "cursor", "every user of this machine may write to"),
        (tmp_path / "none" / "cursor", "No such file or directory"),
    ]:
        done = backread("changes", folder, "--cursor-file", file)
        assert (done.code, done.out) == (2, "")
        assert f"--cursor-file {file} cannot be written: {why}" in done.line
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["secret-of-another-program", "0123456789abcdef", "name.key = secret", "s.s.secret"]
)
def test_another_file_in_place_of_a_cursor_file_is_neither_quoted_nor_to_be_removed(
    backread, folder, tmp_path, text
):
    file = tmp_path / "other.key"
    file.write_text(text)
    refused = backread("changes", folder, "--cursor-file", file)
    assert (refused.code, refused.out) == (2, "")
    assert f"{file} is not a cursor file of backread; name another" in refused.line
    assert text not in refused.line
    assert "remove" not in refused.line
    assert file.read_text() == text


def test_a_cursor_file_of_one_table_is_refused_with_another(backread, folder, tmp_path):
    file = tmp_path / "cursor"
    command = ("changes", folder, "--cursor-file", file)
    users = [*command, "--table", "users"]
    assert [json.loads(line)["table"] for line in backread(*users).out.splitlines()] == ["users"]
    before = file.read_bytes()
    for other in ([*command, "--table", "messages"], command):
        refused = backread(*other)
        assert (refused.code, refused.out) == (2, "")
        assert "use a separate file for each --table" in refused.line
        assert file.read_bytes() == before
    done = backread(*users)
    assert (done.code, done.out, done.error) == (0, "", "")
    # A cursor alone is for both tables.
    file.write_text(f"{Mirror(folder).changes().cursor}\n")
    for again in (command, users):
        done = backread(*again)
        assert (done.code, done.out, done.error) == (0, "", "")
    assert backread(*command).code == 2


@posix_only
def test_a_cursor_never_replaces_the_output(backread, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    for other in ("rows.jsonl", "link/rows.jsonl"):
        done = backread(
            "changes", folder, "--output", tmp_path / "rows.jsonl", "--cursor-file", other
        )
        assert done.code == 2
        assert "are the same file" in done.line
        assert not (tmp_path / "rows.jsonl").exists()


def test_what_cannot_be_used_is_one_line(backread, folder, tmp_path):
    assert backread("changes", folder, "--since", "77").code == 7
    assert "no finished run 77" in backread("changes", folder, "--since", "77").line
    assert "no finished run 9" in backread("changes", folder, "--since", "9" * 40).line
    assert "is damaged" in backread("changes", folder, "--since", "x").line
    assert backread("changes", tmp_path / "none").code == 7
    assert backread("changes", folder, "--output", tmp_path / "x.xlsx").code == 2
    assert "cannot be read" in backread("changes", folder, "--cursor-file", tmp_path).line
