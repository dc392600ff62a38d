"""Listings as Arrow streams: who takes them as they are, their columns, and how they fail."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from backread import DecodeError, IncompleteError, PermissionDeniedError
from helpers.api_rows import envelope, paged, user, users
from helpers.arrow_consumers import KINDS, PyArrow
from helpers.scripted_server import Request, answer

COLUMNS = {
    resource: {name: PyArrow.types[kind] for name, kind in kinds.items()}
    for resource, kinds in KINDS.items()
}


def columns(table: Any) -> dict[str, str]:
    return {field.name: str(field.type) for field in table.schema}


@pytest.fixture
def pyarrow() -> Any:
    return pytest.importorskip("pyarrow")


def test_a_table_of_users_has_all_rows_and_the_documented_columns(face, backread_server, pyarrow):
    world = backread_server.world
    listing = face.client(backread_server).users.list()
    table = pyarrow.table(listing)
    assert columns(table) == COLUMNS["users"]
    assert table["id"].to_pylist() == world.user_ids()
    sent = world.user(42)
    [row] = [row for row in table.to_pylist() if row["id"] == 42]
    assert row["user_attributes"] == [{**one, "extra": None} for one in sent["user_attributes"]]
    assert (row["name"], row["extra"]) == (sent["name"], None)
    assert row["created_at"] == datetime.fromisoformat(sent["created_at"])
    assert listing.report.distinct == table.num_rows
    assert listing.report.ended_at is not None


def test_a_table_of_messages_has_all_rows_and_the_documented_columns(
    face, backread_server, pyarrow
):
    world = backread_server.world
    table = face.call(face.client(backread_server).messages.all().to_arrow)
    assert columns(table) == COLUMNS["messages"]
    assert table.num_rows == world.total_messages
    for row in table.slice(0, 50).to_pylist():
        sent = world.message(row["user_id"], row["id"])
        assert (row["body"], row["sender_type"]) == (sent["body"], sent["sender_type"])
        assert row["sender_forename"] == sent["sender"].get("forename")


def test_an_empty_list_still_has_its_columns(face, scripted, pyarrow):
    client = face.client(scripted(lambda request: answer(200, envelope([], key="messages"))))
    table = pyarrow.table(client.messages.list(42))
    assert (table.num_rows, columns(table)) == (0, COLUMNS["messages"])


def test_repeats_are_left_out_and_many_pages_make_few_batches(face, scripted, pyarrow):
    rows = users(3_000)
    rows[1_000:1_000] = rows[900:950]
    table = pyarrow.table(face.client(scripted(paged(rows))).users.list())
    assert table["id"].to_pylist() == list(range(1, 3_001))
    assert table["id"].num_chunks <= 2


@pytest.mark.parametrize("method", ["to_arrow", "to_polars", "to_pandas"])
def test_to_arrow_polars_and_pandas_give_all_rows(each_face, backread_server, method):
    pytest.importorskip("pyarrow")
    pytest.importorskip(method.removeprefix("to_").replace("arrow", "pyarrow"))
    world, client = backread_server.world, each_face.client(backread_server)
    frame = each_face.call(getattr(client.users.list(), method))
    assert list(map(int, frame["id"])) == world.user_ids()
    assert len(each_face.call(getattr(client.messages.all(), method))) == world.total_messages


def test_duckdb_can_leave_a_stream_half_read(face, scripted):
    duckdb = pytest.importorskip("duckdb")
    server = scripted(paged(users(50_000)))
    people = face.client(server).users.list()
    with duckdb.connect() as connection:
        connection.register("people", people)
        assert len(connection.sql("select id from people limit 3").fetchall()) == 3
    assert len(server.requests) < 506


def test_max_items_and_page_size_hold_in_a_stream(face, scripted, pyarrow):
    server = scripted(paged(users(100)))
    listing = face.client(server).users.list(max_items=25, page_size=10)
    assert pyarrow.table(listing)["id"].to_pylist() == list(range(1, 26))
    # The third page shares two rows with the second, as that did with the first.
    assert [one.query["limit"] for one in server.requests] == ["10", "10", "9"]
    assert "max_items=25" in listing.report.reason


@pytest.mark.parametrize("method", ["to_arrow", "to_polars", "to_pandas"])
def test_a_conversion_that_fails_raises_the_errors_of_backread(each_face, scripted, method):
    pytest.importorskip(method.removeprefix("to_").replace("arrow", "pyarrow"))
    pytest.importorskip("pyarrow")
    page = answer(200, envelope(users(99), total=150))
    client = each_face.client(scripted(page, answer(403, b"no more")), max_retries=0)
    with pytest.raises(PermissionDeniedError) as caught:
        each_face.call(getattr(client.users.list(), method))
    assert caught.value.body == b"no more"
    assert "offset=96" in str(caught.value)
    client = each_face.client(scripted(answer(200, b"[]")))
    with pytest.raises(DecodeError) as odd:
        each_face.call(getattr(client.users.list(), method))
    assert odd.value.path == "$"
    # Whatever the offset is, the same page comes.
    client = each_face.client(scripted(lambda request: answer(200, envelope(users(99), total=150))))
    with pytest.raises(IncompleteError) as uncertified:
        each_face.call(getattr(client.users.list(strict=True), method))
    assert uncertified.value.report.distinct == 99


@pytest.mark.parametrize("method", ["to_arrow", "to_polars", "to_pandas"])
def test_a_conversion_in_any_thread_gives_all_rows_or_raises_the_errors_of_backread(
    scripted, method
):
    pytest.importorskip(method.removeprefix("to_").replace("arrow", "pyarrow"))
    pytest.importorskip("pyarrow")
    page = answer(200, envelope(users(99), total=150))
    whole = scripted(paged(users(150))).client()
    failing = scripted(page, answer(403, b"no more")).client(max_retries=0)
    with whole, failing, ThreadPoolExecutor(1) as pool:
        frame = pool.submit(getattr(whole.users.list(), method)).result()
        assert list(map(int, frame["id"])) == list(range(1, 151))
        with pytest.raises(PermissionDeniedError) as caught:
            pool.submit(getattr(failing.users.list(), method)).result()
    assert caught.value.body == b"no more"


def test_a_conversion_works_where_no_thread_can_be_started(scripted, monkeypatch):
    """As in a pool's last tasks while CPython 3.12 ends."""
    pytest.importorskip("pyarrow")
    client = scripted(paged(users(150))).client()
    with client, ThreadPoolExecutor(1) as pool:
        pool.submit(len, "").result()

        start = threading.Thread.start

        def refuse(thread: threading.Thread) -> None:
            if thread.name == "backread-arrow":
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert pool.submit(client.users.list().to_arrow).result().num_rows == 150


def test_a_conversion_that_fails_far_into_a_list_raises_the_errors_of_backread(scripted):
    """Past the part that is read ahead, a library knows an error by its text only."""
    pytest.importorskip("pyarrow")
    pages = paged([user(number, name="n" * 200_000) for number in range(1, 1_000)])

    def service(request: Request) -> bytes:
        return answer(403, b"no more") if int(request.query["offset"]) >= 390 else pages(request)

    with (
        scripted(service).client(max_retries=0, max_concurrency=1) as client,
        pytest.raises(PermissionDeniedError) as caught,
    ):
        client.users.list().to_arrow()
    assert caught.value.body == b"no more"
