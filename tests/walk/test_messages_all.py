"""``messages.all``: every user's messages, lists read side by side, and one report over them."""

from collections import Counter
from threading import Barrier, Event
from typing import Any

import pytest

from backread import IncompleteError, PermissionDeniedError, StatusError
from backread.testing import Fault
from helpers.api_rows import envelope, message, paged, user, users
from helpers.scripted_server import Request, answer

SECONDS = 20


class Service:
    """Users with so many messages each; ``gone`` are listed, and not found with their messages."""

    def __init__(
        self,
        counts: dict[int, int],
        gone: tuple[int, ...] = (),
        not_found: int = 404,
        **paging: Any,
    ) -> None:
        self.counts = counts
        self.gone = gone
        self.not_found = not_found
        self.paging = paging

    def __call__(self, request: Request) -> bytes:
        if request.path == "/external/users":
            return paged([user(one) for one in self.counts])(request)
        user_id = int(request.path.split("/")[3])
        if user_id in self.gone or user_id not in self.counts:
            return answer(self.not_found, b"gone")
        rows = [message(user_id * 1000 + one) for one in range(self.counts[user_id])]
        return paged(rows, key="messages", **self.paging)(request)

    @property
    def expected(self) -> Counter[tuple[int, int]]:
        return Counter(
            (user_id, user_id * 1000 + one)
            for user_id, count in self.counts.items()
            if user_id not in self.gone
            for one in range(count)
        )


def pairs(messages: list[Any]) -> Counter[tuple[int, int]]:
    return Counter((one.user_id, one.id) for one in messages)


def test_they_come_in_the_order_of_the_users_and_of_each_list(each_face, backread_mock):
    backread_mock.on("messages").fail(Fault.latency(3), p=0.5)
    client = each_face.client(backread_mock)
    listed = [user.id for user in each_face.collect(client.users.list())]
    in_order = [
        (user_id, one.id)
        for user_id in listed
        for one in each_face.collect(client.messages.list(user_id))
    ]
    read = each_face.collect(client.messages.all())
    assert [(one.user_id, one.id) for one in read] == in_order
    first = each_face.collect(client.messages.all(max_items=10))
    assert [(one.user_id, one.id) for one in first] == in_order[:10]
    given = listed[5::-1]
    read = each_face.collect(client.messages.all(users=[*given, given[0]]))
    assert list(dict.fromkeys(one.user_id for one in read)) == [
        user_id for user_id in given if user_id in {user for user, _ in in_order}
    ]
    pages = each_face.pages(client.messages.all())
    assert [(one.user_id, one.id) for page in pages for one in page] == in_order
    assert all(len({one.user_id for one in page}) == 1 for page in pages)


def test_lists_that_wait_for_a_slow_one_take_bounded_memory(face, scripted):
    large, full = "x" * 2_000_000, 18
    asked: set[str] = set()
    enough = Event()

    def service(request: Request) -> bytes:
        if request.path == "/external/users":
            return paged(users(40))(request)
        asked.add(request.path)
        if len(asked) >= full:
            enough.set()
        if request.path == "/external/users/1/messages":
            assert enough.wait(SECONDS)
            asked.add("not more while they wait")
            assert len(asked) < 2 * full
        return paged([message(1, body=large)], key="messages")(request)

    read = face.collect(face.client(scripted(service), max_concurrency=8).messages.all())
    assert [one.user_id for one in read] == list(range(1, 41))


