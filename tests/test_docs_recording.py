"""docs/reference/recording.md has the options and the limits of the code."""

import inspect

import pytest

from backread.testing import record
from backread.testing.recording import values
from documents import ROOT, Document

if not (ROOT / "docs/reference/recording.md").is_file():
    pytest.skip("the wheel check takes no pages along", allow_module_level=True)

PAGE = Document(ROOT / "docs/reference/recording.md")


def test_every_argument_has_a_row():
    arguments = {cells[0].strip("`").partition("=")[0] for cells in PAGE.table("option").values()}
    parameters = inspect.signature(record).parameters
    assert arguments == set(parameters) - {"client", "folder"}
    assert PAGE.table("option")["--users NUMBER"][1] == str(parameters["users"].default)


def test_every_option_is_there(backread):
    pytest.importorskip("typer")
    shown = backread("mock", "record", "--help").out
    for option in PAGE.table("option"):
        assert option in shown


def test_the_limits_are_those_of_the_code():
    assert f"up to {values.MOST_NAMES} of them" in PAGE.text
    assert f"up to {values.MOST_WORDS} of them" in PAGE.text
