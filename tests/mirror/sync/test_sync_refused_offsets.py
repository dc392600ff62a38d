"""A list of users of which one page can never be read: it ends there, and all else is read."""

from typing import Any

import pytest

from backread import IncompleteError, IncompleteWarning, ServerError, plan
from helpers.api_rows import message
from helpers.command_line import settings_of
from helpers.mirrors import rows
from helpers.refused_offsets import REFUSALS, REFUSES, WINDOW, Accounts
from helpers.scripted_server import Request, answer

pytest.importorskip("duckdb")


@pytest.fixture(params=REFUSALS)
def accounts(request) -> Accounts:
    return Accounts(REFUSALS[request.param])


@pytest.fixture
def client(scripted, accounts) -> Any:
    with scripted(accounts).client(max_retries=0) as client:
        yield client


def test_each_sync_reads_and_publishes_the_users_before_it(mirror, client, accounts):
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


def test_a_sync_reads_the_messages_of_known_users_behind_it_and_marks_none_deleted(
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


def test_messages_all_reads_the_users_before_it_and_warns(each_face, scripted, accounts):
    client = each_face.client(scripted(accounts), max_retries=0)
    listing = client.messages.all()
    with pytest.warns(IncompleteWarning, match=REFUSES):
        read = each_face.collect(listing)
    assert sorted(one.id for one in read) == list(range(1, WINDOW + 1))
    assert listing.report.certificate == "uncertified"
    assert REFUSES in listing.report.reason
    with pytest.raises(IncompleteError, match=REFUSES):
        each_face.collect(client.messages.all(strict=True))


def test_a_plan_covers_the_users_before_it(client):
    shards = plan(client, shards=3)
    assert (shards.users, shards.report.certificate) == (WINDOW, "uncertified")
    assert REFUSES in shards.report.reason
    read = [row.id for shard in shards for row in shard.read(client)]
    assert sorted(read) == list(range(1, WINDOW + 1))


def test_a_sync_fails_if_the_service_then_answers_nothing(mirror, scripted):
    accounts = Accounts(answer(500, b""))
    refused: list[Request] = []

    def service(request: Request) -> Any:
        answered = accounts.refusal if refused else accounts(request)
        if answered is accounts.refusal:
            refused.append(request)
        return answered

    with pytest.raises(ServerError):
        mirror.sync(scripted(service).client(max_retries=0))


def test_backread_sync_ends_with_6_and_says_why(backread, scripted, monkeypatch, tmp_path):
    for name, value in settings_of(scripted(Accounts(REFUSALS["400"]))).items():
        monkeypatch.setenv(name, value)
    done = backread("sync", tmp_path / "chats")
    assert done.code == 6
    assert REFUSES in done.error
