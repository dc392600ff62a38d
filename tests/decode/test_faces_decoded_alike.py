"""One answer through dataclasses, dicts and Arrow: all agree with what Python's json makes of it.

The native module reads rows of the documented shape in a faster way than others. What is drawn here
is of either kind, and each page is sent once more with its keys escaped and an unknown field in
each row, which no fast way takes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

pytest.importorskip("hypothesis")
pytest.importorskip("pyarrow")

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from backread import Client, DecodeError
from helpers import expected_rows, json_strategies
from helpers.json_strategies import MARK, Object, Raw
from helpers.scripted_server import Request, ScriptedServer, answer

settings.register_profile("backread", deadline=None, derandomize=True, database=None)
settings.load_profile("backread")


class RepeatingServer:
    """A server that answers what it is told to, and a client of it."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.sent = 0
        self.server = ScriptedServer(self._next)
        self.client = Client(
            self.server.url, self.server.secret, self.server.vendor, max_retries=0, timeout=20
        )

    def play(self, *answers: bytes) -> Client:
        """The last one is repeated for ever."""
        self.answers, self.sent = list(answers), 0
        return self.client

    def close(self) -> None:
        self.client.close()
        self.server.close()

    def _next(self, request: Request) -> bytes:
        self.sent += 1
        return self.answers[min(self.sent, len(self.answers)) - 1]


drawn = settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(scope="module")
def stage() -> Iterator[RepeatingServer]:
    stage = RepeatingServer()
    yield stage
    stage.close()


@dataclass(frozen=True)
class Refused:
    """A DecodeError, without what differs from one face to another."""

    path: str


