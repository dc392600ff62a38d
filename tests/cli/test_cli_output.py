"""What the command writes: JSON lines, tables, CSV and Parquet, to a pipe, a terminal, a file."""

import csv
import errno
import io
import json
import re
import tempfile
import tracemalloc
from typing import Any

import duckdb
import pytest

from backread._files import unfinished
from backread._files.spreadsheet import guarded
from backread.cli.app import run
from backread.cli.exits import say_failure
from backread.cli.table_output import write_table
from backread.cli.text import escaped
from helpers.api_rows import paged, users
from helpers.command_line import posix_only, settings_of
from helpers.pseudo_terminal import on_terminal
from helpers.scripted_server import answer

pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len


def test_parquet_goes_to_a_file_and_reads_the_list_once(backread, server, tmp_path):
    file = tmp_path / "rows.parquet"
    before = server.counts()["users"]
    assert backread("users", "--format", "parquet", "--output", file).code == 0
    assert server.counts()["users"] - before <= 3
    with duckdb.connect() as connection:
        held = connection.execute(f"SELECT count(*) FROM '{file}'").fetchall()
    assert held == [(server.world.total_users,)]
    assert [entry.name for entry in tmp_path.iterdir()] == ["rows.parquet"]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("users.parquet", b"PAR1"),
        ("users.CSV", b"id,name,"),
        ("users.json", b'[{"id": '),
        ("users", b'{"id": '),
    ],
)
def test_the_format_is_that_of_the_files_name(backread, tmp_path, name, first):
    file = tmp_path / name
    assert backread("users", "--output", file).code == 0
    assert file.read_bytes().startswith(first)


@pytest.mark.parametrize(
    ("name", "shape", "said"),
    [
        ("notes.txt", None, "backread does not write .txt files"),
        ("users.parquet", "csv", "--format csv and the name of --output"),
    ],
)
def test_a_file_of_another_kind_is_refused_before_any_request(
    backread, server, tmp_path, name, shape, said
):
    file = tmp_path / name
    file.write_text("mine\n", encoding="utf-8")
    before = sum(server.counts().values())
    done = backread("users", "--output", file, *(["--format", shape] if shape else []))
    assert (done.code, said in done.line) == (2, True)
    assert file.read_text(encoding="utf-8") == "mine\n"
    assert sum(server.counts().values()) == before


@pytest.mark.parametrize("name", ["mirror.duckdb", "published/current/snapshot.json"])
def test_no_output_replaces_a_file_of_a_mirror(backread, mirror, server, name):
    with server.client() as client:
        mirror.sync(client, users=server.world.user_ids()[:1])
    file = mirror.folder / name
    before = file.read_bytes()
    for command in (["users"], ["sql", mirror.folder, "FROM users"]):
        done = backread(*command, "--format", "json", "--output", file)
        assert done.code == 2
        assert f"{file} belongs to the mirror in {mirror.folder}; name another file" in done.line
    assert file.read_bytes() == before
    # Files that backread does not need, and such names elsewhere, are the user's.
    for free in (mirror.folder / "users.json", mirror.folder.parent / name.replace("/", "-")):
        assert backread("users", "--format", "json", "--output", free).code == 0


def test_every_users_messages_are_written_in_every_format(backread, server):
    world = server.world
    held = {(user, each) for user in world.user_ids() for each in world.message_ids(user)}
    lines = [json.loads(line) for line in backread("messages", "--all").out.splitlines()]
    assert {(line["user_id"], line["id"]) for line in lines} == held
    assert json.loads(backread("messages", "--all", "--json").out) == lines
    one = lines[-1]
    assert next(iter(one)) == "user_id"
    sent = {name: value for name, value in one.items() if name != "user_id"}
    assert sent == world.message(one["user_id"], one["id"])
    table = csv.DictReader(io.StringIO(backread("messages", "--all", "--format", "csv").out))
    by_id = {(int(row["user_id"]), int(row["id"])): row for row in table}
    assert by_id.keys() == held
    row = by_id[one["user_id"], one["id"]]
    assert row["sender_email"] == sent["sender"]["email"]
    assert row["read_by_user"] == ("true" if sent["read_by_user"] else "false")
    assert row["extra"] == row["sender_extra"] == ""
    heading, *rows = backread("messages", "--all", "--format", "table").out.splitlines()
    assert heading.split()[:2] == ["user_id", "id"]
    assert "created_at (UTC)" in heading
    shown = {(int(row.split()[0]), int(row.split()[1])): row for row in rows}
    assert shown.keys() == held
    row = shown[one["user_id"], one["id"]]
    assert f"  {sent['created_at'][:10]} {sent['created_at'][11:16]}  " in row
    assert ("  yes  " if sent["read_by_user"] else "  no ") in row
    assert sent["body"].split()[-1] in row


