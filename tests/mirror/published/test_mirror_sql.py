"""What a query over the mirror may do: read the snapshot, and nothing else unless allowed."""

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
        "SUMMARIZE users",
        "SHOW TABLES",
        "EXPLAIN ANALYZE SELECT count(*) FROM messages",
        "PIVOT messages ON sender_type IN ('user', 'operator') USING count(*)",
        "SELECT created_at AT TIME ZONE 'Europe/Berlin' FROM users",
        "-- a comment\nFROM lists",
        "FROM repeat('x', 2), generate_series(1, 2), json_each('[1]'), query_table('users')",
        "SELECT id, part FROM users, unnest([1, 2]) AS parts(part)",
        # Words that would write are only words in a text.
        """SELECT 'WITH x AS (COPY' AS copy, 'query(', '"type":"COPY_QUERY_NODE"'""",
    ],
)
def test_what_reads_the_snapshot_is_run(mirror, query):
    assert rows(mirror, query)


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("COPY users TO '{published}/users.parquet'", "not COPY"),
        ("ATTACH 'other.db'", "not ATTACH"),
        ("CREATE OR REPLACE VIEW users AS SELECT 1", "not CREATE"),
        ("INSTALL httpfs", "not LOAD"),
        ("SET threads = 1", "not SET"),
        ("PRAGMA database_list", "not PRAGMA"),
        ("EXPORT DATABASE 'here'", "not EXPORT"),
        ("EXPLAIN ANALYZE COPY users TO 'users.csv'", "not COPY"),
        ("EXPLAIN /*) SELECT 1 --*/ ANALYZE DROP VIEW users", "EXPLAIN without a comment"),
        ("SELECT 1; DROP VIEW users", "not 2"),
        ("-- nothing", "the query is empty"),
        ("PIVOT messages ON sender_type USING count(*)", "PIVOT only with a list of columns"),
        ("WITH x AS (INSERT INTO users VALUES (1) RETURNING *) FROM x", "not INSERT"),
        ("WITH x AS (DELETE FROM users RETURNING *) FROM x", "not DELETE"),
    ],
)
def test_any_other_statement_is_refused_and_nothing_is_done(
    mirror, tmp_path, monkeypatch, query, what
):
    monkeypatch.chdir(tmp_path)
    published = mirror.folder / "published"
    before = sorted(path.name for path in published.iterdir())
    with pytest.raises(MirrorError, match=rf"{what}.*unrestricted=True"):
        mirror.sql(query.replace("{published}", in_sql(published)))
    assert not list(tmp_path.iterdir())
    assert sorted(path.name for path in published.iterdir()) == before
    assert len(rows(mirror, "FROM users")) == 20


def in_sql(text: object) -> str:
    return str(text).replace("'", "''")


COPY = "COPY (SELECT 1 AS id) TO '{file}' (USE_TMP_FILE false)"
QUERY = "query('{copying}')"
SERIALIZED = "json_execute_serialized_sql(json_serialize_sql('{copying}'))"


