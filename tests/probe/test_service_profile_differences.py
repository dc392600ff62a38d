"""`ServiceProfile.differences`: what moved, and not what two samples of one service differ in."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from backread import ServiceProfile
from backread.profile import Difference, FieldProfile, Follows, ListOrder
from backread.testing import MockServer, World
from helpers.probed_service import WORLD


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(**WORLD)) as running:
        yield running


def probed(server: MockServer, dialect: str, world: World | None = None) -> ServiceProfile:
    with server.lane(world, dialect=dialect) as lane, lane.client() as client:
        return client.probe()


@pytest.fixture(scope="module")
def profile(server: MockServer) -> ServiceProfile:
    return probed(server, "documented")


def paths(found: list[Difference]) -> list[str]:
    return [each.path for each in found]


# Under which habits a field may be null, which senders write, and where totals are off.
@pytest.mark.parametrize("dialect", ["documented", "hostile", "total=high", "nulls=null"])
def test_rows_that_come_are_no_move(server, dialect):
    world = World(**WORLD)
    before = probed(server, dialect, world)
    world.add_users(40)
    for user_id in world.user_ids()[::3]:
        world.add_messages(user_id, 5)
    now = probed(server, dialect.replace("stale", "exact"), world)
    assert paths(before.differences(now)) == []


MOVES = {
    "order=newest": {"users.order", "messages.order"},
    "order=ties": {"users.order", "users.stable", "messages.order", "messages.stable"},
    "max_limit=40": {"largest_page"},
    "default_limit=10": {"default_page"},
    "over_limit=clamp": {"limit_zero", "limit_hundred"},
    "total=null": {"users.total_exact", "messages.total_exact", "fields.page.total.null_share"},
    "past_end=not_found": {"users.past_end", "messages.past_end"},
    "sender_type=others": {"sender_types"},
    "strict=no": {"refusals.other_accept"},
    "ids=text": {"fields.user.id.types", "fields.message.id.types", "fields.user_sender.id.types"},
}


@pytest.mark.parametrize("dialect", MOVES)
def test_a_habit_that_changed_is_named(server, profile, dialect):
    found = paths(profile.differences(probed(server, dialect)))
    assert MOVES[dialect] <= set(found)
    allowed = {path.rpartition(".")[0] for path in MOVES[dialect]} | MOVES[dialect]
    assert {path for path in found if not any(path.startswith(each) for each in allowed)} == set()


def test_each_is_a_line_of_what_was_and_is(server, profile):
    lines = list(map(str, profile.differences(probed(server, "order=newest max_limit=40"))))
    assert lines[0] == "largest_page: was 99, is 40"
    assert "users.order: was by id, ascending, is by id, descending" in lines


def with_share(profile: ServiceProfile, rows: int, **shares: Any) -> ServiceProfile:
    found = replace(profile.fields["user"]["reference"], **shares)
    fields = {**profile.fields, "user": {**profile.fields["user"], "reference": found}}
    return replace(profile, users=replace(profile.users, rows=rows), fields=fields)


@pytest.mark.parametrize(
    ("before", "after", "rows", "moved"),
    [
        (0.01, 0.0, 200, False),
        (0.01, 0.0, 2_000, True),
        (0.0, 0.005, 200, False),
        (0.0, 0.2, 200, True),
        (0.5, 0.4, 2_000, False),
    ],
)
@pytest.mark.parametrize("share", ["null_share", "missing_share"])
def test_what_a_sample_may_miss_is_no_move(profile, share, before, after, rows, moved):
    earlier = with_share(profile, rows, **{share: before})
    later = with_share(profile, rows, **{share: after})
    wanted = [f"fields.user.reference.{share}"] if moved else []
    assert paths(earlier.differences(later)) == wanted


def without(profile: ServiceProfile, field: str) -> ServiceProfile:
    left = {name: found for name, found in profile.fields["user"].items() if name != field}
    return replace(profile, fields={**profile.fields, "user": left})


def test_a_field_that_came_or_went_is_one(profile):
    less = without(profile, "reference")
    assert [(each.path, each.note) for each in profile.differences(less)] == [
        ("fields.user.reference", "gone")
    ]
    assert [(each.path, each.note) for each in less.differences(profile)] == [
        ("fields.user.reference", "new")
    ]


def test_a_field_that_most_rows_lacked_may_be_missed(profile):
    rare = FieldProfile(False, ("string",), 0.0, 0.995)
    fields = {**profile.fields, "user": {**profile.fields["user"], "plan": rare}}
    assert replace(profile, fields=fields).differences(profile) == []


def test_a_type_that_came_is_one_and_one_that_did_not_is_none(profile):
    either = with_share(profile, 200, types=("integer", "string"))
    assert paths(profile.differences(either)) == ["fields.user.reference.types"]
    assert either.differences(profile) == []


def test_senders_that_were_not_seen_this_time_are_none(profile):
    others = replace(profile, sender_types=("bot", "operator", "user"))
    assert others.differences(profile) == []
    [found] = profile.differences(others)
    assert str(found).endswith("(new: bot)")


def test_a_timestamp_that_stays_behind_for_one_user_of_many_may_be_missed(profile):
    def follows(share: float) -> ServiceProfile:
        return replace(profile, updated_at_follows=Follows(share == 1, share, 10))

    assert follows(1.0).differences(follows(0.9)) == []
    assert paths(follows(1.0).differences(follows(0.1))) == ["updated_at_follows.holds"]


def test_what_was_not_measured_cannot_have_moved(profile):
    unknown = replace(
        profile,
        largest_page=None,
        users=replace(profile.users, order=None),
        notes={"largest_page": "not given", "users.order": "too few rows"},
    )
    assert unknown.differences(profile) == []
    found = profile.differences(unknown)
    assert [(each.path, each.note) for each in found] == [
        ("largest_page", "not given"),
        ("users.order", "too few rows"),
    ]


def test_no_order_at_all_is_a_finding(profile):
    from backread._profile.text import NO_ORDER

    none = replace(
        profile, users=replace(profile.users, order=None), notes={"users.order": NO_ORDER}
    )
    assert [str(each) for each in profile.differences(none)] == [
        "users.order: was by id, ascending, is none"
    ]
    other = replace(profile, users=replace(profile.users, order=ListOrder("id", "ascending", True)))
    assert [each.path for each in none.differences(other)] == ["users.order"]


def test_a_difference_is_a_record_as_others_are(profile):
    found = Difference("largest_page", 99, 50)
    assert found == Difference("largest_page", 99, 50)
    assert hash(found) == hash(Difference("largest_page", 99, 50))
    with pytest.raises(AttributeError):
        found.was = 1  # type: ignore[misc]