def test_a_table_holds_1000_rows_and_the_rest_are_lines_with_its_widths():
    rows = ([100_000 + number, "x" * (number % 7), None] for number in range(9_000))
    tracemalloc.start()
    try:
        out = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        assert write_table(["id", "text", "none"], rows, out) == 9_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000
    with out:
        out.seek(0)
        lines = out.read().splitlines()
    assert len(lines) == 9_001
    assert lines[14].index("x") == lines[1014].index("x") == lines[0].index("text")


def test_rows_that_are_left_out_are_named(backread, scripted, monkeypatch):
    """In JSON a row without an id is written as it was sent; one that was not read cannot be."""
    rows = [{"id": 1}, {"id": 2, "name": "x" * 5000}, {"name": "Ada"}, {"id": 4}]

    def respond(request: Any) -> bytes:
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        some = rows[offset : offset + limit]
        return answer(200, {"limit": limit, "offset": offset, "total": 4, "users": some})

    monkeypatch.setenv("BACKREAD_BASE_URL", scripted(respond).url)
    for shape, left_out in (("jsonl", "1 row is left out: "), ("csv", "2 rows are left out: ")):
        done = backread("users", "--max-response-bytes", 2000, "--format", shape)
        assert (done.code, left_out in done.error) == (0, True)
        assert "the row at offset 1 is larger than max_response_bytes" in done.error
        assert ("Ada" in done.out) == (shape == "jsonl")


def short_list(request: Any) -> bytes:
    """Three rows of a list whose total says six."""
    offset, limit = int(request.query["offset"]), int(request.query["limit"])
    some = [{"id": number} for number in (1, 2, 3)][offset : offset + limit]
    kind = "messages" if "messages" in request.path else "users"
    return answer(200, {"limit": limit, "offset": offset, "total": 6, kind: some})


@pytest.mark.parametrize(
    ("arguments", "shape"),
    [(["users"], "json"), (["messages", "1"], "parquet")],
)
def test_a_list_that_is_not_proved_complete_is_named(
    backread, scripted, monkeypatch, tmp_path, arguments, shape
):
    monkeypatch.setenv("BACKREAD_BASE_URL", scripted(short_list).url)
    file = tmp_path / "rows"
    command = [*arguments, "--format", shape, "--output", file]
    strict = backread(*command, "--strict")
    assert strict.code == 6
    assert "3 rows were read of a total of 6" in strict.line
    assert strict.line.endswith("or without strict=True")
    assert list(tmp_path.iterdir()) == []
    done = backread(*command)
    assert done.code == 0
    assert "the list is not proved complete: 3 rows were read of a total of 6" in done.line
    assert file.stat().st_size > 0
    for more in ([], ["--strict"]):
        limited = backread(*command, "--limit", 2, *more)
        assert (limited.code, limited.error) == (0, "")


@posix_only
def test_a_messages_body_gets_half_of_the_terminal_and_progress_is_shown_where_no_rows_are(
    settings, tmp_path
):
    environment = {**settings, "COLUMNS": "120", "TERM": "xterm"}
    shown = on_terminal("messages", "--all", "--output", tmp_path / "messages.csv", **environment)
    assert shown.code == 0
    assert re.search(r"messages of every user  [\d,]+ rows · 120 lists · .* · linked", shown.text)
    environment = {**settings, "COLUMNS": "80", "TERM": "dumb"}
    text = on_terminal("messages", "--all", "--limit", 300, **environment).text
    head, *lines, _ = text.splitlines()
    assert all(name in head for name in ("id", "body", "created_at (UTC)", "sender"))
    body = re.search(r"body +", head)
    assert body is not None
    # With the gap of two cells.
    assert len(body[0]) - 2 >= 40
    assert all(cell_len(line) <= 80 for line in lines)


# --- tables on a terminal -------------------------------------------------------------------------


COLUMNS = ["id", "name", "email", "last_url", "online_at"]

SEEN = "2026-01-02T03:04:05.678Z"

ROWS = [
    [4_200_001, "Aleksandra Wiśniewska", "aleksandra@example.org", "https://" + "a" * 80, SEEN],
    [7, "李小龍", "li@example.org", "https://example.org/", SEEN],
]


