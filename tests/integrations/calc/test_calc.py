"""The command's CSV and XLSX, opened in Debian's LibreOffice Calc: no cell becomes a formula."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from backread import Mirror
from backread.testing import MockServer, World

SOFFICE = shutil.which("soffice")
pytestmark = pytest.mark.skipif(SOFFICE is None, reason="no soffice; run: make test-calc")

SECONDS = 120
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"

TEXTS = (
    "=1+1",
    "+1+1",
    "-1+2",
    "-5",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    " =1+1",
    "\u00a0=1+1",
    "\u200b=1+1",
    "\ufeff=1+1",
    "\x00=1+1",
    "\x00\x1a\x00=1+1",
    "'=1+1",
    "'",
    "''",
    '"=1+1"',
    '"',
    '","=1+1',
    '"\n=1+1',
    "=cmd|' /C calc'!A0",
    '=DDE("soffice";"/etc/passwd";"A1")',
    '=WEBSERVICE("http://127.0.0.1:9/"&A1)',
    '=HYPERLINK("http://127.0.0.1:9/","look")',
    ";=1+1",
    "a;=1+1",
    ",=1+1",
    "a,=1+1",
    "a\t=1+1",
    "first\n=1+1",
    "first\r=1+1",
    "first\r\n=1+1",
    "\uff1d1+1",
    "\uff0b1+1",
    "\uff0d1+1",
    "\uff20SUM(A1)",
    "{=1+1}",
    "of:=1+1",
    "2024-03-05",
    "3/5/2024",
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


def opened(server: MockServer, folder: Path, *arguments: str) -> list[list[tuple[str, bool]]]:
    """The rows of the command's CSV as Calc has them: each cell's text, and whether it computes."""
    settings = {
        **os.environ,
        "BACKREAD_BASE_URL": server.url,
        "BACKREAD_API_SECRET": server.secret,
        "BACKREAD_VENDOR": server.vendor,
    }
    command = [sys.executable, "-m", "backread", *arguments, "--output", "rows.csv"]
    subprocess.run(command, cwd=folder, env=settings, check=True, timeout=SECONDS)
    return calc_rows(folder / "rows.csv")


def calc_rows(path: Path) -> list[list[tuple[str, bool]]]:
    """The rows of the first sheet of a file as Calc has them."""
    # Commas, quotes, UTF-8, from line 1; the last one has Calc compute what looks like it.
    csv = "--infilter=CSV:44,34,76,1,,0,false,true,false,false,false,0,true"
    subprocess.run(
        [
            str(SOFFICE),
            f"-env:UserInstallation={(path.parent / 'profile').as_uri()}",
            "--headless",
            *([csv] if path.suffix == ".csv" else []),
            *("--convert-to", "fods", path.name),
        ],
        cwd=path.parent,
        check=True,
        capture_output=True,
        timeout=SECONDS,
    )
    document = ElementTree.parse(path.with_suffix(".fods"))
    return [
        [
            (
                "\n".join(written(line) for line in cell.iter(f"{TEXT}p")),
                f"{TABLE}formula" in cell.attrib,
            )
            for cell in row.iter(f"{TABLE}table-cell")
            for _ in range(int(cell.get(f"{TABLE}number-columns-repeated", "1")))
        ]
        for row in document.iter(f"{TABLE}table-row")
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


@pytest.mark.parametrize(
    ("arguments", "column"), [(("users",), "name"), (("messages", "--all"), "body")]
)
def test_no_cell_is_a_formula_and_each_has_its_text(server, tmp_path, arguments, column):
    head, *rows = opened(server, tmp_path, *arguments)
    assert not [text for row in [head, *rows] for text, computes in row if computes]
    place = [name for name, _ in head].index(column)
    came = [row[place][0] for row in rows if len(row) > place]
    # What Calc takes for a number or a date it shows in its own way.
    theirs = {"3/5/2024", "1e5", "007", "2024-03-05"}
    shown = {spoken(text.removeprefix("'")) for text in came}
    assert not {spoken(text) for text in TEXTS} - shown - theirs
    assert len(came) >= len(TEXTS)


def test_the_same_without_protection_computes(server, tmp_path):
    """Or the test above would see nothing."""
    rows = opened(server, tmp_path, "users", "--raw-csv")
    assert sum(computes for row in rows for _, computes in row) > 5


@pytest.fixture(scope="module")
def mirrored(server: MockServer, tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    mirror = Mirror(tmp_path_factory.mktemp("mirror") / "chats")
    with server.client() as client:
        mirror.sync(client)
    return mirror


@pytest.mark.parametrize("name", ["messages.csv", "messages.xlsx"])
def test_no_cell_of_an_export_is_a_formula_and_each_has_its_text(mirrored, tmp_path, name):
    mirrored.export(tmp_path / name, tables=["messages"])
    head, *rows = calc_rows(tmp_path / name)
    # Calc has flags of XLSX as the formulas TRUE() and FALSE().
    flags = {"TRUE", "FALSE"} if name.endswith(".xlsx") else set()
    assert {text for row in [head, *rows] for text, computes in row if computes} <= flags
    place = [text for text, _ in head].index("body")
    # Calc has empty rows below.
    came = [row[place][0] for row in rows if len(row) > place and row[0][0]]
    if name.endswith(".xlsx"):
        # Typed as text: nothing is prefixed, and nothing taken for a number or a date.
        assert sorted(map(spoken, came)) == sorted(map(legal, TEXTS))
        return
    theirs = {"3/5/2024", "1e5", "007", "2024-03-05"}
    shown = {spoken(text.removeprefix("'")) for text in came}
    assert not {spoken(text) for text in TEXTS} - shown - theirs


def legal(text: str) -> str:
    """A text with what XLSX has in place of control characters, spoken."""
    return spoken(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f]", "\ufffd", text))
