"""``backread sql`` and ``backread tables`` as a shell sees them."""

import csv
import io
import json
import os
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

from backread import Mirror
from helpers.command_line import COMMAND, SECONDS, wait_for
from helpers.mirrors import BatchSource, batch

HOSTILE = "late \x1b]0;owned\x07 \x9b31m \u202einvoice"

BODIES = ("=1+1", HOSTILE, "two\nlines")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    messages = [
        {
            "user_id": 1,
            "id": number,
            "body": body,
            "created_at": datetime(2024, 3, number, 9, 30, tzinfo=UTC),
            "read_by_user": number == 1,
            "sender_type": "user",
        }
        for number, body in enumerate(BODIES, start=1)
    ]
    mirror = Mirror(tmp_path_factory.mktemp("sql") / "chats")
    BatchSource(batch([{"id": 1}], messages, swept="snapshot")).sync_into(mirror.folder)
    return mirror.folder


QUERY = "SELECT id, body, created_at, read_by_user FROM messages ORDER BY id DESC"


def test_a_table_has_what_people_read(backread, folder):
    done = backread("sql", folder, QUERY, "--format", "table")
    assert (done.code, done.error) == (0, "")
    head, third, second, first = done.out.splitlines()
    assert head.split() == ["id", "body", "created_at", "(UTC)", "read_by_user"]
    assert third.split() == ["3", "two", "lines", "2024-03-03", "09:30:00", "no"]
    assert first.split() == ["1", "=1+1", "2024-03-01", "09:30:00", "yes"]
    assert "owned" in second
    assert not {*done.out} & {*"\x1b\x07\x9b\u202e"}


def test_machine_formats(backread, folder, tmp_path):
    rows = [json.loads(line) for line in backread("sql", folder, QUERY).out.splitlines()]
    assert json.loads(backread("sql", folder, QUERY, "--json").out) == rows
    assert [row["body"] for row in rows] == [*reversed(BODIES)]
    assert rows[0]["created_at"] == "2024-03-03T09:30:00.000000Z"
    assert rows[0]["read_by_user"] is False
    done = backread("sql", folder, QUERY, "--format", "csv")
    [_, _, first] = csv.DictReader(io.StringIO(done.out))
    assert first == {
        "id": "1",
        "body": "'=1+1",
        "created_at": "2024-03-01T09:30:00.000000Z",
        "read_by_user": "true",
    }
    assert "1 cell begins with an apostrophe" in done.error
    raw = backread("sql", folder, QUERY, "--format", "csv", "--raw-csv")
    assert '\n1,"=1+1",' in raw.out
    file = tmp_path / "rows.parquet"
    assert backread("sql", folder, QUERY, "--output", file).code == 0
    assert pq.read_table(file).column("id").to_pylist() == [3, 2, 1]
    table = tmp_path / "rows.txt"
    assert backread("sql", folder, QUERY, "--format", "table", "--output", table).code == 0
    assert table.read_text().splitlines()[0].startswith("id  body")


def test_numbers_that_json_lacks_are_null(backread, folder):
    """RFC 8259, section 6; in DuckDB a division by zero is infinite."""
    query = "SELECT 1 / 0 AS a, 0.0 / 0 AS b, 0.5::FLOAT AS c"
    done = backread("sql", folder, query)
    row = json.loads(done.out, parse_constant=pytest.fail)
    assert row == {"a": None, "b": None, "c": 0.5}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (f"{2**127 - 1}::HUGEINT", str(2**127 - 1)),
        ("INTERVAL '1 year 3 days 4.000005 seconds'", "1 year 3 days 00:00:04.000005"),
        (f"{10**60}::BIGNUM", str(10**60)),
    ],
)
def test_values_of_every_type_are_those_of_the_query(backread, folder, value, text):
    query = f'SELECT 7 AS n, {value} AS "a ""b" -- the last'
    done = backread("sql", folder, query, "--format", "table")
    assert (done.code, done.error) == (0, "")
    heading, line = done.out.splitlines()
    assert heading.split(maxsplit=1) == ["n", 'a "b']
    assert line.split(maxsplit=1) == ["7", text]
    [row] = csv.DictReader(io.StringIO(backread("sql", folder, query, "--format", "csv").out))
    assert row == {"n": "7", 'a "b': text}


