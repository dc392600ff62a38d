"""What a query over the mirror may do: read the snapshot, and nothing else unless allowed."""

import re
import tomllib
from pathlib import Path

import duckdb
import pytest

from backread import Mirror
from backread.errors import MirrorError
from backread.testing import MockServer, World
from helpers.mirrors import rows, sync
from helpers.python_process import check_silent, run

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    mirror = Mirror(tmp_path_factory.mktemp("a 'quoted' folder") / "chats")
    with MockServer(World(users=20, messages_per_user=(1, 4))) as server:
        sync(mirror, server)
    return mirror


@pytest.mark.parametrize(
    "query",
    [
        "WITH chosen AS (FROM users) FROM chosen;",
        "VALUES (1)",
        "SUMMARIZE users",
        "SHOW TABLES",
        "EXPLAIN ANALYZE SELECT count(*) FROM messages",
        "explain (FORMAT json) FROM conversations",
        "PIVOT messages ON sender_type IN ('user', 'operator') USING count(*)",
        "SELECT created_at AT TIME ZONE 'Europe/Berlin' FROM users",
        "-- a comment\nFROM lists",
        "FROM repeat('x', 2), generate_series(1, 2), json_each('[1]')",
        "SELECT id, part FROM users, unnest([1, 2]) AS parts(part)",
        "FROM query_table('users')",
        "SELECT function_name FROM DuckDB_functions() LIMIT 1",
        # Words that would write are only words in a text.
        """SELECT 'WITH x AS (COPY' AS copy, '"type":"COPY_QUERY_NODE"'""",
        """SELECT 'query(', '"type":"TABLE_FUNCTION","function_name":"query"'""",
    ],
)
def test_what_reads_the_snapshot_is_run(mirror, query):
    assert rows(mirror, query)


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("COPY users TO '{published}/users.parquet'", "not COPY"),
        ("ATTACH 'other.db'", "not ATTACH"),
        ("DROP VIEW users", "not DROP"),
        ("CREATE OR REPLACE VIEW users AS SELECT 1", "not CREATE"),
        ("INSTALL httpfs", "not LOAD"),
        ("SET threads = 1", "not SET"),
        ("PRAGMA database_list", "not PRAGMA"),
        ("CALL pragma_version()", "not CALL"),
        ("EXPORT DATABASE 'here'", "not EXPORT"),
        ("PREPARE later AS FROM users", "not PREPARE"),
        ("EXPLAIN ANALYZE COPY users TO 'users.csv'", "not COPY"),
        (
            "/*EXPLAIN (*/ EXPLAIN ANALYZE DROP VIEW users --)\n-- */ SELECT 1",
            "EXPLAIN without a comment",
        ),
        ("EXPLAIN /*) SELECT 1 --*/ ANALYZE DROP VIEW users", "EXPLAIN without a comment"),
        ("SELECT 1; DROP VIEW users", "not 2"),
        ("-- nothing", "the query is empty"),
        ("PIVOT messages ON sender_type USING count(*)", "PIVOT only with a list of columns"),
        ("WITH x AS (INSERT INTO users VALUES (1) RETURNING *) FROM x", "not INSERT"),
        ("WITH x AS (UPDATE users SET id = 1 RETURNING *) FROM x", "not UPDATE"),
        ("WITH x AS (DELETE FROM users RETURNING *) FROM x", "not DELETE"),
    ],
)
def test_any_other_statement_is_refused_and_nothing_is_done(
    mirror, tmp_path, monkeypatch, query, what
):
    monkeypatch.chdir(tmp_path)
    published = mirror.folder / "published"
    before = sorted(path.name for path in published.iterdir())
    with pytest.raises(MirrorError, match=what) as caught:
        mirror.sql(query.replace("{published}", str(published).replace("'", "''")))
    assert "unrestricted=True" in str(caught.value)
    assert not list(tmp_path.iterdir())
    assert sorted(path.name for path in published.iterdir()) == before
    assert len(rows(mirror, "FROM users")) == 20


@pytest.mark.parametrize(
    "query",
    [
        "WITH made AS (COPY (SELECT 1 AS id) TO '{file}') FROM made",
        "EXPLAIN ANALYZE WITH made AS (COPY (SELECT 1 AS id) TO '{file}') SELECT 1",
        "SELECT * FROM (WITH made AS (COPY (SELECT 1 AS id) TO '{file}') FROM made)",
        "SUMMARIZE WITH made AS (COPY (SELECT 1 AS id) TO '{file}') FROM made",
        "/* SELECT */ WITH one AS (SELECT 1), made AS (COPY (FROM one) TO '{file}') VALUES (1)",
    ],
)
def test_a_select_with_a_part_that_writes_is_refused(mirror, query):
    """DuckDB calls it a SELECT, and lets it write where it may read: into the snapshot."""
    [users] = mirror.folder.glob("published/0*/users/*.parquet")
    for file in (users, users.with_name("forged.parquet")):
        before = users.read_bytes()
        with pytest.raises(MirrorError, match="runs SELECT and EXPLAIN, not COPY"):
            mirror.sql(query.replace("{file}", str(file).replace("'", "''"))).fetchall()
        assert users.read_bytes() == before
    assert [users] == [*users.parent.iterdir()]


COPYING = "WITH made AS (COPY (SELECT 1 AS id) TO '{file}' (USE_TMP_FILE false)) FROM made"


