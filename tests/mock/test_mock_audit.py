"""A world that changes between two pages, and the audit of what a reader then holds."""

from collections.abc import Iterator
from typing import Any

import pytest

from backread.testing import LostRow, MockServer, World


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


# --- what the client and a plain pager make of it ------------------------------------------------


def test_audit_of_a_plain_pager_names_each_missing_row(backread_mock):
    m = backread_mock
    lost = m.world.user_ids()[50:52]
    m.between_pages("users", after=1).delete(first=2)
    with m.client() as client:
        held = read_plainly(client, 50)
    audit = m.audit(held)
    assert [row.id for row in audit.missing] == lost
    assert not audit.ok
    row = audit.missing[0]
    assert row.request is not None
    assert (row.request.number, row.request.offset) == (2, 50)
    assert f"user {lost[0]} is missing: request 2 (GET /external/users?" in str(audit)
    assert "lost it: it was at position 50 when request 1 read" in str(audit)
    assert str(audit).count("\n") == 1
    # What pytest shows of `assert not audit.missing`.
    assert "\n" not in repr(row)
    assert str(lost[0]) in repr(row)


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


def test_what_is_no_id_is_a_type_error(backread_mock, backread_client):
    with pytest.raises(TypeError, match=r"ids\[0\] must be an int, not User; audit\(row\.id for"):
        backread_mock.audit(backread_client.users.page())
    with pytest.raises(TypeError, match=r"ids\[1\] must be an int, not str"):
        backread_mock.audit([1, "2"])  # type: ignore[list-item]


# --- each change ---------------------------------------------------------------------------------


def test_changes_come_after_their_page_and_once(face, backread_mock):
    m = backread_mock
    ids = m.world.user_ids()
    m.between_pages("users", after=2).delete(ids=[ids[7]]).add(4).edit(last=1, name="Ada")
    client = face.client(m)
    face.call(client.users.page)
    assert m.world.total_users == 200
    face.call(client.users.page)
    assert m.world.total_users == 203
    assert ids[7] not in m.world.user_ids()
    assert m.world.user(m.world.user_ids()[-1])["name"] == "Ada"
    face.call(client.users.page)
    assert m.world.total_users == 203


def test_first_and_last_are_those_of_the_list(face, backread_mock):
    m = backread_mock
    m.dialect = m.dialect.with_(order="newest")
    ids = m.world.user_ids()
    m.between_pages("users", after=1).delete(first=2).delete(last=1)
    face.call(face.client(m).users.page)
    assert m.world.user_ids() == ids[1:-2]


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


def test_a_change_that_cannot_be_is_refused(backread_mock):
    m = backread_mock
    with pytest.raises(ValueError, match="only the lists users and messages have pages"):
        m.between_pages("user", after=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="after must be 1 or more"):
        m.between_pages("users", after=0)
    with pytest.raises(ValueError, match="have no user"):
        m.between_pages("users", after=1, user=3)
    drift = m.between_pages("users", after=1)
    for wrong in ({}, {"first": 1, "last": 1}):
        with pytest.raises(TypeError, match="exactly one of first=, last= and ids="):
            drift.delete(**wrong)
    with pytest.raises(ValueError, match="first must be 1 or more, not 0"):
        drift.delete(first=0)
    with pytest.raises(TypeError, match=r"ids must be an iterable of ids such as \[42\], not 42"):
        drift.delete(ids=42)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ids must have at least one id"):
        drift.delete(ids=[])
    with pytest.raises(TypeError, match=r"ids must be an iterable of ids such as \[42\], not 5"):
        backread_mock.audit(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs a field to set, such as name='Ada'"):
        drift.edit(first=1)
    with pytest.raises(ValueError, match="id"):
        drift.edit(first=1, id=3)
    assert repr(drift) == "<Drift of users after page 1>"


# --- the audit against the truth -----------------------------------------------------------------


def test_audit_of_messages_of_an_unknown_user_raises(backread_mock):
    with pytest.raises(KeyError, match="user 999 never existed"):
        backread_mock.audit([], messages_of=999)


@pytest.mark.parametrize("change", ["delete", "edit"])
def test_a_change_that_found_no_row_did_not_happen(backread_server, by_hand, change):
    with backread_server.lane() as lane:
        pages = lane.between_pages("users", after=1)
        if change == "delete":
            pages.delete(ids=[999_999_999])
        else:
            pages.edit(ids=[999_999_999], name="Ada")
        by_hand(lane)("/external/users")
        assert lane.waiting == 0
        (text,) = lane._unfired()
        assert text.endswith("which found no row")
        lane.allow_unfired()


def test_rows_that_nobody_asked_for_have_no_request(backread_mock):
    m = backread_mock
    with m.client() as client:
        audit = m.audit(user.id for user in client.users.page(0, 99))
    assert len(audit.missing) == 101
    assert {row.request for row in audit.missing} == {None}
    assert isinstance(audit.missing[0], LostRow)
