"""`ServiceProfile`: it has no personal data, converts to JSON, and compares with a later one."""

import dataclasses
import json
import pickle
import re
from typing import Any

import pytest

from backread import Client, ServiceProfile
from backread.profile import Difference, Follows
from backread.testing import Fault, MockServer, World
from helpers.api_rows import message, user
from helpers.probed_service import WORLD, Rows, check
from helpers.scripted_server import Request, answer

SENTINEL = "Xq7Sentinel"
NUMBER = 77_123_456_789_012


@pytest.fixture(scope="module")
def profile(backread_server: Any) -> ServiceProfile:
    return probe(backread_server, "lenient")


@pytest.fixture(scope="module")
def documented(backread_server: Any) -> ServiceProfile:
    return probe(backread_server, "documented")


def shown(profile: ServiceProfile) -> str:
    """All that there is to see of a profile."""
    html = profile._repr_html_()
    return "\n".join([profile.to_json(), str(profile), repr(profile), html])


def test_profile_has_no_personal_data(face, scripted):
    private = {f"{SENTINEL} {n}": SENTINEL for n in range(3)}
    texts = dict.fromkeys(("name", "email", "reference", "last_url", "body"), SENTINEL)
    times = dict.fromkeys(("created_at", "updated_at", "online_at"), "1977-07-07T07:07:07.777Z")
    others = {"user_attributes": [{"name": SENTINEL, "value": SENTINEL}], "sender": private}
    fields = {**texts, **times, **others, **private, "sender_type": SENTINEL}
    users = [user(NUMBER + n, **fields) for n in range(30)]
    messages = [message(NUMBER + n, **fields) for n in range(25)]
    rows = Rows(users, {each["id"]: messages for each in users})

    def service(request: Request) -> bytes:
        if "limit" in request.query and request.query["limit"] in ("0", "100"):
            return answer(422, {"error": SENTINEL, **private})
        if request.headers["authorization"] != f"Bearer {server.secret}":
            return answer(401, f"<p>{SENTINEL}</p>", content_type=f"text/{SENTINEL} {SENTINEL}")
        return rows(request)

    server = scripted(service)
    profile = check(face.call(face.client(server).probe))
    assert profile.messages.rows > 0
    text = shown(profile)
    for secret in (SENTINEL, SENTINEL.lower(), str(NUMBER)[:10], "@"):
        assert secret not in text
    for place in (server.secret, server.vendor, server.url):
        assert place not in text
    # A fraction of a second may have any digits.
    for number in (1977, server.port):
        assert not re.search(rf"(?<![\d.]){number}", text)


@pytest.mark.backread(unexpected="allow")
def test_no_failure_quotes_an_answer(face, mock):
    mock.on("messages").fail("garbage()")
    mock.on("user").fail(Fault.status(500, body='{"oops": "Xq7Sentinel"}'))
    profile = check(face.call(face.client(mock, max_retries=0).probe))
    assert SENTINEL not in shown(profile)
    assert mock.secret not in shown(profile)
    assert profile.notes["messages.order"] == "the answer is not JSON"
    assert profile.notes["refusals.unknown_user"] == "the service answered 500"


def test_profile_pickles_and_is_read_if_a_later_release_adds_to_it(profile):
    same = pickle.loads(pickle.dumps(profile))
    assert (same, hash(same)) == (profile, hash(profile))
    record = json.loads(profile.to_json(indent=2))
    order = {"field": "id", "direction": "ascending", "exact": True}
    assert record["messages"]["order"] == order
    record["weather"] = "rain"
    record["users"]["colour"] = "blue"
    assert ServiceProfile.from_json(json.dumps(record)) == profile


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"profile_version": 1}, "version 1, .* reads version 2; probe the service"),
        ({"users": {}}, r"not a service profile: .*\$\.users has no rows, order"),
        ({"measured_at": "yesterday"}, r"\$\.measured_at is not a timestamp"),
        ({"measured_at": "2026-01-01T00:00:00"}, r"\$\.measured_at has no time zone"),
        ({"notes": {"a": 1}}, r"\$\.notes\.a has the wrong type, int"),
    ],
)
def test_profile_from_json_refuses_other_json(profile, change, says):
    record = {**json.loads(profile.to_json()), **change}
    with pytest.raises(ValueError, match=says):
        ServiceProfile.from_json(json.dumps(record))
    for text in ("[]", "{}", "{"):
        with pytest.raises(ValueError, match="not a service profile"):
            ServiceProfile.from_json(text)


