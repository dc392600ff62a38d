"""A profile by itself: it travels, it is compared, and there is nothing of anybody in it."""

import copy
import dataclasses
import json
import pickle
import re
from typing import Any

import pytest

from backread import Client, ServiceProfile
from backread._profile.text import lines
from backread.profile import Follows
from backread.testing import World
from helpers.api_rows import message, user
from helpers.probed_service import Rows, check
from helpers.scripted_server import Request, answer

SENTINEL = "Xq7Sentinel"
NUMBER = 77_123_456_789_012


@pytest.fixture(scope="module")
def profile(backread_server: Any) -> ServiceProfile:
    with backread_server.lane(dialect="lenient") as lane, lane.client() as client:
        measured: ServiceProfile = client.probe()
    return measured


# --- privacy --------------------------------------------------------------------------------------


def shown(profile: ServiceProfile) -> str:
    """All that there is to see of a profile."""
    html = profile._repr_html_()
    return "\n".join([profile.to_json(), str(profile), repr(profile), html])


def test_profile_has_no_personal_data(face, scripted):
    private = {f"{SENTINEL} {n}": SENTINEL for n in range(3)}
    users = [
        user(
            NUMBER + n,
            name=f"{SENTINEL} {n}",
            email=f"{SENTINEL}@example.com",
            reference=SENTINEL,
            last_url=f"https://example.com/{SENTINEL}",
            created_at="1977-07-07T07:07:07.777Z",
            updated_at="1977-07-07T07:07:07.777Z",
            online_at="1977-07-07T07:07:07.777Z",
            user_attributes=[{"name": SENTINEL, "value": SENTINEL, **private}],
            notes={"by": SENTINEL, f"{SENTINEL}@example.com": 1},
            **private,
        )
        for n in range(30)
    ]
    messages = [
        message(
            NUMBER + n,
            body=SENTINEL,
            created_at="1977-07-07T07:07:07.777Z",
            file_url=f"https://example.com/{SENTINEL}",
            # So many are no categories.
            sender_type=f"{SENTINEL}{n}",
            sender={"name": SENTINEL, **private},
            **private,
        )
        for n in range(25)
    ]
    head = {"etag": f'"{SENTINEL}"', "x-request-id": SENTINEL, "x-ratelimit-limit": SENTINEL}
    rows = Rows(users, {each["id"]: messages for each in users}, lambda request: head)

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
    assert "(other)" in profile.fields["user"]


@pytest.mark.backread(unexpected="allow")
@pytest.mark.parametrize("body", [SENTINEL, '{"oops": "Xq7Sentinel"}'])
def test_no_failure_quotes_an_answer(face, backread_mock, body):
    backread_mock.clock.virtual()
    backread_mock.on("messages").fail("garbage()")
    backread_mock.on("user").fail(f"status(500, body={json.dumps(body)})")
    profile = check(face.call(face.client(backread_mock, max_retries=0).probe))
    assert SENTINEL not in shown(profile)
    assert backread_mock.secret not in shown(profile)
    assert profile.notes["messages.order"] == "the answer is not JSON"
    assert profile.notes["refusals.unknown_user"] == "the service answered 500"


# --- JSON -----------------------------------------------------------------------------------------


def test_profile_pickles_and_converts_to_json(profile):
    for same in (
        ServiceProfile.from_json(profile.to_json()),
        ServiceProfile.from_json(profile.to_json(indent=2)),
        pickle.loads(pickle.dumps(profile)),
        copy.deepcopy(profile),
    ):
        assert same == profile
        assert hash(same) == hash(profile)
    assert profile.measured_at.tzinfo is not None
    with pytest.raises(dataclasses.FrozenInstanceError):
        profile.default_page = 7  # type: ignore[misc]


def test_the_keys_that_the_mirror_reads_are_there(profile):
    record = json.loads(profile.to_json())
    assert record["profile_version"] == 1
    assert record["largest_page"] == 99
    assert record["messages"]["total_exact"] is True
    order = {"field": "id", "direction": "ascending", "exact": True}
    assert record["messages"]["order"] == order


def test_what_a_later_release_adds_is_left_out(profile):
    record = json.loads(profile.to_json())
    record["weather"] = "rain"
    record["users"]["colour"] = "blue"
    assert ServiceProfile.from_json(json.dumps(record)) == profile


