"""What holds for any answer and any way of paging, tried with many that nobody would write down."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("hypothesis")

from hypothesis import example, given
from hypothesis import strategies as st

from backread import BackreadError, DecodeError
from canned import envelope, ids, user
from scripted_server import answer
from stage import Stage
from waiting import AT_ONCE


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.close()


def decode_error(read: Callable[[], Any]) -> DecodeError | None:
    try:
        read()
    except DecodeError as error:
        return error
    return None


# Surrogates have a property of their own.
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=10,
)
objects = st.dictionaries(text, values, max_size=6)


def same(one: Any, other: Any) -> bool:
    """Equal in value, in type and in the order of keys, all the way down."""
    return repr(one) == repr(other)


@given(sent=objects, escaped=st.booleans())
def test_a_dict_is_what_json_says_of_the_same_bytes(stage, sent, escaped):
    body = json.dumps(sent, ensure_ascii=escaped)
    client = stage.play(answer(200, body))
    assert same(client.users.get(42, as_dict=True), json.loads(body))


@given(extra=objects)
def test_extra_is_all_that_the_interface_does_not_name(stage, extra):
    known = user(42)
    sent = {**{name: value for name, value in extra.items() if name not in known}, **known}
    read = stage.play(answer(200, sent)).users.get(42)
    assert same(read.extra, {name: value for name, value in sent.items() if name not in known})
    assert (read.id, read.name) == (42, "User 42")


@given(name=st.text(st.characters(codec=None), max_size=10))
@example(name="\ud83d\ude00\ud83d")
@example(name="\ude00\ud83d\ude00")
def test_any_text_becomes_the_unicode_that_is_in_it(stage, name):
    client = stage.play(answer(200, envelope([user(42, name=name)])))
    listing = client.users.list()
    [read] = listing
    expected = name.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert read.name == expected
    lone = expected.count("\ufffd") - name.count("\ufffd")
    assert listing.report.repaired_text == lone


@given(body=st.binary(max_size=200))
@example(body=b"{" * 500)
@example(body=b'{"id":1e400}')
@example(body=b'{"id":-0}')
@example(body=b'"\\u')
def test_any_bytes_are_a_user_or_a_decode_error(stage, body):
    client = stage.play(answer(200, body))
    for read in (
        lambda: client.users.get(42),
        lambda: client.users.get(42, as_dict=True),
        lambda: client.users.page(),
        lambda: client.users.list().to_list(),
    ):
        refused = decode_error(read)
        if refused is not None:
            assert refused.path.startswith("$")
            assert len(refused.snippet) <= 200


identifiers = st.integers(1, 12)
pages = st.builds(
    lambda numbers, total, limit, offset: envelope(
        [user(one) for one in numbers], total=total, limit=limit, offset=offset
    ),
    st.lists(identifiers, max_size=6),
    st.none() | st.integers(-1, 30),
    st.none() | st.integers(-1, 99),
    st.none() | st.integers(-1, 30),
)


@given(
    sent=st.lists(pages, min_size=1, max_size=6),
    page_size=st.integers(1, 99),
    max_items=st.none() | st.integers(0, 15),
)
def test_a_walk_over_any_pages_ends_and_gives_each_row_once(stage, sent, page_size, max_items):
    client = stage.play(*(answer(200, page) for page in sent))
    listing = client.users.list(page_size=page_size, max_items=max_items)
    given_ids = ids(list(listing))
    report = listing.report
    served = {row["id"] for number in stage.pages for row in sent[number]["users"]}
    assert len(set(given_ids)) == len(given_ids)
    if max_items is None:
        assert set(given_ids) == served
    else:
        assert len(given_ids) == min(max_items, len(served))
        assert set(given_ids) <= served
    assert (report.requests, report.pages) == (stage.sent, len(stage.pages))
    # A plain loop ends once ten pages in a row bring nothing new.
    plain = report.requests - report.proving_requests
    assert plain <= 60
    assert report.proving_requests <= 16 + 8 * plain
    assert report.rows == report.distinct + report.repeats
    if max_items is None:
        assert report.distinct == len(given_ids)
    assert (report.reason is None) is (report.certificate != "uncertified")
    assert report.certificate != "counted"
    if report.certificate == "linked":
        assert report.links > 0
        assert (report.missing_links, report.inversions) == (0, 0)
        assert report.rows_short is not None
        assert sent[0]["total"] is not None
        assert not sent[0]["offset"]
    if report.certificate == "snapshot":
        page = sent[0]
        assert report.pages <= 2
        assert page["total"] == len(page["users"]) == len(given_ids)
        assert not page["offset"]


@given(
    status=st.integers(200, 599),
    headers=st.dictionaries(
        st.sampled_from(
            ["retry-after", "x-ratelimit-reset", "x-request-id", "content-type", "location"]
        ),
        st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f")),
        max_size=3,
    ),
    body=st.binary(max_size=50),
)
def test_any_answer_is_a_user_or_an_error_of_ours(stage, status, headers, body):
    client = stage.play(answer(status, body, headers)).with_options(deadline=30)
    began = time.monotonic()
    with pytest.raises(BackreadError) as caught:
        client.users.get(42)
    assert time.monotonic() - began < AT_ONCE
    assert "/external/users/42" in str(caught.value)
    assert caught.value.attempts
