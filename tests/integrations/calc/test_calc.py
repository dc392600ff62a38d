"""The command's CSV and XLSX, opened in Debian's LibreOffice Calc: no cell becomes a formula."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from backread import Mirror
from backread.testing import MockServer, World

SOFFICE = Path("/usr/bin/soffice")
SECONDS = 120
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"

TEXTS = (
    "=1+1",
    "-5",
    "\t=1+1",
    "\n=1+1",
    "\ufeff=1+1",
    "\x00=1+1",
    "'=1+1",
    '"=1+1"',
    "=cmd|' /C calc'!A0",
    '=DDE("soffice";"/etc/passwd";"A1")',
    '=WEBSERVICE("http://127.0.0.1:9/"&A1)',
    ";=1+1",
    "a\t=1+1",
    "first\r\n=1+1",
    "\uff1d1+1",
    "{=1+1}",
    "of:=1+1",
    "2024-03-05",
    "1e5",
    "007",
    "TRUE",
    "plain words",
)


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    """Users whose names are the texts, each with one message of that text."""
    world = World(seed=5, users=len(TEXTS), messages_per_user=1)
    for user_id, text in zip(world.user_ids(), TEXTS, strict=True):
        attributes = [{"name": text, "value": text}]
        world.edit_user(user_id, name=text, reference=text, user_attributes=attributes)
        [message_id] = world.message_ids(user_id)
        world.edit_message(user_id, message_id, body=text, file_url=text)
    with MockServer(world) as running:
        yield running


@pytest.fixture(scope="module")
def sheets(
    server: MockServer, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[list[tuple[str, bool]]]]:
    """Files by name, as Calc has their first sheet: each cell's text, and whether it computes."""
    folder = tmp_path_factory.mktemp("calc")
    settings = {
        **os.environ,
        "BACKREAD_BASE_URL": server.url,
        "BACKREAD_API_SECRET": server.secret,
        "BACKREAD_VENDOR": server.vendor,
    }
    for name, *options in (("users.csv",), ("raw.csv", "--raw-csv")):
        command = [sys.executable, "-m", "backread", "users", *options, "--output", name]
        subprocess.run(command, cwd=folder, env=settings, check=True, timeout=SECONDS)
    mirror = Mirror(folder / "chats")
    with server.client() as client:
        mirror.sync(client)
    for name in ("messages.csv", "messages.xlsx"):
        mirror.export(folder / name, tables=["messages"])
    # Commas, quotes, UTF-8, from line 1; the last one has Calc compute what looks like it.
    csv = "--infilter=CSV:44,34,76,1,,0,false,true,false,false,false,0,true"
    convert(folder, csv, *(path.name for path in folder.glob("*.csv")))
    convert(folder, "messages.xlsx", outdir="xlsx")
    return {
        **{path.name: rows(path.with_suffix(".fods")) for path in folder.glob("*.csv")},
        "messages.xlsx": rows(folder / "xlsx" / "messages.fods"),
    }


def convert(folder: Path, *arguments: str, outdir: str = ".") -> None:
    """Has Calc write files as flat XML."""
    assert SOFFICE.exists(), f"{SOFFICE} is missing; run: make test-calc"
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    command = [SOFFICE, profile, "--headless", "--convert-to", "fods", "--outdir", outdir]
    subprocess.run(
        [*command, *arguments], cwd=folder, check=True, capture_output=True, timeout=SECONDS
    )


def rows(path: Path) -> list[list[tuple[str, bool]]]:
    """The rows of the first sheet of a file."""
    return [
        [
            (
                "\n".join(written(line) for line in cell.iter(f"{TEXT}p")),
                f"{TABLE}formula" in cell.attrib,
            )
            for cell in row.iter(f"{TABLE}table-cell")
            for _ in range(int(cell.get(f"{TABLE}number-columns-repeated", "1")))
        ]
        for row in ElementTree.parse(path).iter(f"{TABLE}table-row")
    ]


def written(line: ElementTree.Element) -> str:
    """The text of a paragraph; OpenDocument has elements for blanks in a row and for tabs."""
    said = line.text or ""
    for part in line:
        if part.tag == f"{TEXT}s":
            said += " " * int(part.get(f"{TEXT}c", "1"))
        elif part.tag == f"{TEXT}tab":
            said += "\t"
        else:
            said += written(part)
        said += part.tail or ""
    return said


def spoken(text: str) -> str:
    """The text without what a cell of Calc does not keep: kinds of line ends, blanks, controls."""
    return re.sub(r"[\s\u200b\ufeff\x00-\x1f]+", " ", text).strip()


@pytest.mark.parametrize(("name", "column"), [("users.csv", "name"), ("messages.csv", "body")])
def test_no_cell_of_csv_is_a_formula_and_each_has_its_text(sheets, name, column):
    head, *found = sheets[name]
    assert not [text for row in [head, *found] for text, computes in row if computes]
    place = [text for text, _ in head].index(column)
    came = [row[place][0] for row in found if len(row) > place]
    # What Calc takes for a number or a date it shows in its own way.
    theirs = {"1e5", "007", "2024-03-05"}
    shown = {spoken(text.removeprefix("'")) for text in came}
    assert not {spoken(text) for text in TEXTS} - shown - theirs
    assert len(came) >= len(TEXTS)


def test_csv_without_protection_computes(sheets):
    """Or the test above would see nothing."""
    assert sum(computes for row in sheets["raw.csv"] for _, computes in row) > 5


def test_no_cell_of_xlsx_is_a_formula_and_each_has_its_text(sheets):
    head, *found = sheets["messages.xlsx"]
    # Calc has flags as the formulas TRUE() and FALSE().
    computed = {text for row in [head, *found] for text, computes in row if computes}
    assert computed <= {"TRUE", "FALSE"}
    place = [text for text, _ in head].index("body")
    # Calc has empty rows below. Typed as text: nothing is prefixed or taken for a number or a date.
    came = [row[place][0] for row in found if len(row) > place and row[0][0]]
    assert sorted(map(spoken, came)) == sorted(map(legal, TEXTS))


def legal(text: str) -> str:
    """A text with what XLSX has in place of control characters, spoken."""
    return spoken(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f]", "\ufffd", text))
