"""docs/how-to/warehouses.md: its program, against PostgreSQL and Iceberg."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dlt
import psycopg2
import pytest

from backread import Mirror
from backread.testing import MockServer, World
from helpers.doc_pages import ROOT, Document, enter

PAGE = Document(ROOT / "docs/how-to/warehouses.md")
[PROGRAM] = [block for block in PAGE.blocks if block.kind == "warehouses"]
[DELETING] = [block for block in PAGE.blocks if "def delete_forgotten" in block.code]

Query = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MockServer]:
    """A service, whose settings are in the environment; dlt keeps its files in the same folder."""
    with MockServer(World(seed=7, users=120, messages_per_user=(0, 30))) as running:
        enter(tmp_path, monkeypatch, running)
        for name, value in {
            "DLT_DATA_DIR": str(tmp_path / "dlt"),
            "DLT_PROJECT_DIR": str(tmp_path),
            "RUNTIME__DLTHUB_TELEMETRY": "false",
            "LOAD__TRUNCATE_STAGING_DATASET": "true",
            "LOAD__DELETE_COMPLETED_JOBS": "true",
        }.items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def query(database: Path, server: MockServer, monkeypatch: pytest.MonkeyPatch) -> Query:
    """A query over an empty warehouse."""
    name = "warehouse"
    place = {"host": str(database), "user": "backread"}
    connection = psycopg2.connect(**place, dbname="postgres")
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name}")
        cursor.execute(f"CREATE DATABASE {name}")
    connection.close()
    address = f"postgresql://backread:unused@localhost/{name}?host={database}"
    monkeypatch.setenv("DESTINATION__POSTGRES__CREDENTIALS", address)

    def run(statement: str) -> list[tuple[Any, ...]]:
        connection = psycopg2.connect(**place, dbname=name)
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return list(cursor.fetchall())
        finally:
            connection.close()

    return run


def run_program() -> None:
    PROGRAM.execute(PROGRAM.code)


def test_the_warehouse_follows_the_mirror(server, query):
    world = server.world
    first, second, third = [each for each in world.user_ids() if world.message_ids(each)][:3]
    run_program()
    assert loaded(query) == published()
    world.add_messages(first, 3)
    world.edit_user(second, name="NUL \x00 inside")
    world.edit_message(third, world.message_ids(third)[0], body="=1+1 \u2028 '\"\\ é")
    removed = world.message_ids(third)[0]
    run_program()
    assert loaded(query) == published()
    assert query(f"SELECT name FROM chats.users WHERE id = {second}") == [("NUL  inside",)]
    # The second load had what changed, and nothing else.
    changed = query("SELECT id FROM chats.users WHERE change = 'changed'")
    assert {user_id for (user_id,) in changed} <= {first, second, third}
    assert query(f"SELECT change FROM chats.messages WHERE id = {removed}") == [("changed",)]
    attributes = "SELECT json_array_length(user_attributes::json) FROM chats.users"
    assert all(count >= 0 for (count,) in query(attributes) if count is not None)
    assert query("SELECT count(*) FROM chats_staging.messages") == [(0,)]
    # And one without changes changes nothing.
    before = loaded(query)
    run_program()
    assert loaded(query) == before


@pytest.mark.long
def test_a_failed_load_is_repeated(server, query, monkeypatch):
    run_program()
    server.world.add_messages(server.world.user_ids()[0], 5)
    with monkeypatch.context() as patch:
        patch.setenv(
            "DESTINATION__POSTGRES__CREDENTIALS", "postgresql://no:no@localhost/no?host=/nowhere"
        )
        with pytest.raises(Exception, match="nowhere"):
            run_program()
    run_program()
    # The pending load comes first; what changed meanwhile comes with the next one.
    run_program()
    assert loaded(query) == published()


def test_people_who_are_forgotten_leave_the_warehouse(server, query):
    world = server.world
    user_id = next(each for each in world.user_ids() if world.message_ids(each))
    run_program()
    Mirror("chats").forget(user_id)
    run_program()
    assert query(f"SELECT count(*) FROM chats.messages WHERE user_id = {user_id}") == [(0,)]
    assert query(f"SELECT count(*) FROM chats.users WHERE id = {user_id}") == [(0,)]
    assert query("SELECT user_id FROM chats.forgotten") == [(user_id,)]
    assert loaded(query) == published()


def test_iceberg(server, tmp_path, monkeypatch):
    place = f'dlt.destinations.filesystem("{(tmp_path / "lake").as_uri()}")'
    changes = {
        'destination="postgres"': f"destination={place}",
        "write_disposition=": 'table_format="iceberg", write_disposition=',
    }
    head = PROGRAM.code[: PROGRAM.code.index("with pipeline.sql_client()")]
    for before, after in changes.items():
        head = head.replace(before, after)
    code = f"{head}\n{DELETING.code}\ndelete_forgotten(pipeline, KEYS)\n"
    pipeline = None
    for turn in range(2):
        pipeline = PROGRAM.execute(code)["pipeline"]
        if turn == 0:
            server.world.add_messages(server.world.user_ids()[0], 2)
    assert isinstance(pipeline, dlt.Pipeline)
    from dlt.common.libs.pyiceberg import get_iceberg_tables

    tables = get_iceberg_tables(pipeline)
    rows = tables["messages"].scan().to_arrow().select(["user_id", "id", "body"]).to_pylist()
    held = {(row["user_id"], row["id"], row["body"]) for row in rows}
    assert held == set(Mirror("chats").sql("SELECT user_id, id, body FROM messages").fetchall())
    assert len(held) == len(rows)


def loaded(query: Query) -> tuple[list[Any], list[Any]]:
    """The users and messages in the warehouse."""
    return (
        sorted(query("SELECT id, name, email, created_at, deleted_at FROM chats.users")),
        sorted(query("SELECT user_id, id, body, created_at, sender_name FROM chats.messages")),
    )


def published() -> tuple[list[Any], list[Any]]:
    """The same of the mirror, as PostgreSQL holds them."""
    mirror = Mirror("chats")
    text = "replace({0}, chr(0), '')".format
    return (
        sorted(
            mirror.sql(
                f"SELECT id, {text('name')}, email, created_at, deleted_at FROM users"
            ).fetchall()
        ),
        sorted(
            mirror.sql(
                f"SELECT user_id, id, {text('body')}, created_at, sender_name FROM messages"
            ).fetchall()
        ),
    )
