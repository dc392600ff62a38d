"""What `probe()` finds is what the service does: the mock in every dialect, and odd services."""

import pytest

from backread import ServiceProfile
from backread.profile import FieldProfile, ListProfile
from backread.testing import Dialect, MockServer, World
from helpers.api_rows import message, user
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
            assert found.answer.status == 422
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
    assert profile.message_ids_unique is True
    assert profile.sender_types is not None
    assert {"user", "operator"} <= set(profile.sender_types)
    assert bool(set(profile.sender_types) - {"user", "operator"}) == (
        dialect.sender_type == "others"
    )
    for follows in (profile.updated_at_follows, profile.online_at_follows):
        assert follows is None or follows.holds
    compare_fields(profile, dialect)
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


def compare_fields(profile: ServiceProfile, dialect: Dialect) -> None:
    may_be_null = {"file_url", "picture_thumb_url"}
    seen = [
        (kind, name, found)
        for kind, found_fields in profile.fields.items()
        for name, found in found_fields.items()
    ]
    rows = [each for each in seen if each[0] in ("user", "message") and each[2].documented]
    nulls = {(k, n) for k, n, f in rows if f.null_share and n not in may_be_null}
    gaps = {(k, n) for k, n, f in rows if f.missing_share}
    assert bool(nulls) == (dialect.nulls in ("null", "both"))
    assert bool(gaps) == (dialect.nulls in ("missing", "both"))
    extra = {n for kind, n, found in seen if not found.documented and kind != "other_sender"}
    added = {"locale", "tags", "score", "company", "edited_at", "reactions", "has_more", "role"}
    assert extra == (added if dialect.extra_fields else set())
    kind = "string" if dialect.ids == "text" else "integer"
    assert profile.fields["user"]["id"] == FieldProfile(True, (kind,), 0.0, 0.0)
    assert profile.fields["message"]["id"].types == (kind,)
    assert profile.fields["user"]["user_attributes"].types == ("array",)
    assert profile.fields["message"]["sender"].types == ("object",)
    assert profile.fields["message"]["read_by_user"].types == ("boolean",)
    assert ("other_sender" in profile.fields) == (
        dialect.sender_type == "others" or dialect.nulls != "documented"
    )


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
        assert found is not None
        assert (found.status, found.content_type) == (status, "application/json")
        if status != 200:
            assert found.shape["error"]["code"] == "string"
