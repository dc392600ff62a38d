"""The notebook of examples/ runs, and shows what is committed with it."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from strangers import Drawn

for package in ("nbclient", "nbformat", "matplotlib", "polars", "pyarrow", "duckdb"):
    pytest.importorskip(package)

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "examples/notebook/chats.ipynb"

if not NOTEBOOK.is_file():
    pytest.skip("the wheel check takes no examples along", allow_module_level=True)

# What takes time takes another time in each run.
TIMES = re.compile(
    r"\b\d[\d.,]* m?s\b|\d{4}-\d\d-\d\d [\d:.]+ UTC|datetime\.datetime\([^)]*\)"
    r"|seconds=?[\d.]+|took.*"
)


def committed() -> Any:
    import nbformat

    return nbformat.read(NOTEBOOK, as_version=4)


def kept(data: dict[str, str]) -> dict[str, str]:
    """What an output says, by media type, without times and with the text of markup alone."""
    said = dict(data)
    for kind in ("text/html", "image/svg+xml"):
        if kind in said:
            said[kind] = Drawn(said[kind]).text
    return {kind: TIMES.sub("", text) for kind, text in said.items()}


def shown(notebook: Any) -> list[tuple[int, str, dict[str, str]]]:
    """Each output: its cell, its type, and what it says."""
    return [
        (number, output["output_type"], kept(output.get("data", {"text/plain": str(output)})))
        for number, cell in enumerate(notebook["cells"])
        for output in cell.get("outputs", [])
    ]


@pytest.mark.slow
def test_it_shows_what_is_committed():
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools/execute_notebook.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert shown(tool.executed(NOTEBOOK)) == shown(committed())


def test_what_is_committed_tells_nothing_of_the_machine():
    text = NOTEBOOK.read_text(encoding="utf-8")
    for told in ("/tmp", "/home", "/root", "/work", "127.0.0.1", "localhost", " at 0x"):
        assert told not in text, told
    assert "image/png" not in text
    assert "Traceback" not in text
    assert committed()["metadata"]["language_info"] == {"name": "python"}


def test_each_kind_of_picture_is_in_it():
    outputs = shown(committed())
    pictures = [data["image/svg+xml"] for *_, data in outputs if "image/svg+xml" in data]
    assert len(pictures) == 3
    pages = " ".join(data["text/html"] for *_, data in outputs if "text/html" in data)
    for said in ("✓ snapshot", "SyncReport: run 2", "automatic invitation", "9548", "synced"):
        assert said in pages
