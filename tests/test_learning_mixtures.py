"""What `learn` makes of services that have several odd habits at once."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from backread import ServiceProfile
from backread.testing import Dialect, MockServer, World, learn
from probing import WORLD
from test_probe_mixtures import CHOICES


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(**WORLD)) as running:
        yield running


# How large ids are is no finding, and which pages are short depends on them.
MIXED = {**CHOICES, "ids": ["integer", "text"]}


@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(switches=st.fixed_dictionaries({k: st.sampled_from(v) for k, v in MIXED.items()}))
def test_the_mock_is_probed_as_the_service_was(server, switches):
    def probed(dialect: Any) -> ServiceProfile:
        with server.lane(dialect=dialect, seed=7) as lane, lane.client() as client:
            return client.probe()

    profile = probed(Dialect(**switches))
    learned = learn(profile, total_users=server.world.total_users)
    assert profile.differs(probed(learned.dialect)) == []
