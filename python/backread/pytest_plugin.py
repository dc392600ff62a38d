"""pytest fixtures, available as soon as backread is installed.

backread is imported only when a fixture is used. Tests request fixtures by name::

    def test_report(backread_server, backread_client):
        assert report(backread_client).users == backread_server.world.total_users

    @pytest.mark.backread(dialect="hostile", faults="users offset=0: status(503) x2")
    def test_report_of_a_bad_day(backread_mock, backread_client):
        assert report(backread_client).users == backread_mock.world.total_users
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pytest

if TYPE_CHECKING:
    import pluggy

    from backread._client.client import AsyncClient, Client
    from backread.testing import Lane, MockServer, World

__all__ = [
    "backread_async_client",
    "backread_client",
    "backread_environment",
    "backread_mock",
    "backread_server",
]

MARKER = "backread"
WORLD: dict[str, Any] = {"seed": 7, "users": 200, "messages_per_user": (0, 120)}
DEFAULTS: dict[str, Any] = {
    "world": None,
    "dialect": None,
    "faults": None,
    "rate": None,
    "clock": "real",
    "unexpected": "fail",
}
WORDS = {"clock": ("real", "virtual"), "unexpected": ("fail", "allow")}
LONGEST_NAME = 80


@dataclass(slots=True)
class Run:
    """One run of a test: what the failure report needs."""

    server_shown: int
    """The server's last request that came before this run or has been shown."""
    lane: Lane | None = None
    lane_shown: int | None = None
    """The lane's last request that has been shown; None before any report showed them."""
    call_outcomes: set[str] = field(default_factory=set)
    """Those of the test itself and of each of its subtests."""


