"""What `make docs` refuses: links that lead nowhere, remote resources, names without words."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from documents import IN_CHECKOUT, ROOT

if not IN_CHECKOUT:
    pytest.skip("the wheel check takes no tools along", allow_module_level=True)

TOOLS = ROOT / "tools/docs"


def imported(name: str) -> Iterator[ModuleType]:
    """A script of tools/docs, with those beside it that it imports."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TOOLS)
        yield importlib.import_module(name)
    for added in set(sys.modules) - before:
        if Path(getattr(sys.modules[added], "__file__", None) or "/").is_relative_to(TOOLS):
            del sys.modules[added]


@pytest.fixture
def check_site() -> Iterator[ModuleType]:
    yield from imported("check_site")


@pytest.fixture
def check_names() -> Iterator[ModuleType]:
    pytest.importorskip("griffe")
    yield from imported("check_names")


@pytest.mark.parametrize(
    ("html", "complaint"),
    [
        ('<a href="other.html#there">x</a>', None),
        ('<a href="https://example.com/nobody-knows">x</a>', None),
        ('<a href="missing.html">x</a>', "missing.html: there is no such file"),
        ('<a href="other.html#gone">x</a>', "other.html#gone: the page has no such anchor"),
        ('<a href="#gone">x</a>', "#gone: the page has no such anchor"),
        ('<img src="gone.svg">', "gone.svg: there is no such file"),
        ('<script src="https://cdn.example.com/x.js"></script>', "loads https://cdn.example.com/"),
        ('<link rel="stylesheet" href="//fonts.example.com/">', "loads //fonts.example.com/"),
        ("<p>::: backread.Client</p>", "shows Markdown: :::"),
        ("<p>[Client](client.md)</p>", "shows Markdown: ](client.md)"),
        ("<pre><code>[Client](client.md)</code></pre>", None),
    ],
)
def test_a_page_is_refused_for_what_is_wrong_with_it(check_site, tmp_path, html, complaint):
    (tmp_path / "other.html").write_text('<h2 id="there">There</h2>', encoding="utf-8")
    (tmp_path / "index.html").write_text(html, encoding="utf-8")
    found = list(check_site.problems(tmp_path))
    assert len(found) == (complaint is not None)
    assert complaint is None or complaint in found[0]


def test_a_name_without_words_is_refused(check_names, tmp_path):
    import griffe

    (tmp_path / "backread").mkdir()
    (tmp_path / "backread/__init__.py").write_text(
        '''
from dataclasses import dataclass

def read(folder, limit):
    """Reads the folder."""

class Reader:
    """Reads."""

    def rows(self): ...

@dataclass
class Report:
    """What was read: ``rows``."""

    rows: int
    seconds: float
''',
        encoding="utf-8",
    )
    package = griffe.load("backread", search_paths=[tmp_path], allow_inspection=False)
    found = {
        name: list(check_names.problems_of(package[name])) for name in ("read", "Reader", "Report")
    }
    assert found == {
        "read": ["backread.read does not describe its argument limit"],
        "Reader": ["backread.Reader.rows has no docstring"],
        "Report": [
            "backread.Report.seconds has no docstring, and that of its class does not name it"
        ],
    }


def test_the_reference_of_the_command_line_is_what_the_commands_say():
    pytest.importorskip("typer")
    script = TOOLS / "command_line.py"
    checked = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
