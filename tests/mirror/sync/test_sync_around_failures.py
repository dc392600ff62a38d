"""A sync of a service that fails for some rows, pages or offsets: it reads all the others."""

from typing import Any

import pytest

from backread import IncompleteError, IncompleteWarning, ServerError, plan
from helpers.api_rows import REFUSALS, REFUSES, WINDOW, Accounts, failing, message, users
from helpers.command_line import settings_of
from helpers.mirrors import marked, rows
from helpers.scripted_server import Request, answer


class Chats:
    """A service of three users, of whom the second has the messages."""

    def __init__(self) -> None:
        self.users = users(3)
        self.messages = [message(number) for number in range(1, 151)]
        self.failing: set[int] = set()

    def __call__(self, request: Request) -> Any:
        key = request.path.rpartition("/")[2]
        held = {"/external/users": self.users, "/external/users/2/messages": self.messages}
        rows = held.get(request.path, [])

        def fails(page: range) -> bool:
            return any(row["id"] in self.failing for row in rows[page.start : page.stop])

        return failing(rows, key, fails)(request)


@pytest.mark.parametrize("bad", [{3}, {2}, {149, 151}])
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


def test_a_sync_of_a_service_that_is_down_asks_a_few_times_more(mirror, scripted):
    server = scripted(lambda _: answer(500))
    with pytest.raises(ServerError, match=r"offset=0&limit=99"):
        mirror.sync(server.client(max_retries=1))
    assert len(server.requests) <= 6


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
        assert marked(mirror) == ([], [])
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
