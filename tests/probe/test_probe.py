"""`probe()`: what it finds in every dialect and odd services, and what it sends and tolerates."""

import pytest

import backread
from backread import ServiceProfile
from backread.profile import ListProfile
from backread.testing import Dialect, World
from helpers.api_rows import message, user
from helpers.probed_service import MOST, WORLD, Rows, check, probed
from helpers.scripted_server import Request, answer

pytestmark = pytest.mark.backread(unexpected="allow", world=WORLD)


DIALECTS = [
    "documented",
    "lenient",
    "hostile",
    "strict=no",
    "over_limit=clamp default_limit=7",
    "over_limit=ignore max_limit=40 order=newest",
    "order=ties past_end=not_found",
    "order=shuffled past_end=last_page",
    "total=stale nulls=both sender_type=others",
    "total=capped total_cap=30 extra_fields=some",
    "total=null ids=large",
    "total=low ids=text",
    "short_pages=some",
    "short_pages=some total=high max_limit=50",
]


@pytest.mark.parametrize("text", DIALECTS)
def test_every_finding_is_what_the_dialect_says(face, backread_mock, text):
    backread_mock.dialect = text
    profile = probed(face, backread_mock)
    compare(profile, Dialect(text), backread_mock.world.total_users)
    assert profile.requests <= MOST


def test_hundred_thousand_users_cost_no_more(face, backread_server):
    world = World(seed=3, users=100_000, messages_per_user=(0, 2000))
    for dialect in ("total=null", "documented"):
        with backread_server.lane(world, dialect=dialect) as lane:
            profile = probed(face, lane)
        assert profile.users.total_exact == (dialect == "documented")
        assert profile.requests <= MOST
    assert profile.requests <= 45


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


@pytest.mark.parametrize("most", [1, 3, 8, 30])
@pytest.mark.parametrize("dialect", ["documented", "hostile total=high", "max_limit=3"])
def test_no_more_is_sent_than_allowed(face, backread_mock, backread_server, most, dialect):
    backread_mock.dialect = dialect
    before = sum(backread_server.counts().values())
    profile = probed(face, backread_mock, max_requests=most)
    sent = backread_mock.calls().count
    # The request with the made-up secret is in no lane of a test.
    strays = sum(backread_server.counts().values()) - before
    assert profile.requests == sent + strays <= most
    assert any("limit of" in reason for reason in profile.notes.values())


def test_the_sample_is_so_many_users(face, backread_mock):
    assert probed(face, backread_mock, sample=0).notes["messages.order"] == "no user was read"
    small = probed(face, backread_mock, sample=3)
    large = probed(face, backread_mock, sample=40)
    assert small.messages.rows < large.messages.rows
    assert small.requests < large.requests
    client = face.client(backread_mock)
    sent = backread_mock.calls().count
    for wrong in ({"max_requests": 0}, {"sample": -1}, {"max_requests": 10**9}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            face.call(client.probe, **wrong)
    with pytest.raises(TypeError, match="sample"):
        face.call(client.probe, sample=True)
    assert backread_mock.calls().count == sent


def test_what_is_sent_is_get_and_odd_only_where_it_must(face, scripted):
    server = scripted(Rows([user(n) for n in range(1, 60)], {n: [] for n in range(1, 60)}))
    probed(face, server)
    assert {request.method for request in server.requests} == {"GET"}
    secrets = [request.headers["authorization"] for request in server.requests]
    [made_up] = [each for each in secrets if each != f"Bearer {server.secret}"]
    assert server.secret not in made_up
    accepts = [request.headers["accept"] for request in server.requests]
    [other] = [each for each in accepts if each != f"application/vnd.{server.vendor}.v1+json"]
    assert server.vendor not in other
    limits = [request.query.get("limit") for request in server.requests]
    assert limits.count("0") == limits.count("100") == 1
    targets = [request.target for request in server.requests]
    assert targets.count("/external/users") == 1


def test_the_made_up_secret_follows_no_redirect_to_another_origin(face, scripted):
    elsewhere = scripted(answer(200, {}))
    rows = Rows([user(1)], {1: [message(7)]})

    def service(request: Request) -> bytes:
        if request.headers["authorization"].endswith("scripted-secret"):
            return rows(request)
        return answer(302, b"", {"location": f"{elsewhere.url}/external/users"})

    profile = probed(face, scripted(service))
    assert profile.refusals.wrong_secret is None
    assert "redirect" in profile.notes["refusals.wrong_secret"]
    assert not elsewhere.requests


def test_passing_failures_change_no_finding(face, backread_mock):
    usual = probed(face, backread_mock)
    backread_mock.clock.virtual()
    backread_mock.fault(
        "users: status(503) x1 each; messages every=5: reset(); messages every=7: garbage()"
    )
    profile = probed(face, backread_mock)
    assert usual.differences(profile) == []
    assert backread_mock.calls("users", status=503).count > 0
    assert profile.requests > usual.requests


def test_a_part_that_fails_leaves_the_rest(face, backread_mock):
    backread_mock.clock.virtual()
    backread_mock.fault("messages: status(500)")
    profile = check(face.call(face.client(backread_mock, max_retries=1).probe))
    assert profile.users.order is not None
    assert profile.messages.order is None
    assert profile.notes["messages.order"] == "the service answered 500"
    assert profile.refusals.messages_of_unknown_user is None


def test_an_odd_question_that_breaks_the_service_is_a_finding(face, scripted):
    rows = Rows([user(n) for n in range(1, 30)], {n: [] for n in range(1, 30)})
    failed = []

    def service(request: Request) -> bytes:
        if request.query.get("limit") == "0":
            failed.append(request)
            return answer(500, {"trace": ["ZeroDivisionError"]})
        return rows(request)

    found = probed(face, scripted(service)).limit_zero
    assert found is not None
    assert (found.treatment, found.status) == ("other", 500)
    # It is the answer, so it is not asked for once more.
    assert len(failed) == 1


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("status(401)", backread.AuthenticationError),
        ("status(404)", backread.NotFoundError),
        ("status(422)", backread.BadRequestError),
        ("status(429, retry_after=100)", backread.RateLimitError),
        ("status(503)", backread.ServerError),
        ('garbage("<html>")', backread.DecodeError),
        ("latency(900)", backread.DeadlineExceededError),
    ],
)
def test_a_service_that_cannot_be_read_has_no_profile(face, mock, fault, error):
    mock.fault(f"users: {fault}")
    options = {"max_retries": 0, "on_rate_limit": "raise", "deadline": 0.8}
    with pytest.raises(error):
        face.call(face.client(mock, **options).probe)