def test_every_message_of_the_mock_once(face, backread_server):
    world = backread_server.world
    listing = face.client(backread_server).messages.all()
    read = face.collect(listing)
    assert pairs(read) == Counter(
        (user_id, one) for user_id in world.user_ids() for one in world.message_ids(user_id)
    )
    for one in read[:: len(read) // 50]:
        assert one.body == world.message(one.user_id, one.id)["body"]
    lists = [len(world.message_ids(user_id)) for user_id in world.user_ids()]
    report = listing.report
    # A full page is followed by one that begins three rows before its end.
    pages = [1 if count < 99 else (count - 99) // 96 + 2 for count in lists]
    assert (report.distinct, report.repeats) == (sum(lists), 3 * (sum(pages) - len(lists)))
    assert report.rows == report.distinct + report.repeats
    assert (report.total_first, report.total_last) == (sum(lists), sum(lists))
    assert report.pages == sum(pages)
    assert report.requests == report.pages + 3
    long = [count for count in lists if count > 99]
    assert long
    counts = {"snapshot": len(lists) - len(long), "counted": len(long)}
    assert (report.lists_by_certificate, report.uncertified_users) == (counts, ())
    assert (report.evidence["rows_short"], report.evidence["proving_requests"]) == (0, 0)
    # The users are on three pages, and linked.
    assert (report.certificate, report.reason) == ("linked", None)


def test_the_users_may_be_named(face, scripted):
    service = Service(dict.fromkeys(range(1, 30), 2))
    server = scripted(service)
    expected = Counter({key: 1 for key in service.expected if key[0] in (3, 5)})
    for named in ([3, 5, 3], (3, 5), {3, 5}, iter([3, 5]), range(3, 6, 2)):
        listing = face.client(server).messages.all(users=named)
        # An iterator is used up by the first walk, unless it was kept.
        for _ in range(2):
            assert pairs(face.collect(listing)) == expected
        assert listing.report.requests == 2
        assert listing.report.certificate == "snapshot"
    assert "2 users" in repr(listing)
    sent = len(server.requests)
    assert face.collect(face.client(server).messages.all(users=[])) == []
    assert len(server.requests) == sent
    assert "/external/users" not in {one.path for one in server.requests}


# Some services say 410 of what they once had (RFC 9110 15.5.11).
@pytest.mark.parametrize("not_found", [404, 410])
def test_a_user_that_goes_away_is_no_error_and_is_reported(face, scripted, not_found):
    service = Service({1: 2, 2: 3, 3: 4}, gone=(2,), not_found=not_found)
    server = scripted(service)
    listing = face.client(server).messages.all()
    assert pairs(face.collect(listing)) == service.expected
    report = listing.report
    # The users, three lists, and the user whose list was not found.
    assert report.requests == len(server.requests) == 5
    assert (report.rows, report.lists_by_certificate) == (6, {"snapshot": 2})
    assert (report.certificate, report.uncertified_users) == ("uncertified", ())
    assert "1 users were gone" in report.reason
    with pytest.raises(IncompleteError):
        face.collect(face.client(server).messages.all(strict=True))


@pytest.mark.parametrize(
    ("path", "error", "users"),
    [
        ("/external/users", answer(401), None),
        ("/external/users/2/messages", answer(403), [2]),
        ("/external/users/9/messages", answer(410), [1, 9]),
    ],
)
def test_an_error_of_the_users_of_the_only_list_or_of_a_named_user_ends_the_walk(
    face, scripted, path, error, users
):
    def service(request: Request) -> bytes:
        return error if request.path == path else Service({1: 2, 2: 3})(request)

    listing = face.client(scripted(service)).messages.all(users=users)
    with pytest.raises(StatusError, match=f"{path}[?]"):
        face.collect(listing)
    assert listing.report.certificate == "uncertified"
    assert listing.report.reason


@pytest.mark.parametrize(
    "users",
    [
        paged(users(20), sent=5, total=300),
        paged([user(1), user("x")]),
        paged([user(1), user(None)]),
    ],
)
def test_users_that_are_uncertified_leave_the_whole_uncertified(face, scripted, users):
    """So does a user without an integer id, whose messages cannot be asked for."""

    def service(request: Request) -> bytes:
        if request.path == "/external/users":
            return users(request)
        return answer(200, envelope([], key="messages"))

    listing = face.client(scripted(service)).messages.all()
    face.collect(listing)
    assert listing.report.uncertified_users == ()
    assert listing.report.certificate == "uncertified"
    assert listing.report.reason


def test_a_walk_that_fails_or_is_cut_has_counted_what_it_gave(face, scripted):
    def service(request: Request) -> bytes:
        if request.query.get("offset") == "192":
            return answer(403, b"no more")
        return Service({1: 250})(request)

    server = scripted(service)
    failed = face.client(server).messages.all()
    with pytest.raises(PermissionDeniedError):
        face.collect(failed)
    assert (failed.report.rows, failed.report.distinct, failed.report.pages) == (198, 195, 2)
    # The last one asks whether others are answered.
    assert failed.report.requests == len(server.requests) == 5
    assert failed.report.ended_at is not None
    cut = face.client(server).messages.all(max_items=150)
    assert len(face.collect(cut)) == 150
    assert cut.report.rows >= 150
    assert cut.report.ended_at is not None


@pytest.mark.parametrize("short", [(), (2, 4)])
def test_lists_are_counted_by_what_they_earned(face, scripted, short):
    counts = {4: 120, 1: 5, 2: 130, 3: 0}

    def service(request: Request) -> bytes:
        odd = request.path in {f"/external/users/{each}/messages" for each in short}
        paging = {"sent": 20, "total": 300} if odd else {}
        return Service(counts, **paging)(request)

    listing = face.client(scripted(service)).messages.all(strict=not short)
    assert pairs(face.collect(listing)) == Service(counts).expected
    report, earned = listing.report, "uncertified" if short else "counted"
    assert report.lists_by_certificate == {"snapshot": 2, earned: 2}
    assert (report.certificate, report.uncertified_users) == (earned, short)
    if short:
        assert "2 users" in report.reason
    else:
        assert (report.reason, report.rows, report.distinct) == (None, 261, 255)


@pytest.mark.parametrize("most", [0, 7, 150])
def test_max_items_is_over_all_lists(face, scripted, most):
    service = Service(dict.fromkeys(range(1, 21), 20))
    server = scripted(service)
    listing = face.client(server, max_concurrency=2).messages.all(max_items=most)
    read = pairs(face.collect(listing))
    assert read.total() == most
    assert not read - service.expected
    assert listing.report.certificate == "uncertified"
    assert f"max_items={most}" in listing.report.reason
    assert len(server.requests) < 21


def test_breaking_off_ends_all_lists(face, scripted):
    server = scripted(Service(dict.fromkeys(range(1, 2001), 2)))
    client = face.client(server, max_concurrency=2)
    assert len(face.take(client.messages.all(), 5)) == 5
    sent = len(server.requests)
    assert sent < 60
    face.call(client.users.page)
    assert len(server.requests) <= sent + 4


def test_lists_are_read_side_by_side(face, scripted):
    """Each list waits for the others to be asked for: one after another, none would be answered."""
    barrier = Barrier(4)

    def service(request: Request) -> bytes:
        if request.path == "/external/users":
            return paged(users(4))(request)
        barrier.wait(timeout=60)
        return answer(200, envelope([message(1)], key="messages"))

    client = face.client(scripted(service), max_concurrency=4, max_retries=0)
    assert len(face.collect(client.messages.all())) == 4