def paths(found: list[Difference]) -> list[str]:
    return [each.path for each in found]


def probe(server: MockServer, dialect: str, world: World | None = None) -> ServiceProfile:
    with server.lane(world, dialect=dialect) as lane, lane.client() as client:
        return client.probe()


@pytest.mark.parametrize("dialect", ["documented", "hostile", "total=high"])
def test_differences_leave_out_new_rows(backread_server, dialect):
    world = World(**WORLD)
    before = probe(backread_server, dialect, world)
    world.add_users(40)
    for user_id in world.user_ids()[::3]:
        world.add_messages(user_id, 5)
    now = probe(backread_server, dialect.replace("stale", "exact"), world)
    assert before.differences(now) == []


CHANGES = {
    "order=ties": {"users.order", "users.stable", "messages.order", "messages.stable"},
    "max_limit=40 default_limit=10": {"largest_page", "default_page"},
    "over_limit=clamp strict=no": {"limit_zero", "limit_hundred", "refusals.other_accept"},
    "total=null": {"users.total_exact", "messages.total_exact"},
    "past_end=not_found": {"users.past_end", "messages.past_end"},
    "ids=text sender_type=others": set(),
}


@pytest.mark.parametrize("dialect", CHANGES)
def test_differences_name_each_finding_that_changed(backread_server, documented, dialect):
    found = documented.differences(probe(backread_server, dialect))
    assert set(paths(found)) == CHANGES[dialect]


def test_differences_of_a_sample_by_chance_are_left_out(documented):
    def follows(share: float) -> ServiceProfile:
        return dataclasses.replace(documented, updated_at_follows=Follows(share == 1, share, 10))

    assert follows(1.0).differences(follows(0.9)) == []
    assert follows(0.9).differences(follows(0.1)) == []
    assert paths(follows(1.0).differences(follows(0.1))) == ["updated_at_follows"]


def test_differences_leave_out_what_was_not_measured(documented):
    unknown = dataclasses.replace(
        documented,
        largest_page=None,
        users=dataclasses.replace(documented.users, order=None),
        notes={"largest_page": "not given", "users.order": "too few rows"},
    )
    assert unknown.differences(documented) == []
    assert [str(each) for each in documented.differences(unknown)] == [
        "largest_page: was 99, is none (not given)",
        "users.order: was by id, ascending, is none (too few rows)",
    ]
    known = dataclasses.replace(documented, largest_page=40)
    assert str(documented.differences(known)[0]) == "largest_page: was 99, is 40"


def table(profile: ServiceProfile) -> dict[str, str]:
    lines = (line.split("  ", 1) for line in str(profile).splitlines())
    return {name: value.strip() for name, value in lines}


def test_profile_str_is_a_table(profile, backread_server):
    shuffled = table(probe(backread_server, "lenient order=shuffled"))
    found = table(profile)
    assert (found["users: order"], shuffled["users: order"]) == ("by id, ascending", "none")
    assert found["limit hundred"] == "clamped, status 200, limit 99"
    assert found["messages: total exact"] == "yes"
    assert found["refusals: unknown user"] == "404"


def test_profile_str_says_why_a_finding_was_not_measured(scripted):
    server = scripted(Rows([], {}))
    with Client(server.url, server.secret, server.vendor) as client:
        found = table(client.probe(max_requests=1))
    reason = "not measured: the limit of 1 requests was reached"
    assert found["largest page"] == found["users: stable"] == reason
