"""What strangers write controls nothing: no terminal, no spreadsheet, nothing that reads lines."""

import csv
import io
import json
import re
from typing import Any

import pytest

from helpers.api_rows import paged, users
from helpers.command_line import settings_of

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st

from backread._files.spreadsheet import guarded
from backread.cli.text import escaped, plain

FORMULAS = [
    "=1+1",
    "+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "\ufeff=1",
    "\x00=1",
    "\x00 \x1f@x",
    "\uff1d1",
    "=cmd|' /C calc'!A0",
    "'=1",
    "''",
]
HARMLESS = ["", "a=b", "5", "https://example.org/?a=-1", "\u200fשלום", "{'=1}", "e-mail"]
UNSEEN = "\x7f\x80\x9b\x9f\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069"


def anything() -> st.SearchStrategy[str]:
    odd = st.sampled_from([*FORMULAS, *UNSEEN, "\x1b[2J", "\r", "'", "="])
    return st.lists(st.one_of(st.text(max_size=5), odd), max_size=5).map("".join)


@given(anything())
def test_json_is_the_same_value_and_shows_what_is_not_seen(text):
    line = escaped(json.dumps(text, ensure_ascii=False))
    assert json.loads(line) == text
    assert line == "".join(line.splitlines())
    assert not re.search(f"[{UNSEEN}\x00-\x1f]", line)


@given(anything())
def test_a_cell_is_no_formula_and_gives_its_text_back(text):
    guards: list[None] = []
    cell = guarded(text, lambda: guards.append(None))
    assert cell.removeprefix("'") == text or cell == text
    assert (cell.removeprefix("'") if cell.startswith("'") else cell) == text
    assert len(guards) == (cell != text)
    assert cell.lstrip()[:1] not in tuple("=+-@")


@given(anything())
def test_plain_text_has_no_control_characters(text):
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", plain(text))


@pytest.fixture
def names(scripted: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the users of a service; 1, 2 and so on are their ids."""
    texts = [*FORMULAS, *HARMLESS, UNSEEN]
    rows = users(len(texts))
    for row, text in zip(rows, texts, strict=True):
        row["name"] = text
    server = scripted(paged(rows))
    for name, value in settings_of(server).items():
        monkeypatch.setenv(name, value)
    return texts


def test_csv_has_no_formula_and_says_so(backread, names):
    done = backread("users", "--format", "csv")
    assert done.code == 0
    [line] = done.error.splitlines()
    assert line.startswith(f"backread: {len(FORMULAS)} cells begin with an apostrophe")
    assert "--raw-csv" in line


def test_raw_csv_is_as_it_is_and_excel_gets_its_mark(scripted, names, capfdbinary):
    from backread.cli.app import run

    def cells(*options: str) -> list[str]:
        assert run(["users", "--format", "csv", *options]) == 0
        text = capfdbinary.readouterr().out.decode()
        return [row["name"] for row in csv.DictReader(io.StringIO(text, newline=""))]

    assert cells("--raw-csv") == names
    assert cells() == [f"'{text}" if text in FORMULAS else text for text in names]
    assert run(["users", "--format", "csv", "--excel"]) == 0
    assert capfdbinary.readouterr().out.startswith("\ufeffid,".encode())


def test_json_lines_are_one_line_each(backread, names):
    lines = backread("users").out.splitlines()
    assert [json.loads(line)["name"] for line in lines] == names
    assert "\\u202e" in lines[-1]
