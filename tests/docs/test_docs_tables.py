"""Tables of docs/ have a row for each thing that there is, and fault rules that are shown fire."""

import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from typing import Any, get_args

import pytest

import backread
from backread import BackreadError, pytest_plugin
from backread.models import Certificate, WalkReport
from backread.testing import Dialect, Fault, MockServer, World
from helpers.doc_pages import IN_CHECKOUT, ROOT, Document

if not IN_CHECKOUT:
    pytest.skip("the pages are in the checkout only", allow_module_level=True)


def page(name: str) -> Document:
    return Document(ROOT / "docs" / f"{name}.md")


def names(kind: Any, *, after: str = "") -> set[str]:
    """The names of a dataclass's fields; those after one of them."""
    every = [each.name for each in fields(kind)]
    return set(every[every.index(after) + 1 :] if after else every)


def extras() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return set(project["optional-dependencies"])


def plan_arguments() -> set[str]:
    return {*inspect.signature(backread.plan).parameters} - {"client"}


def error_types() -> set[str]:
    """Those that are raised; the two bases have no row."""
    others = {"Attempt", "BackreadError", "IncompleteWarning", "TransportError"}
    return {*backread.errors.__all__} - others


def findings() -> set[str]:
    return names(backread.ServiceProfile) - {"backread", "measured_at", "requests"}


def faults() -> set[str]:
    """Latencies of both kinds share a row."""
    makers = inspect.getmembers(Fault, inspect.ismethod)
    return {name for name, _ in makers if not name.startswith("_")} - {"latency_lognormal"}


@pytest.mark.parametrize(
    ("document", "heading", "expected"),
    [
        ("explanation/certificates", "certificate", set(get_args(Certificate))),
        ("explanation/certificates", "field", names(WalkReport, after="uncertified_users")),
        ("how-to/install", "extra", extras()),
        ("how-to/many-workers", "argument of `plan`", plan_arguments()),
        ("how-to/testing", "fixture", set(pytest_plugin.__all__)),
        ("how-to/testing", "`@pytest.mark.backread(...)`", set(pytest_plugin.DEFAULTS)),
        ("reference/errors", "error", error_types()),
        ("reference/mock", "fault", faults()),
        ("reference/mock", "switch", names(Dialect)),
        ("how-to/probe", "finding", findings()),
    ],
)
def test_a_table_has_a_row_for_each(document, heading, expected):
    rows = page(document).table(heading)
    assert {name.partition("(")[0] for name in rows} == expected


def test_errors_have_the_exit_codes_of_the_command():
    from backread.cli.exits import exit_code

    for name, cells in page("reference/errors").table("error").items():
        kind = getattr(backread.errors, name)
        assert exit_code(kind.__new__(kind)) == int(cells[-1].rstrip(" |")), name


def test_every_table_and_column_of_a_mirror_has_a_row(tmp_path):
    mirror = backread.Mirror(tmp_path / "chats")
    with MockServer(World(users=3, messages_per_user=2)) as server, server.client() as client:
        mirror.sync(client)
    document = page("reference/tables")
    tables = document.table("table")
    # The last two are for queries, and are not exported.
    assert [*tables] == [*mirror.tables, "forgotten", "profile"]
    for table in tables:
        heading = "column" if table == "conversations" else f"column of `{table}`"
        columns = mirror.sql(f"SELECT * FROM {table}").columns
        # A row may have several columns.
        shown = [name for row in document.table(heading) for name in row.split("`, `")]
        assert shown == columns, table


@pytest.mark.parametrize("resource", ["users", "messages"])
def test_every_column_of_a_listing_has_a_row_with_its_type(resource, backread_client):
    pyarrow = pytest.importorskip("pyarrow")
    users, messages = page("how-to/dataframes").text.split("### Users")[1].split("### Messages")
    section = users if resource == "users" else messages
    rows = [line.split("`") for line in section.splitlines() if line.startswith("| `")]
    client = backread_client
    listing = client.users.list() if resource == "users" else client.messages.all(users=[])
    columns = [(field.name, str(field.type)) for field in pyarrow.schema(listing)]
    assert [(row[1], row[3]) for row in rows] == columns


def test_the_reference_of_the_command_line_is_what_the_commands_say():
    command = [sys.executable, ROOT / "tools/docs/command_line.py"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


FAULTS = "|".join(name for name, _ in inspect.getmembers(Fault, inspect.ismethod))
RULE = re.compile(
    r"\b(?:any|users?|messages?)(?: [a-z]+=[\d.]+)*: "
    rf"(?:{FAULTS})\((?:[^()]|\([^()]*\))*\)(?: x\d+(?: each)?)?"
)


def shown() -> Iterator[str]:
    for pattern in ("README.md", "docs/**/*.md", "python/**/*.py", "src/mock/*/*.[hr]*"):
        for path in ROOT.glob(pattern):
            if path.parts[-2] != "tests":
                yield from RULE.findall(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("rule", sorted(set(shown())))
def test_each_fault_rule_that_is_shown_fires_when_everything_is_read(backread_mock, rule):
    backread_mock.clock.virtual()
    backread_mock.fault(rule)
    client = backread_mock.client()
    [number, *_] = backread_mock.world.message_ids(42)
    for read in (
        lambda: client.users.list().to_list(),
        lambda: client.users.get(42),
        lambda: client.messages.all().to_list(),
        lambda: client.messages.get(42, number),
    ):
        with suppress(BackreadError):
            read()
    assert backread_mock.fired[0] > 0
