"""A terminal for output in this process. Without a package that the command needs, its tests are
left out.
"""

import io
from importlib.util import find_spec

import pytest

NEEDED = ("duckdb", "rich", "typer")

collect_ignore_glob = [] if all(map(find_spec, NEEDED)) else ["test_*.py"]


class Terminal(io.StringIO):
    """Claims to be a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()
