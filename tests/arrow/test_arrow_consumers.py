"""Listings in the hands of those that read Arrow: each takes them as they are, and again."""

from typing import Any

import pytest

from helpers import arrow_consumers
from helpers.api_rows import envelope, message, paged, users
from helpers.arrow_consumers import KINDS, TEXT, load, sent
from helpers.scripted_server import answer

consumer = arrow_consumers.consumer

each_resource = pytest.mark.parametrize("resource", ["users", "messages"])


@each_resource
@pytest.mark.backread(world={"seed": 5, "users": 130, "messages_per_user": (0, 4)})
def test_a_listing_is_taken_as_it_is_and_again(each_face, backread_mock, consumer, resource):
    client = each_face.client(backread_mock)
    listing = client.users.list() if resource == "users" else client.messages.all()
    expected = sorted(sent(backread_mock.world, resource))
    requests = []
    for _ in range(2):
        # Within a running loop too, which it blocks.
        rows = each_face.call(consumer.rows, listing, TEXT[resource])
        assert sorted(rows) == expected
        assert listing.report.distinct == len(expected)
        requests.append(listing.report.requests)
    assert sum(requests) == backread_mock.counts()["users"] + backread_mock.counts()["messages"]


@each_resource
def test_each_sees_the_documented_types(face, backread_mock, consumer, resource):
    client = face.client(backread_mock)
    listing = client.users.list(max_items=50) if resource == "users" else client.messages.list(42)
    expected = {name: consumer.types[kind] for name, kind in KINDS[resource].items()}
    assert consumer.schema(listing) == expected


def test_a_walk_that_fails_is_an_error_and_no_short_table(face, scripted, consumer):
    def service(request: Any) -> bytes:
        first = request.query["offset"] == "0"
        return answer(200, envelope(users(99), total=150)) if first else answer(403)

    listing = face.client(scripted(service)).users.list()
    with pytest.raises(Exception, match="offset=96"):
        consumer.rows(listing, "name")


def test_a_lazy_query_of_polars_holds_what_was_read_when_it_was_made(face, scripted):
    polars = load("polars")
    server = scripted(paged(users(5)))
    lazy = polars.LazyFrame(face.client(server).users.list())
    assert len(server.requests) == 1
    for _ in range(2):
        assert lazy.filter(polars.col("id") > 3).select(polars.len()).collect().item() == 2
    assert len(server.requests) == 1


def test_deltalake_adds_and_merges_a_listing(face, scripted, tmp_path):
    deltalake = load("deltalake")
    load("pyarrow")
    chats = face.client(scripted(paged([message(1), message(2)], key="messages"))).messages.list(42)
    deltalake.write_deltalake(tmp_path, chats)
    deltalake.write_deltalake(tmp_path, chats, mode="overwrite")
    merged = (
        deltalake.DeltaTable(tmp_path)
        .merge(chats, "held.id = sent.id", source_alias="sent", target_alias="held")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    assert (merged["num_target_rows_updated"], merged["num_target_rows_inserted"]) == (2, 0)


def test_deltalake_keeps_nothing_of_a_walk_that_failed(face, scripted, tmp_path):
    deltalake = load("deltalake")
    load("pyarrow")

    def service(request: Any) -> bytes:
        first = request.query["offset"] == "0"
        return answer(200, envelope(users(99), total=150)) if first else answer(403)

    whole = face.client(scripted(paged(users(5)))).users.list()
    deltalake.write_deltalake(tmp_path, whole)
    broken = face.client(scripted(service)).users.list()
    # A DeltaError, or an Exception of no other type where another of its threads saw it first.
    with pytest.raises(Exception, match="offset=96"):
        deltalake.write_deltalake(tmp_path, broken, mode="append")
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().num_rows == 5
