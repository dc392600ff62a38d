"""How old a mirror's data is said to be, where the last run read nothing or little."""

from collections.abc import Iterator
from datetime import datetime
from types import SimpleNamespace

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from backread.mirror import Mirror
from backread.mirror.sync.report import SyncReport
from backread.testing import Fault, Lane, MockServer, World


@pytest.fixture
def lane(backread_server: MockServer) -> Iterator[Lane]:
    with backread_server.lane(world=World(seed=1, users=60)) as lane:
        yield lane


def refused(mirror: Mirror, lane: Lane) -> SyncReport:
    """A run whose budget went on requests that the service refused."""
    for route in ("users", "messages"):
        lane.on(route).fail(Fault.status(503, retry_after=0))
    with lane.client() as client:
        report = mirror.sync(client, max_requests=2)
    assert report.state == "partial"
    return report


@pytest.fixture
def earlier(mirror: Mirror, lane: Lane) -> SyncReport:
    with lane.client() as client:
        return mirror.sync(client)


def printed(mirror: Mirror) -> str:
    """What IPython shows."""
    texts: list[str] = []
    mirror._repr_pretty_(SimpleNamespace(text=texts.append), False)
    return "".join(texts)


def test_data_is_no_younger_after_a_run_that_read_nothing(mirror, lane, earlier):
    refused(mirror, lane)
    coverage = mirror.figures()["coverage"]
    assert (coverage["run_id"], coverage["as_of"]) == (earlier.run_id, earlier.ended_at.isoformat())
    assert (coverage["state"], coverage["users_certificate"]) == ("finished", earlier.certificate)
    assert "(run 1, incremental)" in printed(mirror)


def test_a_part_that_read_nothing_leaves_the_age_of_a_partial_run(mirror, lane):
    with lane.client() as client:
        before = mirror.sync(client, max_requests=20)
    again = refused(mirror, lane)
    assert (again.run_id, again.users, again.run.users) == (before.run_id, 0, before.users)
    as_of = mirror.figures()["coverage"]["as_of"]
    assert as_of is not None
    assert before.started_at < datetime.fromisoformat(as_of) <= before.ended_at


def test_a_mirror_of_which_no_run_has_read_anything_has_no_age(mirror, lane):
    refused(mirror, lane)
    assert mirror.figures()["coverage"]["as_of"] is None
    assert "data as of: no run has read anything yet" in printed(mirror)
