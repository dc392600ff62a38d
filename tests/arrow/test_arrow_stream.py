"""Arrow streams of listings and pages: their columns, what is asked of them, how they fail."""

import dataclasses
import json
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from backread import IncompleteError, Message, Page, PermissionDeniedError, User
from helpers.api_rows import envelope, paged, user, users
from helpers.arrow_consumers import load
from helpers.scripted_server import Request, answer

HALF = [answer(200, envelope(users(99), total=150)), answer(403, b"no more")]


@pytest.fixture(params=["listing", "page"])
def source(request: pytest.FixtureRequest, backread_client: Any) -> Any:
    people = backread_client.users
    return people.list() if request.param == "listing" else people.page(limit=50)


def convert(listing: Any, method: str) -> Any:
    """The method of the listing, or a skip where its package is not installed."""
    load(method.removeprefix("to_").replace("arrow", "pyarrow"))
    return getattr(listing, method)


def test_repeats_are_left_out_and_many_pages_make_few_batches(face, scripted):
    rows = users(3_000)
    rows[1_000:1_000] = rows[900:950]
    table = pa.table(face.client(scripted(paged(rows))).users.list())
    assert table["id"].to_pylist() == list(range(1, 3_001))
    assert table["id"].num_chunks <= 2


@pytest.mark.parametrize("method", ["to_arrow", "to_polars", "to_pandas"])
def test_a_conversion_gives_all_rows_or_raises_the_errors_of_backread(each_face, scripted, method):
    whole = each_face.client(scripted(paged(users(150)))).users.list()
    frame = each_face.call(convert(whole, method))
    assert list(map(int, frame["id"])) == list(range(1, 151))
    client = each_face.client(scripted(*HALF), max_retries=0)
    with pytest.raises(PermissionDeniedError, match="offset=96") as caught:
        each_face.call(convert(client.users.list(), method))
    assert caught.value.body == b"no more"
    # Whatever the offset is, the same page comes.
    client = each_face.client(scripted(lambda request: HALF[0]))
    with pytest.raises(IncompleteError) as uncertified:
        each_face.call(convert(client.users.list(strict=True), method))
    assert uncertified.value.report.distinct == 99


def test_a_conversion_works_in_any_thread_and_where_none_can_be_started(scripted, monkeypatch):
    """As in a pool's last tasks while CPython 3.12 ends, or by the limit of a batch system."""
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "backread-arrow":
            raise RuntimeError("can't start new thread")
        start(thread)

    failing = scripted(*HALF).client(max_retries=0)
    with scripted(paged(users(150))).client() as client, failing, ThreadPoolExecutor(1) as pool:
        assert len(pool.submit(client.users.list().to_arrow).result()) == 150
        with pytest.raises(PermissionDeniedError, match="offset=96"):
            pool.submit(failing.users.list().to_arrow).result()
        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert len(pool.submit(client.users.list().to_arrow).result()) == 150


def test_a_conversion_that_fails_far_into_a_list_raises_the_errors_of_backread(scripted):
    """Past the part that is read ahead, a library knows an error by its text only."""
    pages = paged([user(number, name="n" * 200_000) for number in range(1, 1_000)])

    def service(request: Request) -> bytes:
        return HALF[1] if int(request.query["offset"]) >= 390 else pages(request)

    client = scripted(service).client(max_retries=0, max_concurrency=1)
    with client, pytest.raises(PermissionDeniedError) as caught:
        client.users.list().to_arrow()
    assert caught.value.body == b"no more"


def test_a_requested_schema_converts_what_fits_and_loses_nothing(source):
    plain = pa.table(source)

    def requested(name: str, kind: Any) -> Any:
        place = plain.schema.get_field_index(name)
        return plain.schema.set(place, plain.schema.field(name).with_type(kind))

    wide = pa.table(source, schema=requested("name", pa.large_string()))
    assert wide["name"].type == pa.large_string()
    assert wide["name"].to_pylist() == plain["name"].to_pylist()
    for name, kind in (("id", pa.int8()), ("name", pa.int64()), ("created_at", pa.timestamp("s"))):
        with pytest.raises(pa.ArrowInvalid):
            pa.table(source, schema=requested(name, kind))
    # Columns are told apart by their names, whatever order is requested.
    renamed = {"name": "email", "email": "name", "extra": "other"}
    fields = [field.with_name(renamed.get(field.name, field.name)) for field in plain.schema]
    reader = pa.RecordBatchReader.from_stream(source, schema=pa.schema(fields))
    assert reader.read_all()["email"].to_pylist() == plain["email"].to_pylist()