def outcome(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except DecodeError as error:
        return Refused(error.path)


@dataclass
class Faces:
    """One answer read in all ways; each a list of rows, or Refused."""

    page: Any
    page_table: Any
    items: Any
    table: Any
    dicts: Any
    page_dicts: Any
    repaired: set[int]
    odd_values: set[int]
    certified: set[bool]

    @classmethod
    def of(cls, client: Client, key: str) -> Faces:
        source: Any = client.users if key == "users" else client.messages
        whose = () if key == "users" else (42,)
        listings = [source.list(*whose), source.list(*whose), source.list(*whose, as_dict=True)]
        page = outcome(lambda: source.page(*whose))
        refused = isinstance(page, Refused)
        return cls(
            page=page if refused else list(page),
            page_table=page if refused else page.to_arrow().to_pylist(),
            items=outcome(listings[0].to_list),
            table=outcome(lambda: listings[1].to_arrow().to_pylist()),
            dicts=outcome(listings[2].to_list),
            page_dicts=outcome(lambda: source.page(*whose, as_dict=True)[key]),
            repaired={listing.report.repaired_text for listing in listings},
            odd_values={listing.report.odd_values for listing in listings},
            certified={listing.report.certificate != "uncertified" for listing in listings},
        )


def same(one: Any, other: Any) -> bool:
    """Equal in value, in type and in the order of keys, all the way down."""
    return repr(one) == repr(other)


def compare(faces: Faces, body: bytes, key: str) -> None:
    """Each face against what Python's json makes of the body."""
    rows = expected_rows.rows(body, key)
    assert len(faces.repaired) == 1
    assert same(faces.dicts, [row.sent for row in rows])
    assert same(faces.page_dicts, faces.dicts)
    assert faces.odd_values == {sum(row.odd_values for row in rows)}
    models = [row.model for row in rows if row.model is not None]
    assert same(faces.items, models)
    assert faces.items == models
    if len(models) < len(rows):
        place = next(place for place, row in enumerate(rows) if row.model is None)
        assert isinstance(faces.page, Refused)
        assert faces.page.path.startswith(f"$.{key}[{place}]")
        assert faces.certified == {False}
    else:
        assert same(faces.page, models)
    expected = [expected_rows.columns(model) for model in models]
    table = [expected_rows.loaded(row) for row in faces.table]
    assert table == expected
    if not isinstance(faces.page_table, Refused):
        assert same([expected_rows.loaded(row) for row in faces.page_table], table)
    # 1 is not 1.0 nor True; moments are compared above, by whatever class pyarrow gives.
    for name in ("id", "extra", "sender_extra", "user_attributes", "read_by_user"):
        assert same([row.get(name) for row in table], [row.get(name) for row in expected])


def unmarked(faces: Faces) -> Faces:
    """What was read of a `json_strategies.respelled` page, without the field that was put in."""

    def without(rows: Any, strip: Callable[[Any], Any]) -> Any:
        return rows if isinstance(rows, Refused) else [strip(row) for row in rows]

    def model(row: Any) -> Any:
        return replace(row, extra={k: v for k, v in row.extra.items() if k != MARK})

    def columns(row: Any) -> Any:
        extra = {k: v for k, v in expected_rows.loaded(row)["extra"].items() if k != MARK}
        return {**expected_rows.loaded(row), "extra": extra or None}

    def sent(row: Any) -> Any:
        return {k: v for k, v in row.items() if k != MARK} if isinstance(row, dict) else row

    return replace(
        faces,
        page=without(faces.page, model),
        page_table=without(faces.page_table, columns),
        items=without(faces.items, model),
        table=without(faces.table, columns),
        dicts=without(faces.dicts, sent),
        page_dicts=without(faces.page_dicts, sent),
    )


def check(stage: RepeatingServer, rows: list[Object], key: str, seed: int | None) -> None:
    body = json_strategies.body(rows, key, seed)
    faces = Faces.of(stage.play(answer(200, body)), key)
    try:
        compare(faces, body, key)
    except expected_rows.UnsureError:
        odd = unmarked(Faces.of(stage.play(answer(200, json_strategies.respelled(rows, key))), key))
        faces.table = [expected_rows.loaded(row) for row in faces.table]
        if not isinstance(faces.page_table, Refused):
            faces.page_table = [expected_rows.loaded(row) for row in faces.page_table]
        assert faces == odd
        assert same(faces, odd)


seeds = st.none() | st.integers(0, 2**32)


@drawn
@given(rows=json_strategies.pages("users"), seed=seeds)
def test_users_are_the_same_through_every_face(stage, rows, seed):
    check(stage, rows, "users", seed)


@drawn
@given(rows=json_strategies.pages("messages"), seed=seeds)
def test_messages_are_the_same_through_every_face(stage, rows, seed):
    check(stage, rows, "messages", seed)


def test_dicts_have_the_keys_that_were_sent_in_their_order(stage):
    rows = [
        {"id": 1, "body": "a", "file_url": None},
        {"id": 2, "body": "b", "file_url": None},
        {"id": 3, "body": "c"},
        {"id": 4, "file_url": None, "body": "d"},
        {"id": 5, "body": "e", "file_url": None, "more": 1},
        {"id": 6, "other": 1, "file_url": None},
        {"id": 7},
        {"id": 8, "body": "h", "file_url": None},
    ]
    body = {"limit": 99, "offset": 0, "total": len(rows), "messages": rows}
    read = stage.play(answer(200, body)).messages.list(42, as_dict=True).to_list()
    assert same(read, rows)


def test_rows_share_no_dict_that_a_caller_may_change(stage):
    sender = {"id": 7, "name": "Ada", "email": None}
    rows = [{"id": at, "sender_type": "user", "sender": dict(sender)} for at in range(1, 30)]
    body = {"limit": 99, "offset": 0, "total": len(rows), "messages": rows}
    read = stage.play(answer(200, body)).messages.list(42, as_dict=True).to_list()
    assert same(read, rows)
    assert len({id(row) for row in read} | {id(row["sender"]) for row in read}) == 2 * len(rows)
    read[0]["sender"]["name"] = "changed"
    del read[1]["sender"]["email"]
    assert [row["sender"] for row in read[2:]] == [sender] * 27


@drawn
@given(text=json_strategies.WILD_MOMENTS)
def test_a_timestamp_is_the_same_through_every_face(stage, text):
    for key in ("users", "messages"):
        pairs = [(n, text if n == "created_at" else v) for n, v in json_strategies.whole_row(key)]
        check(stage, [Object(pairs)], key, None)


@pytest.mark.parametrize("key", ["users", "messages"])
def test_any_value_in_any_field_is_the_same_through_every_face(stage, key):
    whole = json_strategies.whole_row(key)
    for field, _ in whole:
        for value in json_strategies.VALUES:
            row = Object([(n, Raw(value) if n == field else v) for n, v in whole])
            check(stage, [row], key, None)


@drawn
@given(data=st.data())
@pytest.mark.parametrize("key", ["users", "messages"])
def test_broken_rows_are_refused_through_every_face_or_are_what_json_says(stage, key, data):
    body = data.draw(json_strategies.broken(key))
    faces = Faces.of(stage.play(answer(200, body)), key)
    try:
        page = expected_rows.parse(body)
    except ValueError:
        for read in (faces.page, faces.items, faces.table, faces.dicts, faces.page_dicts):
            assert isinstance(read, Refused), body
        return
    # What became of the envelope is other tests' concern, and so are rows with one id.
    assume(isinstance(page, list) and page[:2] == [("limit", 99), ("offset", 0)])
    rows = page.last(key)
    assume(type(rows) is list)
    ids = {repr(row.last("id")) if isinstance(row, expected_rows.Pairs) else "" for row in rows}
    assume(page.last("total") == len(ids) == len(rows))
    with contextlib.suppress(expected_rows.UnsureError):
        compare(faces, body, key)
