"""What `probe()` finds is what the service does: the mock in every dialect, and odd services."""

import pytest

from backread import ServiceProfile
from backread.profile import ListProfile
from backread.testing import Dialect, MockServer, World
from helpers.api_rows import user
from helpers.probed_service import MOST, WORLD, Rows, probed

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
    assert profile.requests <= MOST


def test_a_service_that_takes_any_secret(face):
    with MockServer(World(**WORLD), dialect="strict=no") as lenient:
        found = probed(face, lenient).refusals.wrong_secret
    assert found == 200


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


@pytest.mark.parametrize("messages", [0, 1])
def test_a_service_with_one_user(face, backread_server, messages):
    with backread_server.lane(World(users=1, messages_per_user=(messages, messages))) as lane:
        profile = probed(face, lane)
    assert profile.users.rows == 1
    assert profile.messages.rows == messages
    assert profile.users.order is profile.users.stable is None
    assert profile.users.total_exact is profile.messages.total_exact is True
    assert (profile.updated_at_follows is None) == (messages == 0)
    assert profile.refusals.unknown_message is not None


# --- odd rows -------------------------------------------------------------------------------------


def test_a_field_that_stays_behind_does_not_follow(face, backread_mock):
    for user_id in backread_mock.world.user_ids():
        backread_mock.world.edit_user(user_id, updated_at="2001-01-01T00:00:00.000Z")
    profile = probed(face, backread_mock)
    assert profile.updated_at_follows is not None
    assert (profile.updated_at_follows.holds, profile.updated_at_follows.share) == (False, 0.0)
    assert profile.online_at_follows is not None
    assert profile.online_at_follows.holds


def test_users_without_a_number_as_id_are_not_sampled(face, scripted):
    users = [user(f"u-{n}") for n in range(30)]
    profile = probed(face, scripted(Rows(users, {})))
    assert profile.users.rows == 30
    assert "whole number" in profile.notes["messages.order"]


def compare(profile: ServiceProfile, dialect: Dialect, users: int) -> None:
    """Each finding against the switch that it is about."""
    largest, default = dialect.max_limit, min(dialect.default_limit, dialect.max_limit)
    assert (profile.default_page, profile.largest_page) == (default, largest)
    for found, limit, nearest in (
        (profile.limit_zero, 0, 1),
        (profile.limit_hundred, 100, largest),
    ):
        assert found is not None
        if dialect.over_limit == "refuse":
            assert (found.treatment, found.applied) == ("refused", None), limit
            assert found.status == 422
        else:
            clamps = dialect.over_limit == "clamp"
            word = "clamped" if clamps else "ignored"
            assert found.treatment == (word if nearest != default else None), limit
            assert found.applied == (nearest if clamps else default), limit
    for kind in (profile.users, profile.messages):
        compare_list(kind, dialect)
    if dialect.total in ("low", "high"):
        assert abs(profile.users.total_error or 0) == 1 + users // 10
    # A few pages may all be whole by chance. Where totals are true, those of many lists count.
    for kind in (profile.users, profile.messages):
        assert kind.short_pages in (False, dialect.short_pages)
    if profile.messages.total_exact:
        assert profile.messages.short_pages == dialect.short_pages
    for follows in (profile.updated_at_follows, profile.online_at_follows):
        assert follows is None or follows.holds
    compare_refusals(profile, dialect)


def compare_list(kind: ListProfile, dialect: Dialect) -> None:
    direction = "descending" if dialect.order == "newest" else "ascending"
    if dialect.order == "shuffled":
        assert kind.order is None
    else:
        assert kind.order is not None
        assert (kind.order.field, kind.order.direction) == ("id", direction)
        assert kind.order.exact == (dialect.order != "ties")
    assert kind.stable == (dialect.order in ("id", "newest"))
    assert kind.total_exact == (dialect.total in ("exact", "stale"))
    if dialect.total == "null":
        assert kind.total_error is None
    else:
        assert kind.total_error is not None
        sign = {"low": -1, "capped": -1, "high": 1}.get(dialect.total, 0)
        assert (kind.total_error > 0) - (kind.total_error < 0) == sign
    gives = {"empty": "empty", "not_found": "error", "last_page": "earlier_rows"}
    assert kind.past_end is not None
    assert kind.past_end.gives == gives[dialect.past_end]
    assert kind.past_end.status == (404 if dialect.past_end == "not_found" else 200)


def compare_refusals(profile: ServiceProfile, dialect: Dialect) -> None:
    refusals = profile.refusals
    for found, status in (
        # A secret that is no lane's is answered by the server itself, which is strict.
        (refusals.wrong_secret, 401),
        (refusals.other_accept, 406 if dialect.strict else 200),
        (refusals.unknown_user, 404),
        (refusals.messages_of_unknown_user, 404),
        (refusals.unknown_message, 404),
    ):
        assert found == status
