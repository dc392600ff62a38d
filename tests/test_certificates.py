"""Lists that change while they are read, and lists without an order: what a walk then proves."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backread import IncompleteError
from backread.testing import Lane, MockServer, World
from canned import audited, envelope, ids, users
from scripted_server import Request, answer

Change = Callable[[Lane, list[int]], object]


@pytest.fixture(scope="module")
def long_lists() -> Iterator[MockServer]:
    with MockServer(World(seed=3, users=3_000, messages_per_user=(0, 5))) as running:
        yield running


@pytest.fixture(scope="module")
def long_talks() -> Iterator[MockServer]:
    with MockServer(World(seed=3, users=2, messages_per_user=(300, 300))) as running:
        yield running


# --- users ----------------------------------------------------------------------------------------

DRIFTS: dict[str, Change] = {
    "one goes": lambda m, ids: m.between_pages("users", after=1).delete(first=1),
    "as many go as pages share": lambda m, ids: m.between_pages("users", after=1).delete(first=3),
    "many go": lambda m, ids: m.between_pages("users", after=1).delete(first=20),
    "some go twice": lambda m, ids: (
        m.between_pages("users", after=1).delete(first=5),
        m.between_pages("users", after=2).delete(first=5),
    ),
    "some come": lambda m, ids: m.between_pages("users", after=1).add(5),
    "shared rows are edited": lambda m, ids: m.between_pages("users", after=1).edit(
        ids=ids[96:99], name="Ada"
    ),
    "all of it": lambda m, ids: (
        m.between_pages("users", after=1)
        .delete(ids=ids[40:44])
        .add(2)
        .edit(ids=[ids[97]], name="Ada"),
        m.between_pages("users", after=2).delete(ids=ids[60:62]),
    ),
}


@pytest.mark.parametrize("order", ["id", "newest"])
@pytest.mark.parametrize("drift", DRIFTS)
def test_no_row_is_lost_while_the_list_moves(face, backread_mock, drift, order):
    m = backread_mock
    m.dialect = f"documented order={order}"
    DRIFTS[drift](m, m.world.user_ids()[:: 1 if order == "id" else -1])
    _, report = audited(face, m, strict=True)
    assert (report.certificate, report.reason) == ("linked", None)
    assert (report.missing_links, report.inversions) == (0, 0)


def test_rows_come_in_the_lists_order_though_some_were_fetched_late(face, backread_mock):
    m = backread_mock
    m.between_pages("users", after=1).delete(first=20)
    read = ids(face.collect(face.client(m).users.list(strict=True)))
    assert read == sorted(read)
    assert [call.offset for call in m.calls("users")] != sorted(
        {call.offset for call in m.calls("users")}
    )


@pytest.mark.parametrize(("users", "gone", "after"), [(200, 120, 2), (400, 50, 4), (400, 150, 3)])
def test_no_row_is_lost_where_the_list_shrinks_past_the_next_page(
    face, backread_server, users, gone, after
):
    with backread_server.lane(world=World(seed=7, users=users)) as m:
        m.between_pages("users", after=after).delete(first=gone)
        audit = m.audit(ids(face.collect(face.client(m).users.list())))
    assert audit.expected == users - gone
    assert audit.ok


@pytest.mark.parametrize("dialect", ["order=ties", "order=ties max_limit=50 over_limit=clamp"])
def test_strict_raises_where_the_order_has_ties(face, backread_mock, dialect):
    m = backread_mock
    m.dialect = f"documented {dialect}"
    listing = face.client(m).users.list(strict=True)
    with pytest.raises(IncompleteError, match="the order changed between requests") as caught:
        face.collect(listing)
    assert caught.value.report.certificate == "uncertified"
    assert caught.value.report.inversions > 0
    assert (caught.value.attempts, caught.value.report.requests) == ((), len(m.journal))
    # What could be reached is held all the same.
    assert (caught.value.report.distinct, caught.value.report.rows_short) == (200, 0)


@pytest.mark.parametrize("total", ["exact", "high", "null"])
@pytest.mark.parametrize("order", ["shuffled", "ties"])
def test_proving_is_bounded_where_no_pass_gives_the_same_list(face, backread_server, order, total):
    dialect = f"hostile order={order} total={total}"
    with backread_server.lane(world=World(seed=1, users=600), dialect=dialect) as m:
        listing = face.client(m).users.list()
        read = ids(face.collect(listing))
        audit = m.audit(read)
        sent = len(m.journal)
    report = listing.report
    assert (audit.repeated, audit.unexpected) == ((), ())
    assert report.certificate == "uncertified"
    assert report.reason
    assert report.requests == sent
    plain = report.requests - report.proving_requests
    assert 0 < report.proving_requests <= 16 + 8 * plain


# --- users, page beside page ----------------------------------------------------------------------


def change_at_every_turn(m: Lane) -> int:
    """Rows come, go and are edited all along the list; says how many stay from start to end."""
    ids = m.world.user_ids()
    m.between_pages("users", after=1).delete(first=3).add(2)
    m.between_pages("users", after=8).delete(ids=ids[500:505])
    m.between_pages("users", after=12).edit(ids=ids[1000:1400], name="Ada")
    m.between_pages("users", after=18).delete(ids=ids[200:240]).add(10)
    m.between_pages("users", after=25).delete(ids=ids[2900:2903])
    return 3_000 - 3 - 5 - 40 - 3


@pytest.mark.parametrize("order", ["id", "newest"])
def test_no_row_is_lost_of_a_long_list_that_moves(face, long_lists, order):
    with long_lists.lane(dialect=f"documented order={order}") as m:
        stay = change_at_every_turn(m)
        audit, report = audited(face, m, strict=True)
    assert audit.expected == stay
    assert (report.certificate, report.missing_links) == ("linked", 0)
    # A plain loop sends 31.
    assert report.requests < 62


def test_a_long_list_at_rest_costs_no_more_than_the_shared_rows(face, long_lists):
    with long_lists.lane() as m:
        listing = face.client(m).users.list(strict=True)
        read = ids(face.collect(listing))
        assert read == m.world.user_ids()
        offsets = sorted(call.offset for call in m.calls("users"))
    assert offsets == list(range(0, 3_000 - 3, 96))
    report = listing.report
    assert (report.certificate, report.links, report.proving_requests) == ("linked", 31, 0)
    assert report.requests == 32


def in_pairs(barrier: threading.Barrier, lock: threading.Lock, most: list[int]) -> Any:
    """A service that holds pages far down the list until two of them are asked for."""
    rows = users(3_000)
    under_way = 0

    def service(request: Request) -> bytes:
        nonlocal under_way
        offset = int(request.query["offset"])
        with lock:
            under_way += 1
            most.append(under_way)
        if 96 * 16 <= offset < 96 * 20:
            barrier.wait(timeout=60)
        with lock:
            under_way -= 1
        return answer(200, envelope(rows[offset : offset + 99], offset=offset, total=len(rows)))

    return service


def test_pages_of_a_long_list_are_asked_for_side_by_side(face, scripted):
    """Each page waits for another one to be asked for: one by one, none would be answered."""
    most: list[int] = []
    server = scripted(in_pairs(threading.Barrier(2), threading.Lock(), most))
    listing = face.client(server, max_retries=0).users.list(strict=True)
    assert ids(face.collect(listing)) == list(range(1, 3_001))
    assert 2 <= max(most) <= 8
    assert listing.report.certificate == "linked"


def test_max_concurrency_holds_for_the_pages_of_one_list(face, scripted):
    most: list[int] = []
    server = scripted(in_pairs(threading.Barrier(1), threading.Lock(), most))
    listing = face.client(server, max_concurrency=1).users.list(strict=True)
    assert ids(face.collect(listing)) == list(range(1, 3_001))
    assert max(most) == 1
    offsets = [int(one.query["offset"]) for one in server.requests]
    assert offsets == sorted(offsets)


# --- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["order=id", "order=newest", "order=ties", "order=shuffled"])
def test_messages_are_counted_whatever_their_order(face, long_talks, dialect):
    with long_talks.lane(dialect=f"documented {dialect}") as m:
        user_id = m.world.user_ids()[0]
        audit, report = audited(face, m, user_id, strict=True)
    assert audit.expected == 300
    assert (report.certificate, report.reason) == ("counted", None)
    assert (report.inversions > 0) is (dialect in ("order=ties", "order=shuffled"))


def test_messages_of_a_hostile_service_are_counted_too(face, long_talks):
    with long_talks.lane(dialect="hostile") as m:
        user_id = m.world.user_ids()[0]
        _, report = audited(face, m, user_id, strict=True)
    assert report.certificate == "counted"


@pytest.mark.parametrize(
    ("order", "certificate", "held", "short"),
    [("id", "counted", 305, 0), ("newest", "linked", 300, 5), ("shuffled", "counted", 305, 0)],
)
def test_messages_that_come_meanwhile(face, long_talks, order, certificate, held, short):
    """Newest first, they come ahead of what is read next: all that was there before is proved."""
    with long_talks.lane(dialect=f"documented order={order}") as m:
        user_id = m.world.user_ids()[0]
        m.between_pages("messages", after=1, user=user_id).add(5)
        listing = face.client(m).messages.list(user_id, strict=True)
        read = ids(face.collect(listing))
        audit = m.audit(read, messages_of=user_id)
        assert m.waiting == 0
    assert audit.ok
    assert len(read) == held
    assert (listing.report.certificate, listing.report.rows_short) == (certificate, short)


def test_messages_that_go_leave_the_rest_linked(face, long_talks):
    """A count proves nothing where something was deleted."""
    with long_talks.lane() as m:
        user_id = m.world.user_ids()[0]
        m.between_pages("messages", after=1, user=user_id).delete(first=4)
        _, report = audited(face, m, user_id, strict=True)
    assert report.certificate == "linked"


def test_messages_that_go_from_a_list_without_an_order_prove_nothing(face, long_talks):
    with long_talks.lane(dialect="documented order=shuffled") as m:
        user_id = m.world.user_ids()[0]
        m.between_pages("messages", after=1, user=user_id).delete(first=4)
        with pytest.raises(IncompleteError) as caught:
            face.collect(face.client(m).messages.list(user_id, strict=True))
    assert caught.value.report.certificate == "uncertified"


@pytest.mark.parametrize(
    ("users", "page_size", "gone", "after"),
    [(1000, 99, 290, 3), (1000, 99, 400, 3), (1000, 20, 60, 3)],
)
def test_a_list_that_lost_all_that_was_read_is_read_from_its_start(
    face, backread_server, users, page_size, gone, after
):
    with backread_server.lane(world=World(seed=1, users=users)) as m:
        m.between_pages("users", after=after).delete(first=gone)
        audit, report = audited(face, m, page_size=page_size, strict=True)
    assert audit.expected == users - gone
    assert report.certificate == "linked"


def test_ties_and_a_list_that_shrinks_lose_nothing_that_passes_find(face, backread_server):
    dialect = "documented order=ties"
    with backread_server.lane(world=World(seed=1, users=400), dialect=dialect) as m:
        m.between_pages("users", after=2).delete(first=150)
        _, report = audited(face, m)
    # Rows that are gone are among those held: nobody knows how many are missing.
    assert (report.certificate, report.rows_short) == ("uncertified", None)


def test_an_edit_of_all_that_was_read_is_no_doubt(face, backread_server):
    with backread_server.lane(world=World(seed=1, users=1000)) as m:
        m.between_pages("users", after=2).edit(first=195, name="Ada")
        _, report = audited(face, m, strict=True)
    assert report.certificate == "linked"
