"""`to_dict` and `from_dict` of reports, profiles, shards and plans; also what no model takes."""

import json
import math
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st

from backread import Client, Page, ServiceProfile, User, WalkReport, plan
from backread.landing import Landed
from backread.mirror import SyncFigures, SyncReport
from backread.sharding import Plan, Shard
from backread.testing import MockServer, World

WHOLE = st.integers(0, 2**64)
TIMES = st.datetimes(timezones=st.just(UTC))
CERTIFICATES = st.sampled_from(["snapshot", "counted", "linked", "uncertified"])
COUNTS = st.dictionaries(CERTIFICATES, WHOLE)
REPORTS = st.builds(
    WalkReport,
    certificate=CERTIFICATES,
    started_at=st.none() | TIMES,
    ended_at=st.none() | TIMES,
    reason=st.none() | st.text(),
    lists_by_certificate=COUNTS,
    uncertified_users=st.lists(WHOLE).map(tuple),
    unread_users=st.lists(WHOLE).map(tuple),
    evidence=st.dictionaries(st.text(max_size=9), st.none() | WHOLE, max_size=3),
    outage_seconds=st.floats(0, allow_infinity=False),
)
SYNC_REPORTS = st.builds(
    SyncReport,
    lists_by_certificate=COUNTS,
    lists_by_kind=st.dictionaries(st.sampled_from(["whole", "end"]), WHOLE),
    uncertified_users=st.lists(WHOLE).map(tuple),
    unread_users=st.lists(WHOLE).map(tuple),
    started_at=TIMES,
    ended_at=TIMES,
    seconds=st.floats(0, allow_infinity=False),
    outage_seconds=st.floats(0, allow_infinity=False),
    run=st.builds(
        SyncFigures,
        lists_by_certificate=COUNTS,
        lists_by_kind=COUNTS,
        started_at=TIMES,
        seconds=st.floats(0, allow_infinity=False),
        outage_seconds=st.floats(0, allow_infinity=False),
    ),
)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    world = World(seed=4, users=30, messages_per_user=(0, 5))
    with MockServer(world) as server, server.client() as made:
        yield made


@given(record=REPORTS | SYNC_REPORTS | st.builds(Landed, report=REPORTS))
def test_reports_go_through_a_dict_and_through_json(record):
    document = record.to_dict()
    assert type(record).from_dict(document) == record
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    # A later release may add keys.
    assert type(record).from_dict({**document, "added_later": [1]}) == record


def test_profiles_shards_and_plans_go_through_a_dict_and_through_json(client):
    planned = plan(client, shards=3)
    for made in (client.probe(sample=2), planned, planned[1]):
        kind: Any = type(made)
        document = made.to_dict()
        assert kind.from_dict(document) == made
        assert kind.from_dict(document).to_dict() == document
        assert json.loads(made.to_json()) == document
        assert kind.from_json(made.to_json()) == made


def test_a_dict_shares_nothing_with_its_shard(client):
    """A planned shard is trusted, so its destination for the secret must not change."""
    [shard] = plan(client, shards=1)
    for document in (shard.to_dict(), json.loads(shard.to_json())):
        read = Shard.from_dict(document)
        document["settings"]["base_url"] = "https://elsewhere.invalid"
        assert shard.to_dict()["settings"]["base_url"] == client.base_url
        assert read == shard


NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "odd",
    [math.nan, math.inf, object(), b"x", {1.5: 1}, nested(5_000), NAIVE],
    ids=["nan", "infinity", "object", "bytes", "key", "deep", "naive"],
)
def test_odd_values_are_refused_with_the_name_of_the_field(client, odd):
    report = plan(client).report.to_dict()
    for name in (each.name for each in fields(WalkReport)):
        with pytest.raises(ValueError, match=rf"not a WalkReport: \$\.{name}\b"):
            WalkReport.from_dict({**report, name: odd})
    shard = plan(client)[0].to_dict()
    for name in shard.keys() - {"settings", "format"}:
        with pytest.raises(ValueError, match=rf"not a shard: \$\._?{name}\b"):
            Shard.from_dict({**shard, name: odd})
    if not isinstance(odd, datetime):
        with pytest.raises(ValueError, match=r"not a shard: \$\._?settings\.vendor\b"):
            Shard.from_dict({**shard, "settings": {"vendor": odd}})
    profile = client.probe(sample=1).to_dict()
    for name in profile.keys() - {"profile_version"}:
        with pytest.raises(ValueError, match=rf"not a service profile: \$\.{name}\b"):
            ServiceProfile.from_dict({**profile, name: odd})


def test_values_past_their_range_and_missing_fields_are_value_errors(client):
    report = plan(client).report.to_dict()
    for name, odd in (("started_at", "9999-12-31T23:59:59-14:00"), ("outage_seconds", 10**400)):
        with pytest.raises(ValueError, match=rf"not a WalkReport: \$\.{name}\b"):
            WalkReport.from_dict({**report, name: odd})
    del report["requests"]
    with pytest.raises(ValueError, match=r"not a WalkReport: \$ has no requests"):
        WalkReport.from_dict(report)


@pytest.mark.parametrize(
    "kind", [User, Page, WalkReport, SyncReport, Landed, ServiceProfile, Shard, Plan]
)
@pytest.mark.parametrize("given", [None, 7, "x", [], {}, {"shards": [None]}])
def test_what_is_no_record_is_refused(kind, given):
    with pytest.raises(ValueError, match=r"^not a "):
        kind.from_dict(given)
