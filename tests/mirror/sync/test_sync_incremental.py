"""Incremental runs: they request little, miss nothing, and read around what fails."""

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import duckdb
import pytest

from backread import (
    AuthenticationError,
    DeadlineExceededError,
    IncompleteError,
    IncompleteWarning,
    ServerError,
    plan,
)
from backread.mirror import Mirror
from backread.testing import Dialect, Fault, MockServer, World
from helpers.api_rows import REFUSALS, REFUSES, WINDOW, Accounts, failing, message, user, users
from helpers.command_line import settings_of
from helpers.mirrors import arrow_rows, data_files, marked, missed, rows, sync, table
from helpers.probed_service import Rows
from helpers.scripted_server import Request, answer

USERS = 400
# One page of users each 99, one request a user, and three in a hundred for what may go wrong.
MOST = (USERS / 99 + USERS) * 1.03


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=8, users=USERS, messages_per_user=(0, 150))) as running:
        yield running


@pytest.fixture(scope="module")
def steady(server: MockServer, tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    mirror = Mirror(tmp_path_factory.mktemp("steady") / "chats")
    sync(mirror, server)
    return mirror


def stored(mirror: Mirror) -> list[Any]:
    """A digest of all rows with where they lie in the writer's tables, and the published files."""
    digest = "SELECT count(*), bit_xor(hash(rowid, held)) FROM {} AS held"
    with duckdb.connect(str(mirror.folder / "mirror.duckdb"), read_only=True) as connection:
        return [
            (connection.sql(digest.format(each)).fetchall(), data_files(mirror, each))
            for each in ("users", "messages")
        ]


def test_unchanged_service_costs_a_request_a_user_and_rewrites_nothing(steady, server):
    before = stored(steady)
    report = sync(steady, server)
    assert report.requests <= MOST
    assert report.lists_by_kind["end"] > USERS / 100
    assert (report.users_added, report.users_updated) == (0, 0)
    assert (report.messages_added, report.messages_updated) == (0, 0)
    assert stored(steady) == before
    newest = "SELECT count(*) FROM messages JOIN runs ON last_seen_at = ended_at WHERE run_id = {}"
    assert rows(steady, newest.format(report.run_id)) == [(server.world.total_messages,)]


def test_nothing_is_missed_where_one_user_in_a_hundred_changed(steady, server):
    world, chance = server.world, random.Random(4)
    longest = sorted(world.user_ids(), key=lambda each: len(world.message_ids(each)))[-40:]
    changed = chance.sample(longest, 10) + chance.sample(world.user_ids(), 40)
    for user_id in changed[:25]:
        world.add_messages(user_id, chance.choice([1, 2, 5]))
    # A long list, and more than a page of new messages.
    world.add_messages(longest[-1], 130)
    for user_id in {*changed[20:35], *chance.sample(longest, 10)}:
        for message_id in world.message_ids(user_id)[-4:]:
            world.edit_message(user_id, message_id, read_by_user=True, read_by_operator=True)
    for user_id in changed[35:45]:
        world.edit_user(user_id, name=f"Renamed {user_id}")
    gone = sorted({*changed[45:]})
    for user_id in gone:
        world.remove_user(user_id)
    world.add_users(5)
    assert missed(steady, world)
    report = sync(steady, server)
    assert missed(steady, world) == []
    assert report.requests <= MOST
    # Whoever is gone stays until a full sync, and the rest is as it was.
    assert report.deleted == 0
    assert sync(steady, server, mode="full").deleted >= len(gone)
    assert marked(steady)[0] == gone
    assert missed(steady, world) == []
    total = "SELECT count(*) FROM messages WHERE deleted_at IS NULL"
    assert rows(steady, total) == [(world.total_messages,)]


@pytest.mark.parametrize("order", ["id", "newest"])
def test_growing_end_is_read_on_and_a_list_with_a_gap_is_read_whole(mirror, order):
    world = World(seed=7, users=3, messages_per_user=400)
    user_id = world.user_ids()[0]
    reading = f"SELECT kind, certificate FROM lists WHERE user_id = {user_id}"
    with MockServer(world, dialect=Dialect("documented", order=order)) as server:
        sync(mirror, server)
        world.add_messages(user_id, 250)
        server.forget()
        sync(mirror, server)
        assert missed(mirror, world) == []
        assert rows(mirror, reading)[0][0] == "end"
        assert len(server.calls("messages", user=user_id)) <= 4
        world.remove_message(user_id, world.message_ids(user_id)[300])
        world.add_messages(user_id, 1)
        sync(mirror, server)
        assert rows(mirror, reading) == [("whole", "counted")]
        assert missed(mirror, world) == []
        # The next run relies on what that one proved.
        sync(mirror, server)
        assert rows(mirror, reading)[0][0] == "end"


def test_list_of_a_user_who_is_gone_and_comes_back(mirror, scripted):
    service = Rows([user(1), user(2)], {1: [message(7)], 2: [message(7)]})
    server, kinds = scripted(service), "SELECT kind FROM lists ORDER BY user_id"
    for there, kind in [(True, "whole"), (False, "gone"), (True, "whole")]:
        service.messages = {each: [message(7)] for each in ((1, 2) if there else (1,))}
        sync(mirror, server)
        assert rows(mirror, kinds) == [("whole",), (kind,)]


def test_run_that_waits_longer_than_a_commit_may_take_has_not_ended(mirror):
    """A commit is due after two seconds."""
    with MockServer(World(seed=3, users=3, messages_per_user=1)) as server:
        server.on("messages", user=server.world.user_ids()[1]).fail("latency(2500)")
        sync(mirror, server)
        assert missed(mirror, server.world) == []


def test_commits_are_small_at_first_and_grow(mirror):
    seen = [0]
    with MockServer(World(seed=3, users=900, messages_per_user=(60, 60))) as server:
        sync(mirror, server, on_progress=lambda now: seen.append(now.messages))
    assert seen[-1] == 900 * 60
    # A kill costs little more than a sixteenth of what was done, and at first 12 responses.
    for done, committed in pairwise(seen):
        assert committed - done <= max(1_200, done / 16) + 99
    assert max(later - earlier for earlier, later in pairwise(seen)) > 2_500


@pytest.mark.parametrize(
    ("table_name", "users", "messages"), [("users", 600, 0), ("messages", 1, 1_000)]
)
def test_half_read_list_goes_on_at_its_page(mirror, table_name, users, messages):
    world = World(seed=4, users=users, messages_per_user=messages)
    with MockServer(world) as server, server.client(max_concurrency=1) as client:
        assert mirror.sync(client, max_requests=5).partial
        [(held,)] = rows(mirror, f"SELECT count(*) FROM {table_name}")
        server.forget()
        mirror.sync(client)
        assert min(call.offset or 0 for call in server.calls(table_name)) == held - 3 > 0
    assert missed(mirror, world) == []


def test_retries_count_and_one_without_budget_leaves_its_list_half_read(mirror):
    world = World(seed=4, users=1, messages_per_user=450)
    with MockServer(world) as server:
        server.clock.virtual()
        server.on("messages", offset=96).fail(Fault.status(500))
        with server.client() as client:
            report = mirror.sync(client, max_requests=4)
        assert (report.state, report.requests, sum(server.counts().values())) == ("partial", 4, 4)
    assert rows(mirror, "SELECT count(*) FROM messages") == [(99,)]


def test_deadline_that_passes_during_a_commit_is_not_the_end(mirror):
    with MockServer(World(users=2_000, messages_per_user=1)) as server:
        server.clock.virtual()
        with server.client(deadline=3) as client, pytest.raises(DeadlineExceededError):
            mirror.sync(client, on_progress=lambda _: server.clock.advance(3))


def test_given_users_are_read_without_the_list_of_users(mirror):
    with MockServer(World(seed=3, users=5, messages_per_user=2)) as server:
        first, second, *_, last = server.world.user_ids()
        report = sync(mirror, server, users=[second, last + 1, first, second])
        assert report.unknown_users == (last + 1,)
        assert {call.user for call in server.calls("messages")} == {first, second}
        assert (server.calls("users").count, sum(server.counts().values())) == (0, 5)
    assert rows(mirror, "SELECT DISTINCT user_id FROM messages ORDER BY 1") == [(first,), (second,)]


def test_rows_are_fetched_by_id_within_a_budget_and_given_out_before_a_failure():
    world = World(seed=11, users=30, messages_per_user=(2, 9))
    first, second, *_, refused = world.user_ids()
    gone, there = world.message_ids(first)[:2]
    world.remove_message(first, gone)
    world.remove_user(second)
    # Nothing is known of the last one, which cannot be requested.
    asked = [{"resource": "messages", "user_id": first, "id": each} for each in (gone, there)]
    asked += [{"resource": "users", "id": each} for each in (second, -1)]
    users = [{"resource": "users", "id": each} for each in world.user_ids()]

    with MockServer(world) as server, server.client(max_retries=1, max_concurrency=1) as client:

        def fetched(name: str, candidates: Any, **limits: Any) -> Iterator[int]:
            run = client._ask_rows(table("gone", candidates), **limits)
            while (found := run.next_batch()) is not None:
                yield from (each["id"] for each in arrow_rows(getattr(found, name)))

        assert list(fetched("messages", asked)) == [there]
        assert sorted(fetched("gone", asked)) == sorted([gone, second])
        assert len(list(fetched("users", users, max_requests=10))) == 10
        server.on("user", user=refused).fail(Fault.status(401))
        given: list[int] = []
        with pytest.raises(AuthenticationError):
            given.extend(fetched("users", users))
        assert sorted(given) == world.user_ids()[:-1]


# --- a service that fails for some rows, pages or offsets -----------------------------------------


class Chats:
    """A service of three users, of whom the second has the messages."""

    def __init__(self) -> None:
        self.users = users(3)
        self.messages = [message(number) for number in range(1, 151)]
        self.failing: set[int] = set()

    def __call__(self, request: Request) -> Any:
        rows, key = self.users, "users"
        if request.path.endswith("messages"):
            rows, key = self.messages if "/2/" in request.path else [], "messages"

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