def test_row_is_one_line_of_the_terminal_with_the_columns_that_can_be_read(monkeypatch, terminal):
    def drawn(width: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        terminal.truncate(terminal.seek(0))
        write_table(COLUMNS, ROWS, terminal)
        return re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()

    head, first, second, *rest = drawn(40)
    assert head.split() == COLUMNS[:3]
    # The first column is shown whole on any terminal.
    assert first.split()[0] == "4200001"
    assert re.search("Aleksandr.*aleksandr", first)
    assert first.count("…") == 2
    assert "李小龍" in second
    assert all(cell_len(line) <= 40 for line in (head, first, second))
    assert " ".join(rest).startswith("2 more columns: last_url, online_at")
    _, *table = drawn(200)
    assert all(str(cell) in line for line, row in zip(table, ROWS, strict=True) for cell in row)


# --- texts of strangers ---------------------------------------------------------------------------


FORMULAS = [
    "=1+1",
    "+1",
    "@SUM(A1)",
    "\n=1",
    " =1",
    "\ufeff=1",
    "\uff1d1",
    "'=1",
    "''",
]

HARMLESS = ["", "a=b", "5", "https://example.org/?a=-1", "\u200fשלום", "{'=1}", "e-mail"]

UNSEEN = "\x7f\x80\x9b\x9f\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069"


def anything() -> st.SearchStrategy[str]:
    odd = st.sampled_from([*FORMULAS, *UNSEEN, "\x1b[2J", "\r", "'", "="])
    return st.lists(st.one_of(st.text(max_size=5), odd), max_size=5).map("".join)


@given(anything())
def test_json_is_the_same_value_and_shows_what_is_not_seen(text):
    line = escaped(json.dumps(text, ensure_ascii=False))
    assert json.loads(line) == text
    assert line == "".join(line.splitlines())
    assert not re.search(f"[{UNSEEN}\x00-\x1f]", line)


@given(anything())
def test_a_cell_is_no_formula_and_gives_its_text_back(text):
    guards: list[None] = []
    cell = guarded(text, lambda: guards.append(None))
    assert cell.removeprefix("'") == text or cell == text
    assert (cell.removeprefix("'") if cell.startswith("'") else cell) == text
    assert len(guards) == (cell != text)
    assert cell.lstrip()[:1] not in tuple("=+-@")


def test_formulas_are_guarded_in_csv_unless_it_is_to_be_raw(
    scripted, settings, monkeypatch, capfdbinary
):
    names = [*FORMULAS, *HARMLESS, UNSEEN]
    rows = [row | {"name": name} for row, name in zip(users(len(names)), names, strict=True)]
    for name, value in settings_of(scripted(paged(rows))).items():
        monkeypatch.setenv(name, value)

    def written(*options: str) -> tuple[str, str]:
        assert run(["users", "--format", *options]) == 0
        read = capfdbinary.readouterr()
        return read.out.decode(), read.err.decode()

    def cells(text: str) -> list[str]:
        return [row["name"] for row in csv.DictReader(io.StringIO(text, newline=""))]

    text, said = written("csv")
    assert cells(text) == [f"'{name}" if name in FORMULAS else name for name in names]
    assert said.startswith(f"backread: {len(FORMULAS)} cells begin with an apostrophe")
    assert "--raw-csv" in said
    assert cells(written("csv", "--raw-csv")[0]) == names
    for_excel = written("csv", "--excel")[0]
    assert for_excel.startswith("\ufeffid,")
    [*_, user] = csv.DictReader(io.StringIO(for_excel, newline=""))
    times = ("created_at", "2024-03-05 09:31:07"), ("online_at", "2024-03-07 11:00:00")
    assert [(name, user[name]) for name, _ in times] == [*times]
    lines = written("jsonl")[0].splitlines()
    assert [json.loads(line)["name"] for line in lines] == names
    assert "\\u202e" in lines[-1]


# --- failures of this machine ---------------------------------------------------------------------


def test_without_a_temporary_folder_it_says_so(backread, tmp_path, monkeypatch):
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "gettempdir", none)
        patched.setattr(unfinished, "_scratch", {})
        done = backread("users", "--output", tmp_path / "rows.parquet")
    assert done.code == 2
    assert done.line == (
        "backread: no temporary file can be written: No usable temporary directory found in "
        "['/tmp']; set TMPDIR to a writable folder"
    )


def test_too_few_file_descriptors_are_one_line(capfd):
    say_failure(OSError(errno.EMFILE, "Too many open files"))
    assert "may open no more files; raise its limit" in capfd.readouterr().err