@pytest.mark.parametrize("resource", ["users", "messages"])
@pytest.mark.backread(
    world={"seed": 5, "users": 40, "messages_per_user": (20, 40)},
    dialect="extra_fields=some sender_type=others nulls=both",
)
def test_pages_have_the_columns_of_their_listing(face, backread_mock, resource):
    client = face.client(backread_mock)
    source, whose = (client.users, ()) if resource == "users" else (client.messages, (42,))
    table = pa.table(source.list(*whose))
    page = face.call(source.page, *whose)
    for same in (page, face.pages(source.list(*whose))[0], Page(99, 0, None, page.items)):
        assert pa.table(same).equals(table)
        assert same.to_arrow().equals(table)
    # Empty ones know of what they are a page.
    past = face.call(source.page, *whose, 1_000)
    assert (len(past), past.resource) == (0, resource)
    for empty in (past, pickle.loads(pickle.dumps(past)), Page(9, 0, 0, (), resource)):
        assert pa.table(empty).equals(table.slice(0, 0))
    assert pa.table(source.list(*whose, max_items=0)).equals(table.slice(0, 0))


def test_a_page_without_models_has_no_columns(face, backread_mock):
    page = face.pages(face.client(backread_mock).users.list(as_dict=True))[0]
    with pytest.raises(TypeError, match=r"a page of dict .*as_dict=True"):
        pa.table(page)
    with pytest.raises(ValueError, match="resource='users'"):
        pa.table(Page(9, 0, 0, ()))


FITS = User(1, *[None] * 8)


@pytest.mark.parametrize(
    ("changes", "error", "problem"),
    [
        ({"name": 5}, TypeError, "name: "),
        ({"name": "\ud800"}, ValueError, "name: "),
        ({"id": 2**63}, ValueError, "id: "),
        ({"id": None}, ValueError, "id: "),
        ({"created_at": datetime(2024, 1, 1)}, TypeError, "created_at: .*naive"),  # noqa: DTZ001
        ({"extra": {"a": {1}}}, TypeError, "extra: a set cannot be written"),
        ({"extra": {"a": float("nan")}}, ValueError, "extra: nan cannot be written"),
        ({"extra": {1: 2}}, TypeError, "extra: .*str"),
    ],
)
def test_a_model_made_by_hand_that_fits_no_column_is_named(changes, error, problem):
    page = Page(9, 0, 2, (FITS, dataclasses.replace(FITS, **changes)))
    with pytest.raises(error, match=rf"items\[1\]: {problem}"):
        pa.table(page)
    with pytest.raises(TypeError, match=r"items\[1\]: expected a User, got a Message"):
        pa.table(Page(9, 0, 2, (FITS, Message(1, *[None] * 8, 42))))


def test_numbers_of_extra_stay_what_they_are():
    extra = {"big": 2**90, "whole": 1e16, "minus": -0.0, "far": -1e300, "t": (True, 1, None)}
    table = pa.table(Page(9, 0, 1, (dataclasses.replace(FITS, extra=extra),)))
    read = json.loads(table["extra"][0].as_py())
    assert repr(read) == repr({**extra, "t": [True, 1, None]})


def test_a_package_that_is_not_there_is_named(each_face, backread_mock, monkeypatch):
    load("pandas")
    listing = each_face.client(backread_mock).users.list()
    for method, package in (
        ("to_polars", "polars"),
        ("to_arrow", "pyarrow"),
        ("to_pandas", "pyarrow"),
        ("to_pandas", "pandas"),
    ):
        for source in (Page(9, 0, 0, (), "users"), listing):
            with monkeypatch.context() as context:
                context.setitem(sys.modules, package, None)
                with pytest.raises(ImportError, match=f"pip install {package}"):
                    each_face.call(getattr(source, method))
    assert backread_mock.calls().count == 0
