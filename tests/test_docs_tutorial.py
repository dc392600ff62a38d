"""docs/tutorial.md, as a newcomer types it: in an empty folder, each block in its turn.

Outputs are compared without their line breaks; those of the demo without numbers too, since its
dates move with the day.
"""

import re
from contextlib import ExitStack

import pytest

from documents import IN_CHECKOUT, ROOT, Document, enter, shape, words
from newcomer import serving, settings, typed

if not IN_CHECKOUT:
    pytest.skip("the wheel check takes no pages along", allow_module_level=True)

TUTORIAL = Document(ROOT / "docs/tutorial.md")
FILE = re.compile(r"ave this as `([\w.]+)`")


@pytest.mark.slow
def test_each_step_leads_to_the_next(tmp_path, monkeypatch):
    pytest.importorskip("typer")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("MPLBACKEND", "agg")
    environment = enter(tmp_path, monkeypatch)
    kinds, printed, end = [], "", 0
    with ExitStack() as running:
        for block in TUTORIAL.blocks:
            start = TUTORIAL.text.index(block.code, end)
            before, end = TUTORIAL.text[end:start], start + len(block.code)
            kinds.append(block.kind)
            if block.language == "python":
                (tmp_path / FILE.findall(before)[-1]).write_text(block.code, encoding="utf-8")
            elif block.kind == "mock":
                lines = running.enter_context(serving(block.code, tmp_path, environment))
                environment |= settings(lines)
            elif block.kind == "output":
                comparable = words if "mock" in kinds else shape
                assert comparable(block.code) in comparable(printed)
            else:
                printed = typed(block.code, tmp_path, environment)
    assert {*kinds} == {"shell", "python", "pytest", "mock", "output"}
    made = {path.name for path in tmp_path.iterdir()}
    assert {"chats", "mine", "hours.png", "report.html", "chats.xlsx"} <= made