# Not pytest's stash, which pytest 6 lacks: pytest imports this file in every run, and an error here
# would end it.
RUNS: WeakKeyDictionary[pytest.Item, Run] = WeakKeyDictionary()
SERVERS: WeakKeyDictionary[pytest.Session, MockServer] = WeakKeyDictionary()


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(world=..., dialect=..., faults=..., rate=..., clock='real'|'virtual', "
        "unexpected='fail'|'allow'): what backread_mock is like for this test; the nearest marker "
        "rules over those of the class and of the module, for each argument by itself",
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Gives each test with the marker a lane, even if it does not request the fixture."""
    _begin_run(item)
    if item.get_closest_marker(MARKER) is None:
        return
    _options(item)
    names: list[str] | None = getattr(item, "fixturenames", None)
    if names is not None and "backread_mock" not in names:
        # Parametrized cases of a test share one list, and not all of them may have the marker.
        item.fixturenames = [*names, "backread_mock"]  # type: ignore[attr-defined]


def _begin_run(item: pytest.Item) -> None:
    server = SERVERS.get(item.session)
    RUNS[item] = Run(server_shown=0 if server is None else server._last_number)
    if "backread.testing" in sys.modules:
        from backread.testing.audit import failed_audits

        failed_audits.clear()


# `wrapper=True` would need pluggy 1.2, and pytest 7 accepts older ones.
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pluggy.Result[pytest.TestReport], None]:
    """Adds the received requests and the audits' findings to the report of a failing test.

    pytest makes a report of each subtest too, also as a call.
    """
    report = (yield).get_result()
    run = RUNS.get(item)
    if run is None or "backread.testing" not in sys.modules:
        return
    if report.when == "call":
        run.call_outcomes.add(report.outcome)
    if report.failed:
        report.sections += _new_sections(run, SERVERS.get(item.session))
    if report.when == "teardown":
        # The item lives as long as the session, and a lane has a world and a journal.
        run.lane = None


def _new_sections(run: Run, server: MockServer | None) -> Iterator[tuple[str, str]]:
    """What no earlier report of the run has shown."""
    from backread.testing.audit import failed_audits
    from backread.testing.failed_test import audits_shown, requests_shown

    if found := audits_shown():
        failed_audits.clear()
        yield "backread audit", found
    if run.lane is not None:
        shown, run.lane_shown = run.lane_shown, run.lane._last_number
        if shown is None or run.lane_shown > shown:
            yield "backread requests", requests_shown(run.lane, shown or 0)
    if server is not None:
        shown, run.server_shown = run.server_shown, server._last_number
        if run.server_shown > shown:
            yield "backread_server requests", requests_shown(server, shown)


@pytest.fixture(scope="session")
def backread_server(request: pytest.FixtureRequest) -> Iterator[MockServer]:
    """A mock server with 200 users of 0 to 120 messages each, one for the whole session.

    Under pytest-xdist, one per worker. All tests share its world; to change it or to add faults,
    use backread_mock.
    """
    from backread.testing import MockServer, World

    with MockServer(World(**WORLD)) as server:
        SERVERS[request.session] = server
        yield server


@pytest.fixture
def backread_mock(request: pytest.FixtureRequest, backread_server: MockServer) -> Iterator[Lane]:
    """A lane for this test: a copy of backread_server's world, no faults, and a separate clock.

    The marker ``backread`` changes these defaults, and creates the lane even if the test does not
    request it. At the end of the test, requests that violate the API raise an
    `UnexpectedRequestError` unless the marker allows them; if the test passed, faults and changes
    that never happened raise an `UnfiredError` unless it called ``allow_unfired()``.
    """
    from backread.testing import UnexpectedRequestError, UnfiredError

    # The requests are the report; a traceback into this fixture would not help.
    __tracebackhide__ = True
    wanted = _options(request.node)
    before = backread_server._last_number
    with _lane_for(request.node, backread_server, wanted) as lane:
        if wanted["clock"] == "virtual":
            lane.clock.virtual()
        run = RUNS[request.node]
        run.lane = lane
        yield lane
    # Requests without a lane's secret are handled by the server itself.
    strays = backread_server._unexpected_after(before)
    if wanted["unexpected"] == "fail" and (unexpected := (*lane.unexpected, *strays)):
        raise UnexpectedRequestError(unexpected, lane.vendor)
    # A failed test may have ended before its faults could fire.
    passed = "passed" in run.call_outcomes and "failed" not in run.call_outcomes
    if passed and (unfired := lane._unfired()):
        raise UnfiredError(unfired)


@pytest.fixture
def backread_client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """A `Client`, closed after the test.

    For backread_mock if the test uses it or has the marker, else for backread_server.
    """
    with _lane(request).client() as client:
        yield client


@pytest.fixture
def backread_async_client(request: pytest.FixtureRequest) -> Iterator[AsyncClient]:
    """An `AsyncClient`, closed after the test.

    For backread_mock if the test uses it or has the marker, else for backread_server. The fixture
    needs no event loop: it works in async tests that run on asyncio, and with
    ``asyncio.run(main(backread_async_client))``.
    """
    client = _lane(request).async_client()
    try:
        yield client
    finally:
        # aclose() would need an event loop, and a running one may belong to another plugin.
        client._native.close()


@pytest.fixture
def backread_environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Lane:
    """Points ``Client()`` and the command ``backread`` at a lane, by environment variables for its
    address, secret and vendor.

    backread_mock if the test uses it or has the marker, else backread_server. These clients use
    real time, whatever the lane's clock is.
    """
    lane = _lane(request)
    for name, value in {
        "BASE_URL": lane.url,
        "API_SECRET": lane.secret,
        "VENDOR": lane.vendor,
    }.items():
        monkeypatch.setenv(f"BACKREAD_{name}", value)
    return lane


def _lane(request: pytest.FixtureRequest) -> Lane:
    own = "backread_mock" in request.fixturenames or request.node.get_closest_marker(MARKER)
    lane: Lane = request.getfixturevalue("backread_mock" if own else "backread_server")
    return lane


def _lane_for(node: pytest.Item, server: MockServer, wanted: dict[str, Any]) -> Lane:
    """Creates the lane that a test's markers describe."""
    try:
        return server.lane(
            _world(wanted["world"], server.world),
            name=re.sub(r"[^A-Za-z0-9_-]+", "-", node.nodeid)[-LONGEST_NAME:],
            dialect=wanted["dialect"],
            faults=wanted["faults"],
            rate=wanted["rate"],
        )
    except (TypeError, ValueError) as error:
        problem = f"@pytest.mark.backread: {error}"
    # Outside the except block, so that pytest does not show both errors.
    pytest.fail(problem, pytrace=False)


def _options(node: pytest.Item) -> dict[str, Any]:
    """The arguments of a test's markers, each from the nearest marker that sets it."""
    options: dict[str, Any] = {}
    for marker in node.iter_markers(MARKER):
        wrong = [repr(each) for each in marker.args] + sorted(marker.kwargs.keys() - DEFAULTS)
        if wrong:
            pytest.fail(
                f"@pytest.mark.backread does not take {', '.join(wrong)}; "
                f"it takes {', '.join(f'{name}=' for name in DEFAULTS)}",
                pytrace=False,
            )
        options = {**marker.kwargs, **options}
    for name, words in WORDS.items():
        if name in options and options[name] not in words:
            pytest.fail(
                f"@pytest.mark.backread: {name} must be {' or '.join(map(repr, words))}, "
                f"not {options[name]!r}",
                pytrace=False,
            )
    return {**DEFAULTS, **options}


def _world(wanted: World | dict[str, Any] | None, usual: World) -> World:
    """A world for one test only."""
    from backread.testing import World

    if isinstance(wanted, dict):
        return World(**wanted)
    if wanted is not None and not isinstance(wanted, World):
        raise TypeError(f"world: a World, or a dict of its arguments, not {wanted!r}")
    return (wanted or usual).copy()