def test_a_newer_version_is_refused(profile):
    record = {**json.loads(profile.to_json()), "profile_version": 2}
    with pytest.raises(ValueError, match=r"version 2.*up to 1; install a newer backread"):
        ServiceProfile.from_json(json.dumps(record))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"profile_version": True}, "profile_version"),
        ({"default_page": "25"}, r"\$\.default_page has the wrong type, str"),
        ({"default_page": True}, r"\$\.default_page has the wrong type, bool"),
        ({"users": None}, r"\$\.users has the wrong type, NoneType"),
        ({"users": {}}, r"\$\.users has no rows, order"),
        ({"measured_at": "yesterday"}, r"\$\.measured_at is not a timestamp"),
        ({"measured_at": "2026-01-01T00:00:00"}, r"\$\.measured_at has no time zone"),
        ({"sender_types": [1]}, r"\$\.sender_types\[0\] has the wrong type, int"),
        ({"notes": {"a": 1}}, r"\$\.notes\.a has the wrong type, int"),
        ({"fields": {"user": {"id": []}}}, r"\$\.fields\.user\.id has the wrong type, list"),
    ],
)
def test_profile_from_dict_refuses_other_dicts(profile, change, says):
    record = {**json.loads(profile.to_json()), **change}
    with pytest.raises(ValueError, match=f"not a service profile: .*{says}"):
        ServiceProfile.from_json(json.dumps(record))


@pytest.mark.parametrize("text", ["", "[]", "7", "{}", "{"])
def test_what_is_no_json_object_is_refused(text):
    with pytest.raises(ValueError, match="not a service profile"):
        ServiceProfile.from_json(text)


# --- comparison -----------------------------------------------------------------------------------


def test_the_same_service_later_differs_in_nothing(backread_server, profile):
    world = World(seed=9, users=300, messages_per_user=(0, 200))
    with backread_server.lane(world, dialect="lenient") as lane, lane.client() as client:
        later = client.probe()
    assert profile.requests != later.requests or profile.measured_at != later.measured_at
    assert profile.differs(later) == later.differs(profile) == []


def test_what_differs_is_named(backread_server, profile):
    def probe(dialect: str) -> ServiceProfile:
        with backread_server.lane(dialect=dialect) as lane, lane.client() as client:
            measured: ServiceProfile = client.probe()
        return measured

    other = probe("lenient max_limit=50 order=newest nulls=null")
    paths = profile.differs(other)
    assert {"largest_page", "limit_hundred.applied", "fields.user.email"} <= set(paths)
    assert {"users.order.direction", "messages.order.direction"} <= set(paths)
    assert paths == sorted(paths)
    assert "users.order" in profile.differs(probe("lenient order=shuffled"))


# --- the table ------------------------------------------------------------------------------------


def test_profile_str_is_a_table(profile):
    lines = dict(line.split("  ", 1) for line in str(profile).splitlines())
    found = {name: value.strip() for name, value in lines.items()}
    assert found["users: order"] == "by id, ascending"
    assert found["limit 100"] == "clamped, status 200, limit 99"
    assert found["messages: total is exact"] == "yes"
    assert found["user.locale"] == "string, undocumented"
    assert found["answers 304"] == "not measured"
    assert found["note: http.not_modified"]


def test_profile_renders_as_html(profile):
    html = profile._repr_html_()
    assert "<table><caption>ServiceProfile</caption>" in html
    assert '>users: order</th><td dir="auto">by id, ascending</td>' in html


def test_what_is_not_measured_is_said(scripted):
    server = scripted(Rows([], {}))
    with Client(server.url, server.secret, server.vendor) as client:
        profile = client.probe(max_requests=1)
    text = str(profile)
    assert "largest page" in text
    assert text.count("not measured") > 10
    assert "the limit of 1 requests was reached" in text
    assert dict(lines(profile))["users: order"] == "not measured"


def test_order_that_was_looked_for_in_vain_is_said(backread_server):
    with backread_server.lane(dialect="lenient order=shuffled") as lane, lane.client() as client:
        found = client.probe()
    rows = dict(lines(found))
    assert (rows["users: order"], rows["messages: order"]) == ("none found", "none found")


def test_one_row_and_one_user_are_not_many(profile):
    follows = Follows(holds=True, share=1.0, users=1)
    rows = dict(lines(dataclasses.replace(profile, default_page=1, updated_at_follows=follows)))
    assert rows["default page"] == "1 row"
    assert rows["updated_at follows messages"].startswith("yes, for 100% of 1 user: ")
