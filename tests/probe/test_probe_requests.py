"""What a probe sends, and what it does where the service fails or holds it back."""

import pytest

import backread
from backread.testing import Rate
from helpers.api_rows import message, user
from helpers.probed_service import WORLD, Rows, check, probed
from helpers.scripted_server import Request, answer

pytestmark = pytest.mark.backread(unexpected="allow", world=WORLD)

# --- a bounded number of GETs ---------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 3, 5, 8, 13, 30])
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


@pytest.mark.parametrize(
    "arguments",
    [{"max_requests": 0}, {"sample": -1}, {"max_requests": 10**9}],
)
def test_numbers_out_of_bounds_are_refused(face, backread_mock, arguments):
    client = face.client(backread_mock)
    with pytest.raises(ValueError, match=next(iter(arguments))):
        face.call(client.probe, **arguments)
    with pytest.raises(TypeError, match="sample"):
        face.call(client.probe, sample=True)
    assert backread_mock.calls().count == 0


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


# --- faults and limits ----------------------------------------------------------------------------


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


def test_a_rate_limit_is_obeyed(face, backread_mock):
    backread_mock.clock.virtual()
    backread_mock.rate = Rate(0.5, burst=4)
    profile = probed(face, backread_mock)
    refused = backread_mock.calls(status=429).count
    assert sum(backread_mock.clock.slept) > refused > 0
    assert profile.users.order is not None


@pytest.mark.parametrize(
    ("answered", "error"),
    [
        (answer(401, {"error": "who?"}), backread.AuthenticationError),
        (answer(403), backread.PermissionDeniedError),
        (answer(404), backread.NotFoundError),
        (answer(406), backread.StatusError),
        (answer(422), backread.BadRequestError),
        (answer(503), backread.ServerError),
        (answer(200, "<html>"), backread.DecodeError),
        (answer(200, {"users": 7}), backread.DecodeError),
    ],
)
def test_a_service_that_cannot_be_read_has_no_profile(face, scripted, answered, error):
    server = scripted(lambda request: answered)
    with pytest.raises(error):
        face.call(face.client(server, max_retries=0).probe)


def test_retries_count_too(face, backread_mock):
    backread_mock.clock.virtual()
    backread_mock.fault("messages: status(503)")
    profile = probed(face, backread_mock, max_requests=30)
    assert profile.requests == 30


def test_a_worker_that_is_to_reschedule_is_told_at_once(face, backread_mock):
    backread_mock.rate = Rate(0.01, burst=5)
    client = face.client(backread_mock, on_rate_limit="raise")
    with pytest.raises(backread.RateLimitError):
        face.call(client.probe)


def test_the_deadline_holds_for_the_whole_probe(face, backread_mock):
    backread_mock.clock.virtual()
    backread_mock.fault("users: latency(900)")
    with pytest.raises(backread.DeadlineExceededError):
        face.call(face.client(backread_mock, deadline=5).probe)
