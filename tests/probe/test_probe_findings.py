"""What `probe()` finds is what the service does: the mock in every dialect, and odd services."""

import pytest

from backread.testing import Dialect, MockServer, World
from helpers.api_rows import message, user
from helpers.expected_findings import compare
from helpers.probed_service import MOST, WORLD, Rows, probed
from helpers.scripted_server import Request, answer

pytestmark = pytest.mark.backread(unexpected="allow", world=WORLD)


# --- dialects -------------------------------------------------------------------------------------

DIALECTS = [
    "documented",
    "lenient",
    "hostile",
    "strict=no",
    "over_limit=clamp",
    "over_limit=ignore",
    "max_limit=40",
    "over_limit=clamp max_limit=40",
    "over_limit=ignore max_limit=40",
    "over_limit=clamp max_limit=25",
    "over_limit=ignore max_limit=25",
    "default_limit=7",
    "default_limit=1 over_limit=clamp",
    "default_limit=99 over_limit=ignore",
    "order=newest",
    "order=ties",
    "order=shuffled",
    "total=stale",
    "total=capped total_cap=30",
    "total=capped total_cap=100",
    "total=null",
    "total=low",
    "total=high",
    "past_end=not_found",
    "past_end=last_page",
    "past_end=not_found total=high",
    "past_end=last_page total=null",
    "nulls=null",
    "nulls=missing",
    "nulls=both",
    "sender_type=others",
    "extra_fields=some",
    "ids=large",
    "ids=text",
    "short_pages=some",
    "short_pages=some total=high max_limit=50",
]


@pytest.mark.parametrize("text", DIALECTS)
def test_every_finding_is_what_the_dialect_says(face, backread_mock, text):
    backread_mock.dialect = text
    profile = probed(face, backread_mock)
    compare(profile, Dialect(text), backread_mock.world.total_users)
    assert profile.http.statuses[200] > 10
    assert profile.requests <= MOST


def test_a_service_that_takes_any_secret(face):
    with MockServer(World(**WORLD), dialect="strict=no") as lenient:
        found = probed(face, lenient).refusals.wrong_secret
    assert found is not None
    assert (found.status, found.shape) == (200, None)


def test_a_stale_total_shows_once_rows_were_added(face, backread_mock):
    backread_mock.dialect = "total=stale"
    backread_mock.world.add_users(3)
    users = probed(face, backread_mock).users
    assert (users.total_exact, users.total_error) == (False, -3)


def test_hundred_thousand_users_cost_no_more(face, backread_server):
    world = World(seed=3, users=100_000, messages_per_user=(0, 2000))
    for dialect in ("total=null", "total=high", "total=capped", "documented"):
        with backread_server.lane(world, dialect=dialect) as lane:
            profile = probed(face, lane)
        assert profile.users.total_exact == (dialect == "documented")
        assert profile.requests <= MOST
    assert profile.requests <= 45


# --- small services -------------------------------------------------------------------------------


def test_a_service_without_users(each_face, backread_server):
    with backread_server.lane(World(users=0)) as lane:
        profile = probed(each_face, lane)
    assert (profile.default_page, profile.largest_page) == (25, 99)
    assert (profile.users.rows, profile.users.total_exact) == (0, True)
    assert profile.users.past_end is None
    assert profile.notes["messages.order"] == "no user was read"
    assert profile.refusals.unknown_user is not None
    assert profile.sender_types is None


@pytest.mark.parametrize("messages", [0, 1])
def test_a_service_with_one_user(face, backread_server, messages):
    with backread_server.lane(World(users=1, messages_per_user=(messages, messages))) as lane:
        profile = probed(face, lane)
    assert profile.users.rows == 1
    assert profile.messages.rows == messages
    assert profile.users.order is profile.users.stable is profile.message_ids_unique is None
    assert profile.users.total_exact is profile.messages.total_exact is True
    assert (profile.updated_at_follows is None) == (messages == 0)
    assert profile.refusals.unknown_message is not None


# --- odd rows -------------------------------------------------------------------------------------


def test_message_ids_may_be_unique_for_each_user_alone(face, scripted):
    users = [user(n) for n in (1, 2, 3)]
    shared = scripted(Rows(users, {n: [message(1), message(2)] for n in (1, 2, 3)}))
    assert probed(face, shared).message_ids_unique is False
    own = scripted(Rows(users, {n: [message(n * 10)] for n in (1, 2, 3)}))
    assert probed(face, own).message_ids_unique is True


def test_a_field_that_stays_behind_does_not_follow(face, backread_mock):
    for user_id in backread_mock.world.user_ids():
        backread_mock.world.edit_user(user_id, updated_at="2001-01-01T00:00:00.000Z")
    profile = probed(face, backread_mock)
    assert profile.updated_at_follows is not None
    assert (profile.updated_at_follows.holds, profile.updated_at_follows.share) == (False, 0.0)
    assert profile.online_at_follows is not None
    assert profile.online_at_follows.holds


def test_users_without_a_number_as_id_cannot_be_asked_for(face, scripted):
    users = [user(f"u-{n}") for n in range(30)]
    profile = probed(face, scripted(Rows(users, {})))
    assert profile.users.rows == 30
    assert "whole number" in profile.notes["messages.order"]
    assert profile.fields["user"]["id"].types == ("string",)


# --- HTTP -----------------------------------------------------------------------------------------


def test_compression_and_validators(face, scripted):
    rows = Rows([user(n) for n in range(1, 30)], {n: [] for n in range(1, 30)})

    def service(request: Request) -> bytes:
        if request.headers.get("if-none-match") == 'W/"7"':
            return answer(304)
        rows.head = lambda request: {"etag": 'W/"7"', "x-ratelimit-remaining": "9"}
        return rows(request)

    http = probed(face, scripted(service)).http
    assert (http.validators, http.not_modified) == (("etag",), True)
    assert http.rate_limit_headers == ("x-ratelimit-remaining",)
    assert (http.version, http.compression) == ("HTTP/1.1", "none")

    def dated(request: Request) -> bytes:
        rows.head = lambda request: {"last-modified": "Tue, 14 Nov 2023 22:13:50 GMT"}
        return rows(request)

    http = probed(face, scripted(dated)).http
    assert (http.validators, http.not_modified) == (("last-modified",), False)


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_a_compressed_page_is_seen_as_it_was_sent(face, scripted, coding):
    rows = Rows([user(n) for n in range(1, 30)], {n: [] for n in range(1, 30)})

    def service(request: Request) -> bytes:
        # Only the one that the probe does not decode: its body is not looked at.
        plain = request.headers.get("accept-encoding") != "gzip, br, zstd"
        return rows(request) if plain else answer(200, b"\x1f", {"content-encoding": coding})

    assert probed(face, scripted(service)).http.compression == coding
