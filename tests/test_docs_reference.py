"""docs/reference: its tables are those of the code."""

import tomllib
from typing import get_args

import pytest

import backread.errors
from backread import Mirror
from backread.models import Certificate
from backread.testing import MockServer, World
from documents import IN_CHECKOUT, ROOT, Document

if not IN_CHECKOUT:
    pytest.skip("the wheel check takes no pages along", allow_module_level=True)

ERRORS = Document(ROOT / "docs/reference/errors.md")
INSTALL = Document(ROOT / "docs/how-to/install.md")
TABLES = Document(ROOT / "docs/reference/tables.md")
CERTIFICATES = Document(ROOT / "docs/explanation/certificates.md")


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    pytest.importorskip("duckdb")
    mirror = Mirror(tmp_path_factory.mktemp("mirror") / "chats")
    world = World(seed=7, users=3, messages_per_user=2)
    with MockServer(world) as server, server.client() as client:
        mirror.sync(client)
    return mirror


def test_every_table_has_a_row(mirror):
    # The last two are there for queries, and are not exported.
    assert [*TABLES.table("table")] == [*mirror.tables, "forgotten", "profile"]


@pytest.mark.parametrize("table", TABLES.table("table"))
def test_every_column_has_a_row(mirror, table):
    heading = "column" if table == "conversations" else f"column of `{table}`"
    assert list(TABLES.table(heading)) == mirror.sql(f"SELECT * FROM {table}").columns


def test_every_extra_has_a_row():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert sorted(INSTALL.table("extra")) == sorted(project["optional-dependencies"])


def test_every_error_has_a_row():
    documented = set(ERRORS.table("error")) | {"BackreadError", "TransportError"}
    assert documented == set(backread.errors.__all__) - {"Attempt", "IncompleteWarning"}


def test_the_exit_codes_are_those_of_the_command():
    exits = pytest.importorskip("backread.cli.exits")
    for name, cells in ERRORS.table("error").items():
        kind = getattr(backread.errors, name)
        assert exits.exit_code(kind.__new__(kind)) == int(cells[-1].rstrip(" |")), name


def test_the_base_of_errors_without_an_answer_is_said_to_be():
    kinds = [
        name
        for name in backread.errors.__all__
        if (kind := getattr(backread.errors, name)) is not backread.errors.TransportError
        and issubclass(kind, backread.errors.TransportError)
    ]
    [sentence] = [line for line in ERRORS.text.split("\n\n") if line.startswith("`TransportError`")]
    assert kinds
    assert all(f"`{name}`" in sentence for name in kinds)


def test_the_certificates_are_what_this_release_earns():
    assert tuple(CERTIFICATES.table("certificate")) == get_args(Certificate)
