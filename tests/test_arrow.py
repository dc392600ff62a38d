"""Listings as Arrow streams: who takes them as they are, their columns, and how they fail."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from backread import DecodeError, IncompleteError, PermissionDeniedError
from canned import envelope, message, paged, user, users
from scripted_server import answer

COLUMNS = {
    "users": {
        "id": "int64",
        "name": "string",
        "email": "string",
        "reference": "string",
        "created_at": "timestamp[us, tz=UTC]",
        "updated_at": "timestamp[us, tz=UTC]",
        "online_at": "timestamp[us, tz=UTC]",
        "last_url": "string",
        "user_attributes": "list<item: struct<name: string, value: string, extra: string>>",
        "extra": "string",
    },
    "messages": {
        "user_id": "int64",
        "id": "int64",
        "body": "string",
        "read_by_user": "bool",
        "read_by_operator": "bool",
        "created_at": "timestamp[us, tz=UTC]",
        "file_url": "string",
        "auto_invitation": "bool",
        "sender_type": "dictionary<values=string, indices=int32, ordered=0>",
        "sender_id": "int64",
        "sender_name": "string",
        "sender_email": "string",
        "sender_forename": "string",
        "sender_surname": "string",
        "sender_picture_thumb_url": "string",
        "sender_extra": "string",
        "extra": "string",
    },
}


def columns(table: Any) -> dict[str, str]:
    return {field.name: str(field.type) for field in table.schema}


@pytest.fixture
def pyarrow() -> Any:
    return pytest.importorskip("pyarrow")


def test_a_table_of_users_has_all_rows_and_the_documented_columns(
    face: Any, backread_server: Any, pyarrow: Any
) -> None:
    world = backread_server.world
    listing = face.client(backread_server).users.list()
    table = pyarrow.table(listing)
    assert columns(table) == COLUMNS["users"]
    rows = table.to_pylist()
    assert [row["id"] for row in rows] == world.user_ids()
    for row in rows[:20]:
        sent = world.user(row["id"])
        for name in ("name", "email", "reference", "last_url"):
            assert row[name] == sent[name]
        assert row["created_at"] == datetime.fromisoformat(sent["created_at"])
        assert row["user_attributes"] == [{**one, "extra": None} for one in sent["user_attributes"]]
        assert row["extra"] is None
    assert listing.report.distinct == len(rows)
    assert listing.report.ended_at is not None


def test_a_table_of_messages_has_all_rows_and_the_documented_columns(
    face: Any, backread_server: Any, pyarrow: Any
) -> None:
    world = backread_server.world
    table = face.call(face.client(backread_server).messages.all().to_arrow)
    assert columns(table) == COLUMNS["messages"]
    assert table.num_rows == world.total_messages
    for row in table.slice(0, 50).to_pylist():
        sent = world.message(row["user_id"], row["id"])
        for name in ("body", "read_by_user", "file_url", "auto_invitation", "sender_type"):
            assert row[name] == sent[name]
        for name in ("id", "name", "email", "forename", "surname", "picture_thumb_url"):
            assert row[f"sender_{name}"] == sent["sender"].get(name)


def test_an_empty_list_still_has_its_columns(face: Any, scripted: Any, pyarrow: Any) -> None:
    client = face.client(scripted(lambda request: answer(200, envelope([], key="messages"))))
    table = pyarrow.table(client.messages.list(42))
    assert (table.num_rows, columns(table)) == (0, COLUMNS["messages"])


def test_nulls_and_unknown_fields_have_their_columns(
    face: Any, scripted: Any, pyarrow: Any
) -> None:
    odd = {"vip": True, "big": 2**70, "name": "x"}
    rows = [user(1, vip=True, big=2**70), {"id": 2}, user(3, user_attributes=[{"unit": "m"}])]
    table = pyarrow.table(face.client(scripted(paged(rows))).users.list()).to_pylist()
    assert json.loads(table[0]["extra"]) == {"vip": True, "big": 2**70}
    assert {name for name, value in table[1].items() if value is not None} == {"id"}
    (attribute,) = table[2]["user_attributes"]
    assert json.loads(attribute["extra"]) == {"unit": "m"}
    bot = message(7, sender_type="bot", sender={"id": 9, **odd}, vip=True)
    nobody = {"id": 8}
    server = scripted(paged([bot, nobody], key="messages"))
    first, second = pyarrow.table(face.client(server).messages.list(42)).to_pylist()
    assert (first["user_id"], first["sender_type"], first["sender_id"]) == (42, "bot", 9)
    assert json.loads(first["sender_extra"]) == odd
    assert json.loads(first["extra"]) == {"vip": True}
    assert {name for name, value in second.items() if value is not None} == {"user_id", "id"}


def test_repeats_are_left_out_and_many_pages_make_few_batches(
    face: Any, scripted: Any, pyarrow: Any
) -> None:
    rows = users(3_000)
    rows[1_000:1_000] = rows[900:950]
    table = pyarrow.table(face.client(scripted(paged(rows))).users.list())
    assert table["id"].to_pylist() == list(range(1, 3_001))
    assert table["id"].num_chunks <= 2


def test_each_stream_is_a_fresh_walk(face: Any, scripted: Any, pyarrow: Any) -> None:
    server = scripted(paged(users(5)))
    listing = face.client(server).users.list()
    assert pyarrow.table(listing).equals(pyarrow.table(listing))
    assert len(server.requests) == 2


def test_polars_takes_a_listing_as_it_is(face: Any, backread_server: Any) -> None:
    polars = pytest.importorskip("polars")
    world, client = backread_server.world, face.client(backread_server)
    frame = polars.DataFrame(client.users.list())
    assert frame["id"].to_list() == world.user_ids()
    assert frame["created_at"].dtype == polars.Datetime("us", "UTC")
    assert polars.LazyFrame(client.users.list()).collect().equals(frame)
    assert face.call(client.users.list().to_polars).equals(frame)
    messages = polars.DataFrame(client.messages.all())
    assert messages.height == world.total_messages
    assert messages["sender_type"].cast(polars.String).unique().sort().to_list() == [
        "operator",
        "user",
    ]


def test_pandas_takes_a_listing(face: Any, backread_server: Any) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    world, client = backread_server.world, face.client(backread_server)
    frame = pandas.DataFrame.from_arrow(client.users.list())
    assert frame["id"].tolist() == world.user_ids()
    converted = face.call(client.users.list().to_pandas)
    assert converted["id"].tolist() == world.user_ids()
    assert converted["created_at"].iloc[0] == datetime.fromisoformat(
        world.user(world.user_ids()[0])["created_at"]
    )
    assert len(face.call(client.messages.all().to_pandas)) == world.total_messages


def test_duckdb_takes_a_listing_by_the_name_of_its_variable(
    face: Any, backread_server: Any
) -> None:
    duckdb = pytest.importorskip("duckdb")
    world, client = backread_server.world, face.client(backread_server)
    messages = client.messages.all()
    with duckdb.connect() as connection:
        assert connection.sql("select count(*), count(distinct id) from messages").fetchall() == [
            (world.total_messages, world.total_messages)
        ]
        assert messages.report.distinct == world.total_messages
        connection.register("people", client.users.list())
        for _ in range(2):
            [(count, first)] = connection.sql("select count(*), min(id) from people").fetchall()
            assert (count, first) == (world.total_users, 42)


def test_duckdb_can_leave_a_stream_half_read(face: Any, scripted: Any) -> None:
    duckdb = pytest.importorskip("duckdb")
    server = scripted(paged(users(50_000)))
    people = face.client(server).users.list()
    with duckdb.connect() as connection:
        connection.register("people", people)
        assert len(connection.sql("select id from people limit 3").fetchall()) == 3
    assert len(server.requests) < 506


def test_max_items_and_page_size_hold_in_a_stream(face: Any, scripted: Any, pyarrow: Any) -> None:
    server = scripted(paged(users(100)))
    listing = face.client(server).users.list(max_items=25, page_size=10)
    assert pyarrow.table(listing)["id"].to_pylist() == list(range(1, 26))
    # The third page shares two rows with the second, as that did with the first.
    assert [one.query["limit"] for one in server.requests] == ["10", "10", "9"]
    assert "max_items=25" in listing.report.reason


@pytest.mark.parametrize("method", ["to_arrow", "to_polars", "to_pandas"])
def test_a_conversion_that_fails_raises_the_errors_of_backread(
    face: Any, scripted: Any, method: str
) -> None:
    pytest.importorskip(method.removeprefix("to_").replace("arrow", "pyarrow"))
    pytest.importorskip("pyarrow")
    page = answer(200, envelope(users(99), total=150))
    client = face.client(scripted(page, answer(403, b"no more")), max_retries=0)
    with pytest.raises(PermissionDeniedError) as caught:
        face.call(getattr(client.users.list(), method))
    assert caught.value.body == b"no more"
    assert "offset=96" in str(caught.value)
    client = face.client(scripted(answer(200, b"[]")))
    with pytest.raises(DecodeError) as odd:
        face.call(getattr(client.users.list(), method))
    assert odd.value.path == "$"
    # Whatever the offset is, the same page comes.
    client = face.client(scripted(lambda request: answer(200, envelope(users(99), total=150))))
    with pytest.raises(IncompleteError) as uncertified:
        face.call(getattr(client.users.list(strict=True), method))
    assert uncertified.value.report.distinct == 99


def test_a_stream_that_fails_in_others_hands_is_an_error_and_no_short_table(
    face: Any, scripted: Any, pyarrow: Any
) -> None:
    page = answer(200, envelope(users(99), total=150))
    client = face.client(scripted(page, answer(403)), max_retries=0)
    with pytest.raises(Exception, match="offset=96"):
        pyarrow.table(client.users.list())


@pytest.mark.parametrize(
    ("method", "package"),
    [
        ("to_arrow", "pyarrow"),
        ("to_polars", "polars"),
        ("to_pandas", "pandas"),
        ("to_pandas", "pyarrow"),
    ],
)
def test_a_package_that_is_not_there_is_named(
    face: Any, scripted: Any, monkeypatch: pytest.MonkeyPatch, method: str, package: str
) -> None:
    if package == "pyarrow" and method == "to_pandas":
        pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, package, None)
    server = scripted(paged(users(3)))
    with pytest.raises(ImportError, match=f"pip install {package}"):
        face.call(getattr(face.client(server).users.list(), method))
    assert server.requests == []


def test_a_requested_schema_is_no_obstacle(face: Any, scripted: Any, pyarrow: Any) -> None:
    listing = face.client(scripted(paged(users(3)))).users.list()
    reader = pyarrow.RecordBatchReader.from_stream(listing)
    assert reader.read_all()["id"].to_pylist() == [1, 2, 3]


def test_timestamps_of_every_year_survive(face: Any, scripted: Any, pyarrow: Any) -> None:
    rows = [
        user(1, created_at="0001-01-01T00:00:00Z"),
        user(2, created_at="9999-12-30T22:00:00.999999Z"),
    ]
    table = pyarrow.table(face.client(scripted(paged(rows))).users.list())
    assert table["created_at"].to_pylist() == [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 30, 22, 0, 0, 999999, tzinfo=UTC),
    ]
