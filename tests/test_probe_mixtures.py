"""What `probe()` finds where a service has several odd habits at once."""

from collections.abc import Iterator

import pytest

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from backread.testing import Dialect, MockServer, World
from probe_dialects import compare
from probing import WORLD, check


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(**WORLD)) as running:
        yield running


CHOICES = {
    "strict": [True, False],
    "over_limit": ["refuse", "clamp", "ignore"],
    "max_limit": [40, 99],
    "default_limit": [5, 25, 40, 99],
    "order": ["id", "newest", "ties", "shuffled"],
    "total": ["exact", "capped", "null", "low", "high"],
    "total_cap": [6],
    "past_end": ["empty", "not_found", "last_page"],
    "nulls": ["documented", "null", "missing", "both"],
    "sender_type": ["documented", "others"],
    "extra_fields": [True, False],
    "ids": ["integer", "large", "text"],
    "short_pages": [True, False],
}


# A failure is shown as it came: to make it smaller would take minutes.
@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(switches=st.fixed_dictionaries({k: st.sampled_from(v) for k, v in CHOICES.items()}))
def test_switches_are_told_apart_in_any_mixture(server, switches):
    dialect = Dialect("documented", **switches)
    with server.lane(dialect=dialect) as lane, lane.client() as client:
        profile = check(client.probe())
    compare(profile, dialect, server.world.total_users)
