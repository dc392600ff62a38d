"""`Mirror.export`: formats read back by other tools, which rows they have, where it writes."""

import contextlib
import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet
import pytest

from backread import MirrorError
from backread.mirror import ExportProgress, ExportReport, Mirror
from helpers.command_line import COMMAND, posix_only
from helpers.export_rows import (
    ALICE,
    BOB,
    EXTRA,
    GONE,
    GUARDED,
    SECOND,
    SILENT,
    TEXTS,
    fill,
    keys,
)
from helpers.file_modes import files_below, largest_file, mode, umask
from helpers.mirrors import BatchSource, batch
from helpers.waiting import wait_for

TABLES = ("users", "messages", "conversations")
EVERY = (*TABLES, "lists", "files", "rejects", "runs")


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    return fill(tmp_path_factory.mktemp("it's [a] {folder}") / "chats")


def sqlite_rows(path: Path, query: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


# --- formats --------------------------------------------------------------------------------------


def test_parquet_has_the_rows_and_types_of_the_mirror(mirror, tmp_path):
    mirror.export(tmp_path / "m.parquet", tables=["messages"], codec="snappy")
    group = pyarrow.parquet.read_metadata(tmp_path / "m.parquet").row_group(0)
    assert group.column(0).compression == "SNAPPY"
    report = mirror.export(tmp_path / "out", format="parquet", tables=EVERY, deleted=True)
    assert {file.name for file in report.files} == {f"{name}.parquet" for name in EVERY}
    for name in EVERY:
        read = duckdb.read_parquet(str(tmp_path / "out" / f"{name}.parquet"))
        expected = mirror.sql(f"FROM {name}")
        assert (read.columns, read.types) == (expected.columns, expected.types)
        assert sorted(read.fetchall(), key=str) == sorted(expected.fetchall(), key=str)
        assert len(expected) == report.rows[name]


def test_parquet_has_the_same_schema_whatever_the_rows_are(mirror, tmp_path):
    def schemas(of: Mirror, folder: Path) -> dict[str, Any]:
        of.export(folder, format="parquet", tables=EVERY)
        return {name: pyarrow.parquet.read_schema(folder / f"{name}.parquet") for name in EVERY}

    empty = Mirror(tmp_path / "empty")
    BatchSource(batch(swept="snapshot")).sync_into(empty.folder)
    expected = schemas(mirror, tmp_path / "usual")
    assert schemas(empty, tmp_path / "none") == expected
    assert all(field.nullable for schema in expected.values() for field in schema)


def test_csv_has_each_text_and_no_formula(mirror, tmp_path):
    report = mirror.export(tmp_path / "out", format="csv")
    with (tmp_path / "out" / "messages.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows.sort(key=lambda row: (int(row["user_id"]), int(row["id"])))
    bodies = [row["body"] for row in rows]
    expected = [f"'{text}" if text in GUARDED else text for text in TEXTS]
    assert bodies == [*expected, "hello", ""]
    assert report.guarded_cells == len(GUARDED) + 1 + 1  # Alice's name, in two tables
    assert {row["created_at"] for row in rows} == {
        "2024-01-01T12:00:00.000000Z",
        "2024-02-01T00:00:00.123456Z",
        "",
    }
    assert {row["read_by_user"] for row in rows} == {"true", ""}
    # A null is an empty cell, an empty text a quoted one.
    assert ',"",' in (tmp_path / "out" / "messages.csv").read_text(encoding="utf-8")


def test_raw_csv_has_texts_as_they_are_and_excel_a_mark_and_times_that_it_reads(tmp_path):
    time = datetime(2026, 11, 30, 8, 15, 0, 123_456, UTC)
    user = {"id": 1, "name": "=Alice", "created_at": time}
    BatchSource(batch([user], swept="snapshot")).sync_into(tmp_path / "chats")
    path = tmp_path / "users.csv"
    options: Any = {"tables": ["users"], "raw_csv": True, "excel": True}
    assert Mirror(tmp_path / "chats").export(path, **options).guarded_cells == 0
    assert path.read_bytes().startswith(b'\xef\xbb\xbfid,"name",')
    with path.open(encoding="utf-8-sig", newline="") as file:
        [row] = csv.DictReader(file)
    assert (row["name"], row["created_at"]) == ("=Alice", "2026-11-30 08:15:00")
    assert row["updated_at"] == row["deleted_at"] == ""
    # A column that only the mirror has.
    datetime.strptime(row["first_seen_at"], "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007


def test_json_lines_have_nested_values_and_null(mirror, tmp_path):
    mirror.export(tmp_path / "out", format="jsonl", tables=EVERY)

    def read(name: str) -> list[Any]:
        lines = (tmp_path / "out" / f"{name}.jsonl").read_bytes().split(b"\n")
        return [json.loads(line) for line in lines[:-1]]

    users = {row["id"]: row for row in read("users")}
    assert users[ALICE]["user_attributes"] == [
        {"name": "plan", "value": "=2+2", "extra": {"a": 1}},
        {"name": "x", "value": None, "extra": None},
    ]
    assert users[ALICE]["extra"] == json.loads(EXTRA)
    assert (users[BOB]["user_attributes"], users[SILENT]["user_attributes"]) == ([], None)
    assert [row["body"] for row in read("messages")] == [*TEXTS, "hello", None]
    assert read("rejects")[0]["json"] == {"id": "?"}
    assert read("runs")[0]["lists_by_certificate"] == {"snapshot": 4}


def test_sqlite_has_typed_rows_and_keys(mirror, tmp_path):
    path = tmp_path / "chats.db"
    report = mirror.export(path, tables=EVERY)
    assert report.format == "sqlite"
    rows = sqlite_rows(path, "SELECT body FROM messages ORDER BY user_id, id")
    assert rows == [(each,) for each in (*TEXTS, "hello", None)]
    kinds = "SELECT typeof(id), typeof(created_at), name, extra FROM users WHERE id = 1"
    assert sqlite_rows(path, kinds) == [("integer", "text", "=Alice", EXTRA)]
    moments = "SELECT strftime('%s', created_at) FROM messages WHERE user_id = 2 AND id = 1"
    assert sqlite_rows(path, moments) == [(str(int(SECOND.timestamp())),)]
    plan = sqlite_rows(path, "EXPLAIN QUERY PLAN SELECT * FROM messages WHERE user_id = 1")
    assert "messages_key" in plan[0][3]
    held = sqlite_rows(path, "SELECT user_attributes ->> '$[0].extra.a' FROM users WHERE id = 1")
    assert held == [(1,)]


def test_duckdb_has_the_tables_in_a_version_that_others_open(mirror, tmp_path):
    path = tmp_path / "chats.duckdb"
    mirror.export(path, tables=EVERY, deleted=True)
    # Bytes 12 to 20 of a DuckDB file are its storage version; DuckDB 1.0 wrote and reads 64.
    assert int.from_bytes(path.read_bytes()[12:20], "little") == 64
    with duckdb.connect(path, read_only=True) as connection:
        for name in EVERY:
            query = f"FROM {name} ORDER BY ALL"
            assert connection.sql(query).fetchall() == mirror.sql(query).fetchall()
    # The reader is as before.
    assert mirror.sql("SHOW DATABASES").fetchall() == [("memory",)]


def test_xlsx_has_typed_cells(mirror, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    report = mirror.export(tmp_path / "chats.xlsx", tables=EVERY)
    book = openpyxl.load_workbook(tmp_path / "chats.xlsx")
    assert book.sheetnames == list(EVERY)
    head, *rows = book["messages"].iter_rows()
    names = [cell.value for cell in head]
    assert names == mirror.table("messages").columns
    assert not [cell for row in rows for cell in row if cell.data_type == "f" or cell.hyperlink]
    found = [dict(zip(names, row, strict=True)) for row in rows]
    for text, row in zip([*TEXTS, "hello"], found, strict=False):
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        legal = "".join("\ufffd" if c in "\x00\x1b\uffff" else c for c in lines)
        assert openpyxl.utils.escape.unescape(row["body"].value or "") == legal, text
    assert report.replaced_cells == sum(any(c in "\x00\x1b\uffff" for c in text) for text in TEXTS)
    created_at = found[len(TEXTS)]["created_at"].value
    assert created_at == SECOND.replace(tzinfo=None, microsecond=123000)
    assert found[0]["read_by_user"].value is True
    [_, *users] = book["users"].iter_rows(values_only=True)
    # Excel would show 4611686018427387904 with 15 digits.
    assert {row[0] for row in users} == {ALICE, BOB, str(SILENT)}


def test_what_xlsx_cannot_have_or_lacks_is_said_before_anything_is_written(
    mirror, tmp_path, monkeypatch
):
    monkeypatch.setattr("backread.mirror.export.xlsx.MOST_ROWS", 5)
    with pytest.raises(MirrorError, match=r"messages has 30 rows.* CSV or Parquet"):
        mirror.export(tmp_path / "chats.xlsx")
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(ImportError, match=r'pip install "backread\['):
        mirror.export(tmp_path / "chats.xlsx")
    assert list(tmp_path.iterdir()) == []


# --- rows -----------------------------------------------------------------------------------------


def exported(mirror: Mirror, folder: Path, **selection: Any) -> list[set[Any]]:
    """The keys of the users, messages and conversations of an export."""
    path = folder / "chats.duckdb"
    report: ExportReport = mirror.export(path, **selection)
    queries = ("id FROM users", "(user_id, id) FROM messages", "user_id FROM conversations")
    with duckdb.connect(path) as connection:
        found = [{*connection.sql(f"SELECT {each}").fetchall()} for each in queries]
    path.unlink()
    assert list(report.rows.values()) == [len(each) for each in found]
    return [{key for (key,) in each} for each in found]


def test_deleted_rows_are_left_out_unless_wanted(mirror, tmp_path):
    users, messages, conversations = exported(mirror, tmp_path)
    assert users == keys(mirror, "users") == conversations == {ALICE, BOB, SILENT}
    assert messages == keys(mirror, "messages")
    users, messages, conversations = exported(mirror, tmp_path, deleted=True)
    assert users == {ALICE, BOB, SILENT, GONE}
    assert (GONE, 1) in messages
    assert conversations == {ALICE, BOB, SILENT}


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, date(2024, 2, 1), {ALICE}),
        ("2024-02-01", None, {BOB}),
        ("2024-01-01T13:00:00+01:00", "2024-01-01T12:00:01Z", {ALICE}),
        (datetime(2024, 1, 1, 14, tzinfo=timezone(timedelta(hours=1))), "2024-01-31", set()),
        (datetime(2024, 1, 1, 12), SECOND + timedelta(seconds=1), {ALICE, BOB}),  # noqa: DTZ001
    ],
)
def test_a_period_has_its_messages_and_their_users(mirror, tmp_path, since, until, expected):
    users, messages, conversations = exported(mirror, tmp_path, since=since, until=until)
    assert users == conversations == {user_id for user_id, _ in messages} == expected


def test_users_are_those_named_in_order(mirror, tmp_path):
    users, messages, _ = exported(mirror, tmp_path, users=[BOB, SILENT])
    assert (users, messages) == ({BOB, SILENT}, {(BOB, 1), (BOB, 2)})
    column = pytest.importorskip("numpy").array([ALICE])
    assert exported(mirror, tmp_path, users=column)[0] == {ALICE}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "csv", "users": [ALICE, 99]}, "has no user 99"),
        ({"format": "csv", "users": GONE}, "user 3 is marked as deleted"),
        ({"everything": True, "users": 99}, "holds nothing about a user 99"),
    ],
)
def test_a_user_without_rows_is_refused(mirror, tmp_path, arguments, message):
    with pytest.raises(MirrorError, match=message):
        mirror.export(tmp_path / "out", **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("out", {}, "name the format"),
        ("out", {"format": "ods"}, "must be one of parquet, csv"),
        ("out", {"format": "csv", "tables": ["cursors"]}, "a mirror has the tables"),
        ("out", {"format": "csv", "tables": []}, "at least one table"),
        ("out", {"format": "csv", "users": []}, "at least one user"),
        ("out", {"format": "csv", "users": [-1]}, "users must be 0 or more"),
        ("out", {"format": "csv", "tables": ["runs"], "since": "2024-01-01"}, "select no rows"),
        ("out", {"format": "csv", "since": "2024-02-01", "until": "2024-02-01"}, "earlier than"),
        ("out", {"format": "jsonl", "raw_csv": True}, "raw_csv needs the format csv"),
        ("out", {"format": "csv", "codec": "snappy"}, "codec needs the format parquet"),
        ("out", {"format": "parquet", "codec": "lz4"}, "codec must be one of zstd, snappy"),
        ("out", {"everything": True, "users": [1, 2]}, "exactly one user"),
        ("out", {"everything": True, "users": 1, "since": "2024-01-01"}, "neither dates nor"),
        ("out", {"everything": True, "users": 1, "format": "csv"}, "leave the format out"),
        ("out.csv", {"everything": True, "users": 1}, r"without \.csv, or with \.json"),
        ("out.csv", {}, "holds one table"),
        ("out.xlsx", {"format": "csv"}, "do not agree"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(mirror, tmp_path, name, arguments, message):
    with pytest.raises(ValueError, match=message):
        mirror.export(tmp_path / name, **arguments)
    assert list(tmp_path.iterdir()) == []


# --- one person -----------------------------------------------------------------------------------


def test_everything_about_a_person_as_one_document(mirror, tmp_path):
    report = mirror.export(tmp_path / "alice.json", users=ALICE, everything=True)
    held = json.loads((tmp_path / "alice.json").read_bytes())
    assert (held["user_id"], held["users"][0]["extra"]) == (ALICE, json.loads(EXTRA))
    assert [message["body"] for message in held["messages"]] == TEXTS
    assert len(held["users"]) == len(held["lists"]) == len(held["conversations"]) == 1
    assert held["rejects"][0]["json"] == {"id": "?"}
    assert report.rows["messages"] == len(TEXTS)


def test_everything_has_deleted_rows_and_a_text_to_read(mirror, tmp_path):
    mirror.export(tmp_path / "gone", users=[GONE], everything=True)
    held = json.loads((tmp_path / "gone" / "everything.json").read_bytes())
    assert held["messages"][0]["body"] == "goodbye"
    assert held["users"][0]["deleted_at"] is not None
    said = (tmp_path / "gone" / "conversation.txt").read_text(encoding="utf-8")
    assert said.startswith("2024-01-01T12:00:00Z  unknown: goodbye (deleted, as noticed at 2")
    mirror.export(tmp_path / "alice", users=[ALICE], everything=True)
    said = (tmp_path / "alice" / "conversation.txt").read_text(encoding="utf-8")
    lines = said.split("\n")
    assert sum(line.startswith("2024-01-01T12:00:00Z  user: ") for line in lines) == len(TEXTS)
    assert not [c for c in said if c in "\x00\x1b\x7f\x9b\u2028\x85"]


def test_everything_about_a_forgotten_person_is_the_tombstone(tmp_path):
    mirror = fill(tmp_path / "chats")
    mirror.forget(ALICE)
    mirror.export(tmp_path / "alice.json", users=ALICE, everything=True)
    held = json.loads((tmp_path / "alice.json").read_bytes())
    assert [row["user_id"] for row in held.pop("forgotten")] == [ALICE]
    assert {name: rows for name, rows in held.items() if isinstance(rows, list) and rows} == {}


# --- tables ---------------------------------------------------------------------------------------


def test_the_tables_of_a_mirror_are_listed(mirror, tmp_path):
    tables = mirror.tables
    assert (list(tables), len(tables)) == (list(EVERY), len(EVERY))
    assert tables["users"] == mirror.table("users")
    with pytest.raises(KeyError):
        tables["cursors"]
    assert ("messages" in tables, "cursors" in tables) == (True, False)
    assert repr(tables).split()[:3] == ["users", "4", "rows"]
    assert "nothing is published" in repr(Mirror(tmp_path).tables)


# --- all or nothing, whatever ends it, and private ------------------------------------------------


FORMATS = {
    "parquet": "out",
    "csv": "out",
    "jsonl": "out",
    "xlsx": "chats.xlsx",
    "sqlite": "chats.db",
    "duckdb": "chats.duckdb",
}
each_format = pytest.mark.parametrize("shape", FORMATS)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    """One whose export takes a while, and a few megabytes that do not compress."""
    folder = tmp_path_factory.mktemp("large") / "chats"
    said = [{"user_id": 1, "id": n, "body": os.urandom(150).hex()} for n in range(20_000)]
    BatchSource(batch([{"id": 1}], said, swept="snapshot")).sync_into(folder)
    return Mirror(folder)


@each_format
def test_an_empty_mirror_gives_empty_tables_and_an_unpublished_one_nothing(tmp_path, shape):
    mirror, target = Mirror(tmp_path / "chats"), tmp_path / FORMATS[shape]
    with pytest.raises(MirrorError, match="nothing is published"):
        mirror.export(target, format=shape)
    assert list(tmp_path.iterdir()) == []
    BatchSource(batch(swept="snapshot")).sync_into(mirror.folder)
    report = mirror.export(target, format=shape)
    assert report.rows == {"users": 0, "messages": 0, "conversations": 0}
    assert report.bytes == sum(file.stat().st_size for file in report.files)
    assert len(report.files) == (3 if FORMATS[shape] == "out" else 1)


@pytest.mark.parametrize("name", ["users.csv", "out"])
@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_an_existing_target_is_refused_and_kept(mirror, tmp_path, name, kind):
    target = tmp_path / name
    arguments: Any = {"format": "csv", "tables": ["users"]}

    def appear(now: object = None) -> None:
        if os.path.lexists(target):
            return
        if kind == "file":
            target.write_text("mine", encoding="utf-8")
        elif kind == "folder":
            target.mkdir()
            (target / "mine").touch()
        else:
            target.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(MirrorError, match="exists already"):
        mirror.export(target, on_progress=appear, **arguments)
    before = target.lstat()
    with pytest.raises(MirrorError, match=r"exists already; remove it, .*--replace"):
        mirror.export(target, **arguments)
    if name == "out" or kind != "file":
        # It is of no export.
        with pytest.raises(MirrorError, match=r"remove it|move that file|link|directory"):
            mirror.export(target, replace=True, **arguments)
    assert target.lstat() == before
    assert list(tmp_path.iterdir()) == [target]


@each_format
def test_replace_puts_the_finished_export_in_the_place_of_the_earlier_one(mirror, tmp_path, shape):
    target = tmp_path / FORMATS[shape]
    first = mirror.export(target, format=shape, tables=["users", "lists"], replace=True)
    target.chmod(0o750 if target.is_dir() else 0o640)
    (before,) = {file.read_bytes() for file in first.files if file.stem in ("users", "chats")}

    def fail(now: ExportProgress) -> None:
        raise KeyError("stop")

    with pytest.raises(KeyError):
        mirror.export(target, format=shape, replace=True, on_progress=fail)
    assert before in {file.read_bytes() for file in first.files}
    again = mirror.export(target, format=shape, tables=["messages"], replace=True)
    assert again.rows == {"messages": 30}
    assert set(again.files) == ({target} if target.is_file() else set(target.iterdir()))
    assert {file.stem for file in again.files} == {"messages" if target.is_dir() else "chats"}
    assert list(tmp_path.iterdir()) == [target]
    if os.name != "nt":
        assert mode(target) == (0o750 if target.is_dir() else 0o640)


def test_a_mirror_is_never_replaced(mirror, tmp_path):
    fill(other := tmp_path / "other")
    for shape in ("parquet", "duckdb"):
        for target in (other, other / "chats.duckdb", other / "published", mirror.folder):
            with pytest.raises((MirrorError, ValueError)):
                mirror.export(target, replace=True, format=shape)
    assert Mirror(other).table("messages").num_rows == 31


def test_a_target_inside_the_mirror_or_nowhere_is_refused(mirror, tmp_path):
    (tmp_path / "link").symlink_to(mirror.folder)
    (tmp_path / "file").touch()
    refused = {
        mirror.folder / "published" / "out": "inside the mirror",
        tmp_path / "link" / "out": "inside the mirror",
        tmp_path / "no" / "out": "does not exist; create it",
        tmp_path / "what?": "which DuckDB cannot write",
        "s3://bucket/out": "not a local path",
        tmp_path / "file" / "out": "cannot be written",
    }
    for target, message in refused.items():
        with pytest.raises(MirrorError, match=message):
            mirror.export(target, format="csv")


@posix_only
@each_format
def test_files_are_as_private_as_their_folder(mirror, tmp_path, shape):
    # Of any name, and by a link to it.
    folder = tmp_path / "it's [a] *{uuid} %20#é=1 日本"
    folder.mkdir()
    folder.chmod(0o750)
    (tmp_path / "link").symlink_to(folder)
    with umask(0):
        report = mirror.export(tmp_path / "link" / FORMATS[shape], format=shape)
    assert {file.resolve() for file in report.files} == {*files_below(folder)}
    if report.target.is_dir():
        assert mode(report.target) == 0o700
    expected = 0o600 if report.target.is_dir() else 0o640
    assert {mode(each) for each in report.files} == {expected}


@posix_only
@pytest.mark.parametrize("shape", ["parquet", "xlsx", "sqlite"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(backread, large, tmp_path, shape):
    target = tmp_path / FORMATS[shape]
    with largest_file(1_000_000):
        done = backread("export", large.folder, target, "--format", shape)
    assert done.code == 2
    last = done.error.splitlines()[-1]
    assert f"the export to {target}: the disk is full, and nothing was written" in last
    assert list(tmp_path.iterdir()) == []


@posix_only
@each_format
@pytest.mark.long
def test_a_killed_export_leaves_what_the_next_one_removes(large, tmp_path, shape):
    target = tmp_path / FORMATS[shape]
    command = [*COMMAND, "export", str(large.folder), str(target), "--format", shape]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_for(
            lambda: (
                process.poll() is not None
                or any(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
            )
        )
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not target.exists()
    [left] = tmp_path.iterdir()
    assert left.suffix == ".unfinished"
    report = large.export(target, format=shape)
    assert report.rows["messages"] == 20_000
    assert list(tmp_path.iterdir()) == [target]


@each_format
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_what_stops_an_export_leaves_nothing(large, tmp_path, shape, error):
    def stop(now: ExportProgress) -> None:
        if now.rows or now.bytes:
            raise error("mine")

    with pytest.raises(error, match="mine"):
        large.export(tmp_path / FORMATS[shape], format=shape, on_progress=stop)
    assert list(tmp_path.iterdir()) == []
    # The mirror can be read as before.
    assert large.table("messages").num_rows == 20_000
