"""A world that changes between two pages, and the audit of what a reader then holds."""

from collections.abc import Iterator
from typing import Any

import pytest

from backread.testing import Lane, MockServer, World


def read_plainly(client: Any, limit: int) -> list[int]:
    """The ids that a pager of the usual kind finds: it steps by what it asked for."""
    held: list[int] = []
    offset = 0
    while True:
        page = client.users.page(offset, limit)
        if not page.items:
            return held
        held += [row.id for row in page]
        offset += limit


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=5, users=90, messages_per_user=(40, 60))) as running:
        yield running


# --- what the client and a plain pager make of it -------------------------------------------------


def test_rows_that_come_twice_are_named_with_both_requests(backread_mock):
    m = backread_mock
    m.dialect = "documented order=newest"
    again = m.world.user_ids()[-50]
    m.between_pages("users", after=1).add(1)
    with m.client() as client:
        audit = m.audit(read_plainly(client, 50))
    assert [(row.id, row.times) for row in audit.repeated] == [(again, 2)]
    assert [request.number for request in audit.repeated[0].requests] == [1, 2]
    assert f"user {again} was read 2 times: it came with request 1 (GET " in str(audit)
    assert not audit.missing


def test_audit_names_ids_that_no_response_had(backread_mock):
    audit = backread_mock.audit([*backread_mock.world.user_ids(), -1, 2**70, 3**39, -1])
    assert audit.unexpected == (-1, 3**39, 2**70)
    assert not audit.missing
    assert "user -1 was read but never existed" in str(audit)
    # Rows that nobody asked for have no request.
    with backread_mock.client() as client:
        audit = backread_mock.audit(user.id for user in client.users.page(0, 99))
    assert len(audit.missing) == 101
    # What pytest shows of `assert not audit.missing`.
    assert "\n" not in repr(audit.missing[0])
    assert {row.request for row in audit.missing} == {None}


# --- each change ----------------------------------------------------------------------------------


def test_changes_come_after_their_page_and_once(face, backread_mock):
    m = backread_mock
    m.dialect = m.dialect.with_(order="newest")
    ids = m.world.user_ids()
    m.between_pages("users", after=2).delete(ids=[ids[7]]).add(4).edit(first=1, name="Ada")
    # The first and the last are those of the list, and not of the world.
    m.between_pages("users", after=3).delete(first=2).delete(last=1)
    client = face.client(m)
    face.call(client.users.page)
    assert m.world.total_users == 200
    face.call(client.users.page)
    assert m.world.total_users == 203
    assert ids[7] not in m.world.user_ids()
    added = m.world.user_ids()[-4:]
    assert m.world.user(added[-1])["name"] == "Ada"
    for _ in range(2):
        face.call(client.users.page)
        assert m.world.user_ids() == [each for each in ids[1:] if each != ids[7]] + added[:2]


def test_messages_of_one_user_change(face, server):
    with server.lane() as m:
        mine, others = m.world.user_ids()[:2]
        ids = m.world.message_ids(mine)
        m.between_pages("messages", user=mine, after=1).delete(first=1).edit(last=1, body="moved")
        client = face.client(m)
        face.call(client.messages.page, others)
        assert m.world.message_ids(mine) == ids
        face.call(client.messages.page, mine, 0, 10)
        assert m.world.message_ids(mine) == ids[1:]
        assert m.world.message(mine, ids[-1])["body"] == "moved"
        held = [*ids[:10], *[row.id for row in face.call(client.messages.page, mine, 10, 99)]]
        audit = m.audit(held, messages_of=mine)
        assert [row.id for row in audit.missing] == [ids[10]]
        assert str(audit).startswith(f"user {mine}: message {ids[10]} is missing: request 3 (")


def test_answers_that_failed_are_no_pages(face, backread_mock):
    m = backread_mock
    m.clock.virtual()
    m.on("users").fail("status(503)", attempt=1).fail("truncate(at=10)", attempt=2)
    m.between_pages("users", after=1).delete(first=1)
    page = face.call(face.client(m).users.page)
    assert m.calls("users").count == 3
    assert page.total == 200
    assert m.world.total_users == 199


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda m: m.between_pages("user", after=1), ValueError, "only the lists users and mess"),
        (lambda m: m.between_pages("users", after=0), ValueError, "after must be 1 or more"),
        (lambda m: m.between_pages("users", after=1, user=3), ValueError, "have no user"),
        (lambda m: changed(m).delete(), TypeError, "exactly one of first=, last= and ids="),
        (lambda m: changed(m).delete(first=1, last=1), TypeError, "exactly one of first=, last="),
        (lambda m: changed(m).delete(first=0), ValueError, "first must be 1 or more, not 0"),
        (lambda m: changed(m).delete(ids=42), TypeError, "an iterable of ids such as .42., not 42"),
        (lambda m: changed(m).delete(ids=[]), ValueError, "ids must have at least one id"),
        (lambda m: changed(m).edit(first=1), TypeError, "a field to set, such as name='Ada'"),
        (lambda m: changed(m).edit(first=1, id=3), ValueError, "id"),
        (lambda m: m.audit(5), TypeError, "ids must be an iterable of ids such as .42., not 5"),
        (lambda m: m.audit([1, "2"]), TypeError, r"ids\[1\] must be an int, not str"),
        (
            lambda m: m.audit(m.client().users.page()),
            TypeError,
            r"ids\[0\] must be an int, not User; audit\(row\.id for",
        ),
        (lambda m: m.audit([], messages_of=999), KeyError, "user 999 never existed"),
    ],
)
def test_changes_and_audits_that_cannot_be_are_refused(backread_mock, call, error, said):
    with pytest.raises(error, match=said):
        call(backread_mock)


def changed(lane: Lane) -> Any:
    """The change after the first page of users."""
    drift = lane.between_pages("users", after=1)
    assert repr(drift) == "<Drift of users after page 1>"
    return drift


# --- the audit against the truth ------------------------------------------------------------------


def test_a_change_that_found_no_row_did_not_happen(backread_server, by_hand):
    with backread_server.lane() as lane:
        lane.between_pages("users", after=1).delete(ids=[999_999_999])
        by_hand(lane)("/external/users")
        assert lane.waiting == 0
        (text,) = lane._unfired()
        assert text.endswith("which found no row")
        lane.allow_unfired()
