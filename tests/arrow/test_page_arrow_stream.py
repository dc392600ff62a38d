"""Pages as Arrow streams: those of the service, pickled, and made by hand."""

import dataclasses
import json
import pickle
import sys
from datetime import datetime
from typing import Any

import pytest

from backread import Message, Page, User
from backread.testing import Lane
from helpers import arrow_consumers
from helpers.arrow_consumers import KINDS, TEXT, load

consumer = arrow_consumers.consumer

each_resource = pytest.mark.parametrize("resource", ["users", "messages"])


def pages_of(face: Any, lane: Lane, resource: str) -> dict[str, Page[Any]]:
    client = face.client(lane)
    if resource == "users":
        asked = face.call(client.users.page)
        walked = face.pages(client.users.list())[0]
    else:
        asked = face.call(client.messages.page, 42)
        walked = face.pages(client.messages.list(42))[0]
    return {
        "asked": asked,
        "walked": walked,
        "pickled": pickle.loads(pickle.dumps(asked)),
        "by hand": Page(99, 0, None, asked.items),
    }


@each_resource
@pytest.mark.backread(
    world={"seed": 5, "users": 40, "messages_per_user": (20, 40)},
)
def test_a_page_is_taken_as_it_is_and_again(face, backread_mock, consumer, resource):
    text = TEXT[resource]
    for page in pages_of(face, backread_mock, resource).values():
        expected = [(each.id, each.created_at, getattr(each, text)) for each in page]
        assert len(expected) > 5
        assert consumer.rows(page, text) == consumer.rows(page, text) == expected
        types = {name: consumer.types[kind] for name, kind in KINDS[resource].items()}
        assert consumer.schema(page) == types


@each_resource
@pytest.mark.backread(
    world={"seed": 5, "users": 40, "messages_per_user": (20, 40)},
    dialect="extra_fields=some sender_type=others nulls=both",
)
def test_the_columns_of_a_page_are_those_of_its_listing(face, backread_mock, resource):
    pyarrow = load("pyarrow")
    client = face.client(backread_mock)
    listing = client.users.list() if resource == "users" else client.messages.list(42)
    table = pyarrow.table(listing)
    for page in pages_of(face, backread_mock, resource).values():
        assert pyarrow.table(page).equals(table)
        assert page.to_arrow().equals(table)


def test_an_empty_page_knows_of_what_it_is_a_page(face, backread_mock):
    pyarrow = load("pyarrow")
    client = face.client(backread_mock)
    for resource, page, listing in (
        ("users", face.call(client.users.page, 1_000), client.users.list()),
        ("messages", face.call(client.messages.page, 42, 1_000), client.messages.list(42)),
    ):
        assert (len(page), page.resource) == (0, resource)
        for empty in (page, pickle.loads(pickle.dumps(page)), Page(9, 0, 0, (), resource)):
            table = pyarrow.table(empty)
            assert (table.num_rows, table.schema) == (0, pyarrow.schema(listing))
    with pytest.raises(ValueError, match="resource='users'"):
        pyarrow.table(Page(9, 0, 0, ()))


def test_a_page_of_dicts_has_no_columns(face, backread_mock):
    pyarrow = load("pyarrow")
    page = face.pages(face.client(backread_mock).users.list(as_dict=True))[0]
    with pytest.raises(TypeError, match=r"a page of dict .*as_dict=True"):
        pyarrow.table(page)


@pytest.mark.parametrize(
    ("changes", "error", "problem"),
    [
        ({"name": 5}, TypeError, r"items\[1\]: name: "),
        ({"name": "\ud800"}, ValueError, r"items\[1\]: name: "),
        ({"id": 2**63}, ValueError, r"items\[1\]: id: "),
        ({"id": None}, TypeError, r"items\[1\]: id: "),
        ({"created_at": datetime(2024, 1, 1)}, TypeError, r"items\[1\]: created_at: .*naive"),  # noqa: DTZ001
        ({"extra": {"a": {1}}}, TypeError, r"items\[1\]: extra: a set cannot be written"),
        ({"extra": {"a": float("nan")}}, ValueError, r"items\[1\]: extra: nan cannot be written"),
        ({"extra": {1: 2}}, TypeError, r"items\[1\]: extra: .*str"),
    ],
)
def test_a_model_made_by_hand_that_fits_no_column_is_named(changes, error, problem):
    pyarrow = load("pyarrow")
    fits = User(1, *[None] * 8)
    page = Page(9, 0, 2, (fits, dataclasses.replace(fits, **changes)))
    with pytest.raises(error, match=problem):
        pyarrow.table(page)
    mixed = Page(9, 0, 2, (fits, Message(1, *[None] * 8, 42)))
    with pytest.raises(TypeError, match=r"items\[1\]: expected a User, got a Message"):
        pyarrow.table(mixed)


def test_numbers_of_extra_stay_what_they_are():
    pyarrow = load("pyarrow")
    extra = {"big": 2**90, "whole": 1e16, "minus": -0.0, "far": -1e300, "t": (True, 1, None)}
    table = pyarrow.table(Page(9, 0, 1, (User(1, *[None] * 8, extra),)))
    read = json.loads(table["extra"][0].as_py())
    assert repr(read) == repr({**extra, "t": [True, 1, None]})


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
    each_face, backread_mock, monkeypatch, method, package
):
    if package == "pyarrow" and method == "to_pandas":
        load("pandas")
    monkeypatch.setitem(sys.modules, package, None)
    for source in (Page(9, 0, 0, (), "users"), each_face.client(backread_mock).users.list()):
        with pytest.raises(ImportError, match=f"pip install {package}"):
            each_face.call(getattr(source, method))
    assert backread_mock.calls().count == 0