def test_formulas_are_guarded_in_columns_of_every_type(backread, folder):
    query = (
        "SELECT union_value(a := '=1+1') AS a, '@x'::VARIANT AS b, ['=x'::VARIANT] AS c, "
        "INTERVAL '-3 days' AS d, -5 AS e, NULL::VARIANT AS f, -1::DECIMAL(3, 1) AS g"
    )
    done = backread("sql", folder, query, "--format", "csv")
    assert next(csv.reader(io.StringIO(done.out.splitlines()[1]))) == [
        "'=1+1", "'@x", '["=x"]', "-3 days", "-5", "", "-1.0"
    ]  # fmt: skip
    assert "2 cells begin with an apostrophe" in done.error
    raw = backread("sql", folder, query, "--format", "csv", "--raw-csv").out
    assert next(csv.reader(io.StringIO(raw.splitlines()[1])))[:2] == ["=1+1", "@x"]


def test_a_result_without_rows(backread, folder):
    query = "SELECT 1 AS one WHERE false"
    done = backread("sql", folder, query, "--format", "table")
    assert (done.code, done.out, done.error) == (0, "one\n", "the result has no rows\n")
    assert backread("sql", folder, query).out == ""
    assert backread("sql", folder, query, "--json").out == "[]\n"


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT * FROM usrs", 'Did you mean "users"?; the tables are users, messages,'),
        ("SELECT nam FROM users", "TABLE` lists the columns"),
        ("SELEC 1", 'cannot be run: syntax error at or near "SELEC"'),
        ("SELECT 1\nFROM users\nWHERE (", "in line 3"),
        ("SELECT * FROM read_csv('/etc/passwd')", "reads the mirror's tables and nothing else"),
        ("COPY users TO 'users.csv'", "runs SELECT and EXPLAIN, not COPY"),
        (" ", "takes one statement, and the query is empty"),
    ],
)
def test_a_query_that_cannot_be_run_is_one_line(backread, folder, query, says):
    done = backread("sql", folder, query)
    assert (done.code, done.out) == (2, "")
    assert says in done.line
    for internal in ("Error:", "unrestricted", "Mirror.sql", "LINE"):
        assert internal not in done.line


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_ctrl_c_ends_a_long_query(folder):
    long = "SELECT count(*) FROM range(100000000000) a, range(10) b WHERE a.range < b.range"
    with subprocess.Popen(
        [*COMMAND, "sql", str(folder), long], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            # The imports take half a second of the processor: by then the query is running.
            wait_for(lambda: seconds_used(process.pid) > 2, process)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert (process.returncode, error) == (130, "backread: stopped by Ctrl-C\n")


def seconds_used(pid: int) -> float:
    """The time of the processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_query_from_stdin_is_utf_8_whatever_the_locale(folder):
    def asked(query: bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*COMMAND, "sql", str(folder), "-"],
            input=query,
            env=os.environ | {"PYTHONIOENCODING": "iso-8859-1"},
            capture_output=True,
            timeout=SECONDS,
        )

    done = asked("SELECT 'Müller → 你好'\nAS name;\n".encode("utf-8-sig"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout) == {"name": "Müller → 你好"}
    done = asked("SELECT 'Müller'".encode("iso-8859-1"))
    assert done.returncode == 2
    assert done.stderr == b"backread: the query has bytes that are not UTF-8 text\n"


def test_tables_have_rows_sizes_and_what_they_are(backread, folder):
    head, *lines = backread("tables", folder, "--format", "table").out.splitlines()
    assert head.split() == ["table", "rows", "size", "about"]
    names = [line.split()[0] for line in lines]
    assert names == ["users", "messages", "conversations", "lists", "files", "rejects", "runs"]
    assert lines[1].split()[1] == "3"
    assert lines[2].endswith("one row per user: counts, times, first response")
