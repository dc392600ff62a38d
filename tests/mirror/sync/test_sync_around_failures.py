"""A sync of a service that fails for some rows, pages or offsets: it reads all the others."""

from collections.abc import Sequence
from typing import Any

import pytest

from backread import IncompleteError, IncompleteWarning, ServerError, plan
from helpers.api_rows import REFUSALS, REFUSES, WINDOW, Accounts, failing, message, paged, users
from helpers.command_line import settings_of
from helpers.mirrors import rows
from helpers.scripted_server import Request, answer


class Chats:
    """A service of three users, of whom the second has the messages."""

    def __init__(self) -> None:
        self.users = users(3)
        self.messages = [message(number) for number in range(1, 151)]
        self.failing: set[int] = set()

    def __call__(self, request: Request) -> Any:
        if not request.path.endswith("messages"):
            return self._answer(request, self.users, "users")
        rows = self.messages if request.path.endswith("/2/messages") else []
        return self._answer(request, rows, "messages")

    def _answer(self, request: Request, rows: Sequence[Any], key: str) -> Any:
        def fails(page: range) -> bool:
            return any(row["id"] in self.failing for row in rows[page.start : page.stop])

        return failing(rows, key, fails)(request)


@pytest.mark.parametrize("bad", [{3}, {2}, {100}, {149, 151}])
def test_a_sync_reads_all_that_is_new_around_it(mirror, scripted, bad):
    chats = Chats()
    client = scripted(chats).client(max_retries=0)
    mirror.sync(client)
    chats.failing = bad
    chats.messages += [message(number) for number in range(151, 154)]
    chats.users += users(4)[3:]
    report = mirror.sync(client)
    known = set(range(1, 154)) - (bad & {151})
    assert rows(mirror, "SELECT id FROM messages ORDER BY id") == [(one,) for one in sorted(known)]
    assert rows(mirror, "SELECT id FROM users ORDER BY id") == [(1,), (2,), (3,), (4,)]
    assert report.deleted == 0
    chats.failing = set()
    assert mirror.sync(client).certificate != "uncertified"
    assert len(rows(mirror, "SELECT id FROM messages")) == 153


def test_a_sync_in_parts_reads_the_messages_of_a_user_whose_row_fails(mirror, scripted):
    messages = {number: [message(1)] for number in range(1, 31)}
    failing_user: set[int] = set()

    def service(request: Request) -> Any:
        *_, user_id, key = request.path.split("/")
        if key == "messages":
            return paged(messages[int(user_id)], key=key)(request)
        fails = failing(users(30), "users", lambda page: bool(failing_user.intersection(page)))
        return fails(request)

    client = scripted(service).client(max_retries=0, max_concurrency=1)
    mirror.sync(client)
    failing_user.add(14)
    messages[15].append(message(2))
    parts = 0
    while mirror.sync(client, max_requests=25).state == "partial":
        parts += 1
    assert parts > 0
    assert rows(mirror, "SELECT id FROM messages WHERE user_id = 15 ORDER BY id") == [(1,), (2,)]


def test_a_sync_of_a_service_that_is_down_asks_a_few_times_more(mirror, scripted):
    server = scripted(lambda _: answer(500))
    with pytest.raises(ServerError, match=r"offset=0&limit=99"):
        mirror.sync(server.client(max_retries=1))
    assert len(server.requests) <= 6


def test_a_row_that_fails_does_not_change_how_other_lists_are_read(mirror, scripted):
    chats = Chats()
    chats.users = users(120)
    server = scripted(chats)
    client = server.client(max_retries=0, max_concurrency=1)
    mirror.sync(client)
    chats.failing = {6}
    chats.messages.append(message(151))
    before = len(server.requests)
    mirror.sync(client)
    read = [one for one in server.requests[before:] if one.path.endswith("/2/messages")]
    assert len(read) == 1


def test_a_list_of_which_nothing_is_read_is_unread(mirror, scripted):
    """Empty pages are answered by a service that cannot render a single message, too."""
    held = {1: [message(1)], 2: [message(1), message(2)], 3: [message(1)]}

    def service(request: Request) -> Any:
        *_, user_id, key = request.path.split("/")
        if key != "messages":
            return paged(users(3))(request)
        rows = held[int(user_id)]
        fails = failing(rows, key, lambda page: user_id == "2" and page.start < len(rows))
        return fails(request)

    report = mirror.sync(scripted(service).client(max_retries=0))
    assert report.unread_users == (2,)


@pytest.fixture(params=["400", "504", "a list of another shape"])
def accounts(request) -> Accounts:
    return Accounts(REFUSALS[request.param])


@pytest.fixture
def client(scripted, accounts) -> Any:
    with scripted(accounts).client(max_retries=0) as client:
        yield client


def test_sync_reads_and_publishes_the_users_before_a_refused_offset(mirror, client, accounts):
    report = mirror.sync(client)
    assert (report.state, report.certificate) == ("finished", "uncertified")
    assert REFUSES in report.certificate_reason
    assert rows(mirror, "SELECT count(*), max(id) FROM users") == [(300, 300)]
    assert rows(mirror, "SELECT count(*) FROM messages") == [(300,)]
    accounts.messages[7].append(message(1007))
    mirror.sync(client)
    assert rows(mirror, "SELECT id FROM messages WHERE user_id = 7 ORDER BY id") == [(7,), (1007,)]
    accounts.refuses = False
    report = mirror.sync(client)
    assert report.certificate == "linked"
    assert rows(mirror, "SELECT count(*), max(id) FROM users") == [(500, 500)]


def test_a_sync_reads_the_messages_of_known_users_behind_a_refused_offset_and_marks_none_deleted(
    mirror, client, accounts
):
    accounts.refuses = False
    mirror.sync(client)
    accounts.refuses = True
    accounts.messages[400].append(message(1400))
    for mode in ("incremental", "full"):
        report = mirror.sync(client, mode=mode)
        assert (report.certificate, report.deleted) == ("uncertified", 0)
        assert REFUSES in report.certificate_reason
        deleted = "SELECT count(*) FROM users WHERE deleted_at IS NOT NULL"
        assert rows(mirror, deleted) == [(0,)]
        assert rows(mirror, "SELECT count(*) FROM messages WHERE user_id = 400") == [(2,)]


def test_messages_all_reads_the_users_before_a_refused_offset_and_warns(client):
    listing = client.messages.all()
    with pytest.warns(IncompleteWarning, match=REFUSES):
        assert sorted(one.id for one in listing) == list(range(1, WINDOW + 1))
    assert listing.report.certificate == "uncertified"
    with pytest.raises(IncompleteError, match=REFUSES):
        list(client.messages.all(strict=True))
    # A plan covers the same users.
    shards = plan(client, shards=3)
    assert (shards.users, shards.report.certificate) == (WINDOW, "uncertified")
    assert REFUSES in shards.report.reason


def test_sync_fails_if_the_service_then_answers_nothing(mirror, scripted):
    accounts = Accounts(answer(500, b""))
    refused: list[Request] = []

    def service(request: Request) -> Any:
        answered = accounts.refusal if refused else accounts(request)
        if answered is accounts.refusal:
            refused.append(request)
        return answered

    with pytest.raises(ServerError):
        mirror.sync(scripted(service).client(max_retries=0))


def test_backread_sync_ends_with_6_after_a_refused_offset(
    backread, scripted, monkeypatch, tmp_path
):
    for name, value in settings_of(scripted(Accounts(REFUSALS["400"]))).items():
        monkeypatch.setenv(name, value)
    done = backread("sync", tmp_path / "chats")
    assert done.code == 6
    assert REFUSES in done.error
