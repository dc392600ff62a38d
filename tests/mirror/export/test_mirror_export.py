"""`Mirror.export`: each format read back by another tool, and which rows it has."""

import csv
import json
import sqlite3
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pytest

from backread import MirrorError
from backread.mirror import ExportReport, Mirror
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
from helpers.mirrors import BatchSource, batch

TABLES = ("users", "messages", "conversations")
EVERY = (*TABLES, "lists", "files", "rejects", "runs")


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    return fill(tmp_path_factory.mktemp("it's [a] {folder}") / "chats")


def sqlite_rows(path: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


# --- formats --------------------------------------------------------------------------------------


def test_parquet_has_the_rows_and_types_of_the_mirror(mirror, tmp_path):
    import pyarrow.parquet

    mirror.export(tmp_path / "m.parquet", tables=["messages"], codec="snappy")
    group = pyarrow.parquet.read_metadata(tmp_path / "m.parquet").row_group(0)
    assert group.column(0).compression == "SNAPPY"
    report = mirror.export(tmp_path / "out", format="parquet", tables=EVERY, deleted=True)
    assert {file.name for file in report.files} == {f"{name}.parquet" for name in EVERY}
    for name in EVERY:
        read = pyarrow.parquet.read_table(tmp_path / "out" / f"{name}.parquet")
        expected = mirror.table(name).to_arrow()
        assert read.schema.names == expected.schema.names
        assert read.num_rows == expected.num_rows == report.rows[name]
        assert duckdb.sql("FROM read EXCEPT FROM expected").fetchall() == []
        assert [str(kind) for kind in duckdb.sql("FROM read").types] == [
            str(kind) for kind in mirror.sql(f"FROM {name}").types
        ]


def test_parquet_has_the_same_schema_whatever_the_rows_are(mirror, tmp_path):
    import pyarrow.parquet

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
    read = {
        name: [
            json.loads(line)
            for line in (tmp_path / "out" / f"{name}.jsonl").read_bytes().split(b"\n")[:-1]
        ]
        for name in EVERY
    }
    users = {row["id"]: row for row in read["users"]}
    assert users[ALICE]["user_attributes"] == [
        {"name": "plan", "value": "=2+2", "extra": {"a": 1}},
        {"name": "x", "value": None, "extra": None},
    ]
    assert users[ALICE]["extra"] == json.loads(EXTRA)
    assert users[BOB]["user_attributes"] == []
    assert users[SILENT]["user_attributes"] is None
    bodies = {(row["user_id"], row["id"]): row["body"] for row in read["messages"]}
    assert bodies == {
        **{(ALICE, place): text for place, text in enumerate(TEXTS)},
        (BOB, 1): "hello",
        (BOB, 2): None,
    }
    assert read["rejects"][0]["json"] == {"id": "?"}
    assert read["runs"][0]["lists_by_certificate"] == {"snapshot": 4}


def test_sqlite_has_typed_rows_and_keys(mirror, tmp_path):
    path = tmp_path / "chats.db"
    report = mirror.export(path, tables=EVERY)
    assert report.format == "sqlite"
    rows = sqlite_rows(path, "SELECT body FROM messages ORDER BY user_id, id")
    assert rows == [(each,) for each in column(mirror, "body")]
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
            expected = mirror.table(name).to_arrow()  # noqa: F841
            assert connection.sql(f"FROM {name} EXCEPT FROM expected").fetchall() == []
            [(count,)] = connection.sql(f"SELECT count(*) FROM {name}").fetchall()
            assert count == mirror.table(name).num_rows
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
    found = {
        (row[names.index("user_id")].value, row[names.index("id")].value): dict(
            zip(names, row, strict=True)
        )
        for row in rows
    }
    assert not [cell for row in rows for cell in row if cell.data_type == "f" or cell.hyperlink]
    for place, text in enumerate(TEXTS):
        cell = found[ALICE, place]["body"]
        lines = text.replace("\r\n", "\n").replace("\r", "\n")
        legal = "".join("\ufffd" if c in "\x00\x1b\uffff" else c for c in lines)
        shown = openpyxl.utils.escape.unescape(cell.value or "")
        assert shown == legal, text
        assert not isinstance(cell.value, (int, float))
    assert report.replaced_cells == sum(any(c in "\x00\x1b\uffff" for c in text) for text in TEXTS)
    assert found[BOB, 1]["created_at"].value == SECOND.replace(tzinfo=None, microsecond=123000)
    assert found[ALICE, 0]["read_by_user"].value is True
    [_, *users] = book["users"].iter_rows(values_only=True)
    # Excel would show 4611686018427387904 with 15 digits.
    assert {row[0] for row in users} == {ALICE, BOB, str(SILENT)}


def test_too_many_rows_for_xlsx_are_refused_before_anything_is_written(
    mirror, tmp_path, monkeypatch
):
    monkeypatch.setattr("backread.mirror.export.xlsx.MOST_ROWS", 5)
    with pytest.raises(MirrorError, match=r"messages has 30 rows.* CSV or Parquet"):
        mirror.export(tmp_path / "chats.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_library_is_named(mirror, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xlsxwriter", None)
    with pytest.raises(ImportError, match=r'pip install "backread\['):
        mirror.export(tmp_path / "out", format="xlsx")
    assert list(tmp_path.iterdir()) == []


# --- rows -----------------------------------------------------------------------------------------


def exported(mirror: Mirror, folder: Path, **selection: Any) -> tuple[set[Any], set[Any], set[Any]]:
    """The keys of the users, messages and conversations of an export."""
    path = folder / "chats.duckdb"
    report: ExportReport = mirror.export(path, **selection)
    with duckdb.connect(path) as connection:
        found = [
            {row for (row,) in connection.sql(query).fetchall()}
            for query in (
                "SELECT id FROM users",
                "SELECT (user_id, id) FROM messages",
                "SELECT user_id FROM conversations",
            )
        ]
    path.unlink()
    assert list(report.rows.values()) == [len(each) for each in found]
    return found[0], found[1], found[2]


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


def test_rows_are_in_the_order_of_their_key(tmp_path):
    # Enough messages for several threads to write them, and times against the order of ids.
    users, count = range(40), 40_000
    said = [
        {"user_id": place % 40, "id": place, "created_at": SECOND - timedelta(seconds=place)}
        for place in range(count)
    ]
    mirror = Mirror(tmp_path / "chats")
    BatchSource(batch([{"id": n} for n in users], said, swept="snapshot")).sync_into(mirror.folder)
    mirror.export(tmp_path / "chats.duckdb", users=users)
    mirror.export(tmp_path / "chats.db")
    expected = sorted((place % 40, -place) for place in range(count))
    query = "SELECT user_id, -id FROM messages"
    with duckdb.connect(tmp_path / "chats.duckdb") as opened:
        assert opened.sql(query).fetchall() == expected
    assert sqlite_rows(tmp_path / "chats.db", f"{query} ORDER BY rowid") == expected


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


def test_everything_has_records_that_were_rejected_for_their_id(tmp_path):
    """As many as `forget` removes."""
    theirs = [f'{{"id": {text}}}' for text in (f'" {ALICE} "', f"{ALICE}.0")]
    others = [f'{{"id": "{BOB}"}}', "{", "[]", '{"id": null}']
    rejects = [{"resource": "users", "user_id": None, "json": each} for each in [*theirs, *others]]
    mirror = fill(tmp_path / "chats")
    BatchSource(batch(rejects=rejects)).sync_into(mirror.folder)
    mirror.export(tmp_path / "alice.json", users=ALICE, everything=True)
    held = json.loads((tmp_path / "alice.json").read_bytes())
    found = [row["json"] for row in held["rejects"] if row["resource"] == "users"]
    assert sorted(found, key=str) == sorted(map(json.loads, theirs), key=str)


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
    assert list(tables) == list(EVERY)
    assert len(tables) == len(EVERY)
    assert tables["users"] == mirror.table("users")
    with pytest.raises(KeyError):
        tables["cursors"]
    assert "messages" in tables
    assert "cursors" not in tables
    [users, *_] = repr(tables).splitlines()
    assert users.split()[:3] == ["users", "4", "rows"]
    assert "nothing is published" in repr(Mirror(tmp_path).tables)