def in_sql(text: str) -> str:
    return text.replace("'", "''")


QUERY = "query('{copying}')"


@pytest.mark.parametrize(
    ("query", "call"),
    [
        ("FROM {call}", "json_execute_serialized_sql(json_serialize_sql('{copying}'))"),
        (
            "FROM {call}",
            "main.json_execute_serialized_sql(json_serialize_sql(concat('{copying}')))",
        ),
        ("FROM {call}", "\"JSON_execute_serialized_SQL\"(json_serialize_sql('{copying}'))"),
        ("FROM {call}", "system.main.\"QUERY\"('{copying}')"),
        ("DESCRIBE FROM {call}", QUERY),
        ("SUMMARIZE FROM {call}", QUERY),
        ("EXPLAIN ANALYZE FROM {call}", QUERY),
        ("SELECT (SELECT count(*) FROM {call})", QUERY),
        ("WITH text AS MATERIALIZED (FROM {call}) SELECT 1 FROM text", QUERY),
        ("FROM range(2) AS one, LATERAL (FROM {call})", QUERY),
        ("PIVOT (FROM {call}) ON id IN (1)", QUERY),
        ("SELECT 1 ORDER BY (SELECT 1 FROM {call})", QUERY),
    ],
)
def test_a_table_function_that_runs_a_text_is_refused(mirror, query, call):
    """The text may be a statement that writes into the snapshot."""
    [users] = mirror.folder.glob("published/0*/users/*.parquet")
    before = users.read_bytes()
    copying = COPYING.replace("{file}", in_sql(str(users)))
    call = call.replace("{copying}", in_sql(copying))
    with pytest.raises(MirrorError, match="calls only table functions that read, not"):
        mirror.sql(query.replace("{call}", call)).fetchall()
    assert users.read_bytes() == before


@pytest.mark.parametrize(
    "query",
    [
        "PRAGMA json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
        "FROM enable_logging(storage = 'file', storage_path = '.')",
        "FROM checkpoint()",
        "FROM truncate_duckdb_logs()",
    ],
)
def test_functions_that_do_more_than_read_are_refused(mirror, query):
    with pytest.raises(MirrorError):
        mirror.sql(query).fetchall()


@pytest.mark.parametrize(
    "query",
    [
        "FROM read_csv('{file}')",
        "FROM '{file}'",
        "FROM glob('{file}')",
        "FROM read_text('{published}/../../secret.csv')",
        "FROM read_csv('https://127.0.0.1:9/secret.csv')",
        "EXPLAIN ANALYZE FROM read_csv('{file}')",
    ],
)
def test_no_other_file_is_read_unless_that_is_allowed(mirror, query):
    file = mirror.folder.parent / "secret.csv"
    file.write_text("value\na secret\n")
    published = mirror.folder / "published"
    for name, path in (("file", file), ("published", published)):
        query = query.replace(f"{{{name}}}", str(path).replace("'", "''"))
    with pytest.raises(duckdb.Error) as caught:
        mirror.sql(query).fetchall()
    assert "unrestricted=True" in "".join(caught.value.__notes__)
    if query.startswith("FROM read_csv") and "https" not in query:
        assert mirror.sql(query, unrestricted=True).fetchall() == [("a secret",)]


def test_a_relation_is_written_to_a_file_only_where_that_is_allowed(mirror, tmp_path):
    file = tmp_path / "users.parquet"
    with pytest.raises(duckdb.Error):
        mirror.sql("FROM users").write_parquet(str(file))
    assert not file.exists()
    mirror.sql("FROM users", unrestricted=True).write_parquet(str(file))
    assert duckdb.read_parquet(str(file)).count("*").fetchall() == [(20,)]


@pytest.mark.parametrize(
    ("where", "params"),
    [("id = ?", [7]), ("id = $user", {"user": 7}), ("id = 7", None)],
)
def test_values_go_in_as_parameters(mirror, where, params):
    some = rows(mirror, "SELECT id FROM users ORDER BY id LIMIT 1")[0][0]
    values = {"user": some} if isinstance(params, dict) else [some]
    found = mirror.sql(
        f"SELECT id FROM users WHERE {where.replace('7', str(some))}",
        None if params is None else values,
    )
    assert found.fetchall() == [(some,)]


def test_times_are_fetched_with_any_extra_where_the_system_has_no_time_zones(
    mirror, backread_server
):
    """As on Windows or a distroless image, where Python's zoneinfo takes the package tzdata."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [
        {re.split("[^a-z]", each)[0] for each in extra}
        for extra in project["optional-dependencies"].values()
    ]
    installed = set.intersection(*(each for each in extras if "duckdb" in each))
    missing = {"pytz", "tzdata"} - installed
    code = f"""
        import sys
        sys.modules |= dict.fromkeys({sorted(missing)})
        from backread import Mirror
        [(newest,)] = Mirror({str(mirror.folder)!r}).sql(
            "select max(created_at) from messages").fetchall()
        print(newest.tzinfo)
    """
    done = run(code, backread_server, PYTHONTZPATH="")
    check_silent(done, "UTC")


def test_a_query_that_does_not_fit_into_memory_still_runs(mirror, tmp_path, monkeypatch):
    """DuckDB's own temporary files are no files that a query reads."""
    monkeypatch.chdir(tmp_path)
    query = "SELECT count(DISTINCT md5(range::varchar)) FROM range(200_000)"
    assert rows(mirror, query) == [(200_000,)]
