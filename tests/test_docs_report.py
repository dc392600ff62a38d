"""The queries of docs/how-to/report.md give the figures of `Mirror.figures`; its tables agree."""

import re
from typing import Any

import pytest

from documents import ROOT, Document

pytest.importorskip("duckdb")
pytest.importorskip("typer")

if not (ROOT / "docs").is_dir():
    pytest.skip("the wheel check takes no pages along", allow_module_level=True)

from backread import Mirror
from backread.mirror import Figures
from backread.mirror.figures.opening_hours import OpeningHours
from backread.testing import MockServer, World
from mirrors import sync

PAGE = Document(ROOT / "docs/how-to/report.md")
QUERIES = [block.code for block in PAGE.blocks if block.kind == "sql"]
ZONE = "Europe/Berlin"

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    made = Mirror(tmp_path_factory.mktemp("recipes") / "chats")
    with MockServer(World(seed=7, users=150, messages_per_user=(0, 60))) as server:
        sync(made, server)
    return made


@pytest.fixture(scope="module")
def figures(mirror: Mirror) -> Figures:
    return mirror.figures(timezone=ZONE)


@pytest.fixture(scope="module")
def answers(mirror: Mirror) -> list[Rows]:
    """The rows of each query, in the order of the page."""
    found = []
    for query in QUERIES:
        relation = mirror.sql(query)
        found.append([dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()])
    return found


def columns(found: Any, names: list[str]) -> Rows:
    """These fields of a figure or of several."""
    several = found if isinstance(found, tuple) else (found,)
    return [{name: getattr(each, name) for name in names} for each in several]


def test_queries_give_the_figures(figures, answers, mirror):
    (coverage, volume, hours, responses, buckets, within, last, unread, invitations, attachments,
     operators, longest) = answers  # fmt: skip
    assert coverage[0]["run_id"] == figures.coverage.run_id
    assert coverage[0]["ended_at"] == figures.coverage.as_of
    assert coverage[0]["users_certificate"] == figures.coverage.users_certificate
    assert coverage[0]["unproved_lists"] == figures.coverage.unproved_lists

    assert figures.unit == "week"
    weeks = [each for each in figures.volume if each.messages]
    assert [each.pop("week") for each in volume] == [each.start for each in weeks]
    assert volume == columns(tuple(weeks), list(volume[0]))
    assert hours == columns(figures.hours, list(hours[0]))
    assert responses == columns(figures.responses, list(responses[0]))
    assert [(each["at_least_seconds"], each["conversations"]) for each in buckets] == [
        (each.from_seconds, each.conversations) for each in figures.responses.buckets
    ]
    hourly = mirror.figures(timezone=ZONE, opening_hours="mon-fri 9-17")
    expected = {each.id: each for each in hourly.operators if each.first_responses}
    assert {each["operator"] for each in within} == set(expected)
    for each in within:
        operator = expected[each["operator"]]
        assert each["first_responses"] == operator.first_responses
        assert each["p50_seconds"] == pytest.approx(operator.p50_seconds, abs=0.001)
        assert each["p90_seconds"] == pytest.approx(operator.p90_seconds, abs=0.001)
    states = figures.states
    assert {each["wrote_last"]: each["conversations"] for each in last} == {
        "user": states.user_wrote_last,
        "operator": states.operator_wrote_last,
        "invitation": states.invitation_last,
    }
    assert unread == columns(states, list(unread[0]))
    assert invitations == columns(figures.invitations, list(invitations[0]))
    assert {each["type"]: each["messages"] for each in attachments} == figures.attachments.by_type
    assert sum(each["by_users"] for each in attachments) == figures.attachments.by_users
    assert [
        (each["operator"], each["name"], each["messages"], each["conversations"])
        for each in operators
    ] == [(each.id, each.name, each.messages, each.conversations) for each in figures.operators]
    assert longest == columns(figures.longest, list(longest[0]))


def test_options_are_those_of_the_command_and_of_python():
    from typer.main import get_command

    from backread.cli.app import app

    options = {
        name
        for each in get_command(app).commands["report"].params  # type: ignore[attr-defined]
        for name in each.opts
    }
    table = PAGE.table("option")
    assert {name.split()[0] for name in table} <= options
    arguments = {cells[0].removesuffix("=") for cells in table.values() if cells[0].endswith("=")}
    code = Mirror.figures.__wrapped__.__kwdefaults__  # type: ignore[attr-defined]
    assert arguments == set(code) - {"on_progress"}


def test_opening_hours_of_the_page_are_understood():
    text = " ".join(PAGE.text.split())
    named = re.findall(r"`((?:mon|fri|daily)[^`]* \d[^`]*)`", text)
    assert len(named) >= 4
    for each in named:
        OpeningHours.parse(each)
