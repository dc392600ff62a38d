"""`learn`: a dialect from a profile, so that the mock is probed as the service was."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from backread import ServiceProfile
from backread.profile import AnswerProfile, FieldProfile, Follows, ListOrder, PastEnd
from backread.testing import Dialect, MockServer, World, learn
from probing import WORLD
from test_probe import DIALECTS


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(**WORLD)) as running:
        yield running


def probed(server: MockServer, dialect: Dialect | str, **options: Any) -> ServiceProfile:
    with server.lane(dialect=dialect, **options) as lane, lane.client() as client:
        return client.probe()


@pytest.fixture(scope="module")
def plain(server: MockServer) -> ServiceProfile:
    return probed(server, "documented")


@pytest.mark.parametrize("text", DIALECTS)
def test_the_mock_is_probed_as_the_service_was(server, text):
    profile = probed(server, text, seed=7)
    learned = learn(profile)
    again = probed(server, str(learned), seed=7)
    assert profile.differs(again) == []
    assert profile.differences(again) == []


# What a probe cannot see: a total that is behind only once rows came, a cap that nothing reaches,
# what a cap is where all lists are above it, and how large ids are.
UNSEEN = {"total=stale", "hostile", "ids=large", *(d for d in DIALECTS if "capped" in d)}


@pytest.mark.parametrize("text", sorted(set(DIALECTS) - UNSEEN))
def test_the_dialect_itself_is_found(server, text):
    assert learn(probed(server, text)).dialect == Dialect(text)


def test_a_dialect_can_be_had_alone(server):
    profile = probed(server, "lenient")
    assert Dialect.from_profile(profile) == Dialect("lenient")
    assert str(learn(profile)) == "lenient"


def test_nothing_is_left_out_of_what_the_documented_mock_does(plain):
    assert learn(plain).left_out == {}


def test_a_cap_is_told_from_a_low_total_by_the_number_of_users(server):
    users = server.world.total_users
    capped, low = probed(server, "total=capped total_cap=100"), probed(server, "total=low")
    assert learn(capped, total_users=users).dialect == Dialect("total=capped total_cap=100")
    assert learn(low, total_users=users).dialect == Dialect("total=low")
    assert "total_cap=NUMBER" in learn(capped).left_out["users.total_error"]


def test_a_cap_above_all_lists_of_messages_is_a_cap(server):
    with server.lane(World(users=900, messages_per_user=(1, 20)), dialect="total_cap=400") as lane:
        lane.dialect = lane.dialect.with_(total="capped")
        with lane.client() as client:
            profile = client.probe()
    assert profile.messages.total_exact
    assert learn(profile).dialect.total == "capped"


def order(field: str, direction: Any = "ascending", *, exact: bool = True) -> ListOrder:
    return ListOrder(field, direction, exact)


def test_the_harder_order_of_the_two_kinds_of_list_is_taken(plain):
    users = replace(plain.users, order=order("id", "descending"))
    learned = learn(replace(plain, users=users))
    assert learned.dialect.order == "newest"
    assert learned.left_out == {
        "messages.order": "by id, ascending; the mock's lists are all in one order, newest"
    }


REFUSED = AnswerProfile(404, "application/json", {"message": "string"})
HALF = FieldProfile(True, ("string",), 0.5, 0.0)
ODD = {
    "users.order": lambda p: replace(p, users=replace(p.users, order=order("online_at"))),
    "messages.order": lambda p: replace(
        p, messages=replace(p.messages, order=order("id", exact=False))
    ),
    "users.past_end": lambda p: replace(p, users=replace(p.users, past_end=PastEnd("error", 400))),
    "limit_zero": lambda p: replace(p, limit_zero=replace(p.limit_zero, treatment="ignored")),
    "limit_hundred": lambda p: replace(
        p, limit_hundred=replace(p.limit_hundred, treatment="other")
    ),
    "largest_page": lambda p: replace(p, largest_page=None),
    "default_page": lambda p: replace(p, default_page=100),
    "message_ids_unique": lambda p: replace(p, message_ids_unique=False),
    "updated_at_follows": lambda p: replace(p, updated_at_follows=Follows(False, 0.5, 10)),
    "refusals.wrong_secret": lambda p: replace(
        p, refusals=replace(p.refusals, wrong_secret=replace(REFUSED, status=403))
    ),
    "refusals.unknown_user": lambda p: replace(
        p, refusals=replace(p.refusals, unknown_user=REFUSED)
    ),
    "http.version": lambda p: replace(p, http=replace(p.http, version="HTTP/2.0")),
    "http.compression": lambda p: replace(p, http=replace(p.http, compression="gzip")),
    "http.validators": lambda p: replace(p, http=replace(p.http, validators=("etag",))),
    "http.rate_limit_headers": lambda p: replace(
        p, http=replace(p.http, rate_limit_headers=("x-ratelimit-limit",))
    ),
    "http.statuses": lambda p: replace(p, http=replace(p.http, statuses={200: 9, 429: 1})),
    "sender_types": lambda p: replace(p, sender_types=("operator", "robot", "user")),
    "fields": lambda p: replace(p, fields={**p.fields, "message": {"body": HALF}}),
    "fields.extra": lambda p: replace(
        p, fields={**p.fields, "user": {"plan": replace(HALF, documented=False)}}
    ),
    "fields.user.id": lambda p: replace(p, fields={**p.fields, "message": {"id": HALF}}),
}


@pytest.mark.parametrize("path", ODD)
def test_what_no_switch_can_do_is_said(plain, path):
    learned = learn(ODD[path](plain))
    assert path in learned.left_out
    assert len(learned.left_out[path]) > 10


def test_a_rate_cannot_be_learned_and_is_said(server):
    profile = probed(server, "documented", rate="1000/s burst=500 says=headers")
    assert "--rate" in learn(profile).left_out["http.rate_limit_headers"]


def test_a_mock_that_takes_any_secret(plain):
    with MockServer(World(**WORLD), dialect="strict=no") as lenient, lenient.client() as client:
        profile = client.probe()
    learned = learn(profile)
    assert (learned.dialect, learned.left_out) == (Dialect("strict=no"), {})


@pytest.mark.backread(world={"users": 0, "messages_per_user": (0, 0)}, unexpected="allow")
def test_a_service_without_rows_teaches_what_it_can(backread_mock):
    backread_mock.dialect = "max_limit=40 past_end=not_found"
    with backread_mock.client() as client:
        learned = learn(client.probe())
    assert learned.dialect == Dialect("max_limit=40")