@pytest.mark.parametrize(
    "query",
    [
        f"WITH made AS ({COPY}) FROM made",
        f"EXPLAIN ANALYZE WITH made AS ({COPY}) SELECT 1",
        f"SELECT * FROM (WITH made AS ({COPY}) FROM made)",
        f"/* SELECT */ WITH one AS (SELECT 1), made AS ({COPY}) VALUES (1)",
        f"FROM {SERIALIZED}",
        f"FROM main.{SERIALIZED.replace('json_exec', 'JSON_exec')}",
        """FROM system.main."QUERY"('{copying}')""",
        f"SUMMARIZE FROM {QUERY}",
        f"EXPLAIN ANALYZE FROM {QUERY}",
        f"SELECT (SELECT count(*) FROM {QUERY})",
        f"WITH text AS MATERIALIZED (FROM {QUERY}) SELECT 1 FROM text",
        f"FROM range(2) AS one, LATERAL (FROM {QUERY})",
        f"PIVOT (FROM {QUERY}) ON id IN (1)",
        f"SELECT 1 ORDER BY (SELECT 1 FROM {QUERY})",
        "FROM enable_logging(storage = 'file', storage_path = '.')",
        "FROM checkpoint()",
    ],
)
def test_a_select_that_writes_or_runs_a_text_is_refused(mirror, query):
    """DuckDB calls it a SELECT, and lets it write where it may read: into the snapshot."""
    [users] = mirror.folder.glob("published/0*/users/*.parquet")
    before = users.read_bytes()
    for file in (users, users.with_name("forged.parquet")):
        copying = in_sql(f"WITH made AS ({COPY}) FROM made".replace("{file}", in_sql(file)))
        filled = query.replace("{copying}", copying).replace("{file}", in_sql(file))
        with pytest.raises(MirrorError, match=r"not COPY|calls only table functions that read"):
            mirror.sql(filled).fetchall()
    assert users.read_bytes() == before
    assert [users] == [*users.parent.iterdir()]


@pytest.mark.parametrize(
    "query",
    [
        "FROM read_csv('{file}')",
        "FROM '{file}'",
        "FROM glob('{file}')",
        "FROM read_text('{published}/../../secret.csv')",
        "FROM read_csv('https://127.0.0.1:9/secret.csv')",
    ],
)
def test_no_other_file_is_read_unless_that_is_allowed(mirror, query):
    file = mirror.folder.parent / "secret.csv"
    file.write_text("value\na secret\n")
    query = query.replace("{file}", in_sql(file))
    query = query.replace("{published}", in_sql(mirror.folder / "published"))
    with pytest.raises(duckdb.Error) as caught:
        mirror.sql(query).fetchall()
    assert "unrestricted=True" in "".join(caught.value.__notes__)
    reading = f"FROM read_csv('{in_sql(file)}')"
    assert mirror.sql(reading, unrestricted=True).fetchall() == [("a secret",)]


def test_a_relation_is_written_to_a_file_only_where_that_is_allowed(mirror, tmp_path):
    file = tmp_path / "users.parquet"
    with pytest.raises(duckdb.Error):
        mirror.sql("FROM users").write_parquet(str(file))
    assert not file.exists()
    mirror.sql("FROM users", unrestricted=True).write_parquet(str(file))
    assert duckdb.read_parquet(str(file)).count("*").fetchall() == [(20,)]


def test_values_go_in_as_parameters(mirror):
    [(one,)] = rows(mirror, "SELECT min(id) FROM users")
    for where, params in (("id = ?", [one]), ("id = $user", {"user": one})):
        found = mirror.sql(f"SELECT id FROM users WHERE {where}", params)
        assert found.fetchall() == [(one,)]


def test_times_are_fetched_with_any_extra_where_the_system_has_no_time_zones(
    mirror, backread_server
):
    """As on Windows or a distroless image: each extra with DuckDB has tzdata, and none has pytz."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra in map(str, project["optional-dependencies"].values()):
        assert ("tzdata" in extra, "pytz" in extra) == ("duckdb" in extra, False)
    code = f"""
        import sys
        sys.modules["pytz"] = None
        from backread import Mirror
        mirror = Mirror({str(mirror.folder)!r})
        [(newest,)] = mirror.sql("SELECT max(created_at) FROM messages").fetchall()
        print(newest.tzinfo)
    """
    check_silent(run(code, backread_server, PYTHONTZPATH=""), "UTC")


def test_a_query_that_does_not_fit_into_memory_still_runs(mirror, tmp_path, monkeypatch):
    """DuckDB's own temporary files are no files that a query reads."""
    monkeypatch.chdir(tmp_path)
    query = "SELECT count(DISTINCT md5(range::varchar)) FROM range(200_000)"
    assert rows(mirror, query) == [(200_000,)]
