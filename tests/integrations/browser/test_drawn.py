"""What is drawn in a notebook, in a browser: it runs nothing, asks nobody, and can be read."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

from backread._progress.output import State, notebook_line
from backread.mirror import Conversation
from backread.mirror.summary import LastRun, MirrorSummary
from backread.models import Page, WalkReport
from conftest import runs_nothing, show, unreadable
from helpers.hostile_text import ADDRESSES, HOSTILE, stranger, written

# A page as a notebook in a light and in a dark theme, and one that leaves it to the browser.
THEMES = {
    "light": "body { background: #fff; color: rgba(0, 0, 0, .87) }",
    "dark": "body { background: #111; color: #e0e0e0 }",
    "system dark": ":root { color-scheme: light dark }",
}
BEHIND = {"light": [255, 255, 255], "dark": [17, 17, 17], "system dark": [18, 18, 18]}
# JupyterLab's rules for tables and links, as far as they could get in the way.
LAB = """
.lab table { border: none; font-size: 12px; table-layout: fixed; margin-bottom: 1em }
.lab td, .lab th, .lab tr { text-align: right; vertical-align: middle; white-space: normal }
.lab tbody tr:nth-child(odd) { background: rgb(200, 200, 40) }
.lab a:link { color: rgb(100, 181, 246) }
"""

NOW = datetime(2026, 3, 1, tzinfo=UTC)
REPORT = WalkReport(3, 2, 10, 10, 0, 10, 10, 1, 0, "linked", NOW, NOW, None)

CARD = MirrorSummary(
    Path("/srv/chats"), rows={"users": 20, "messages": 5_000},
    bytes={"users": 9, "messages": 9}, published_at=NOW,
    run=LastRun(7, "full", "partial", 3, NOW, "uncertified", HOSTILE[1]),
    lists={"snapshot": 19, "uncertified": 1}, user_id=42,
)  # fmt: skip


def talk(count: int = 60) -> Conversation:
    """Messages of everything hostile there is."""
    messages = (
        written(number, HOSTILE[number % len(HOSTILE)], ADDRESSES[number % len(ADDRESSES)])
        for number in range(count)
    )
    return Conversation(stranger(HOSTILE[0]), tuple(messages))


def drawings() -> list[str]:
    things: list[Any] = [
        talk(),
        stranger(HOSTILE[1], ADDRESSES[0]),
        *talk(8),
        Page(99, 0, 60, tuple(talk())),
        Page(99, 0, 2, tuple(stranger(text) for text in HOSTILE)),
        REPORT,
        replace(REPORT, certificate="uncertified", reason=HOSTILE[1]),
    ]
    cards = [
        CARD.to_html(),
        MirrorSummary(Path(HOSTILE[1]), problem=HOSTILE[0]).to_html(),
    ]
    bars = [
        notebook_line(State(HOSTILE[2], (HOSTILE[1],), part), live=True) for part in (None, 0.4)
    ]
    return [*(thing._repr_html_() for thing in things), *cards, *bars]


@pytest.fixture
def shown(browser: Chrome, tmp_path: Path) -> Callable[..., Chrome]:
    """Shows drawings in a page of a theme, as a notebook would: all in one document."""

    def open_page(theme: str, pieces: list[str], width: int = 1280) -> Chrome:
        show(browser, width, "dark" if "dark" in theme else "light")
        outputs = "".join(f"<div class=lab>{piece}</div>" for piece in pieces)
        page = tmp_path / "notebook.html"
        page.write_text(
            "<!doctype html><html lang=en><meta charset=utf-8><title>t</title>"
            f"<style>{THEMES[theme]}{LAB}</style><body>{outputs}</body></html>",
            encoding="utf-8",
        )
        browser.get(page.as_uri())
        return browser

    return open_page


@pytest.mark.parametrize("theme", THEMES)
def test_text_can_be_read(shown, theme):
    browser = shown(theme, drawings())
    browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = 1")
    assert unreadable(browser, BEHIND[theme]) == []


def test_nothing_runs_and_nobody_is_asked(shown):
    browser = shown("light", drawings())
    schemes = browser.execute_script("return [...document.links].map(each => each.protocol)")
    assert set(schemes) == {"http:", "https:"}
    browser.execute_script(
        "for (const each of document.links) each.dispatchEvent(new Event('mouseover'))"
    )
    runs_nothing(browser, "svg", "form")


def test_nothing_is_wider_than_a_narrow_page(shown):
    pieces = [
        talk()._repr_html_(),
        Page(9, 0, 9, tuple(talk(9)))._repr_html_(),
        stranger("w" * 700)._repr_html_(),
        CARD.to_html(),
    ]
    browser = shown("light", pieces, width=400)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400


def test_a_saved_conversation_can_be_read_and_runs_nothing(browser, tmp_path):
    show(browser, 1280, "dark")
    browser.get(talk().save(tmp_path / "chat.html").as_uri())
    assert unreadable(browser, BEHIND["system dark"]) == []
    runs_nothing(browser)


def test_a_strangers_style_reaches_nothing_else(shown):
    plain = "<table id=other><tr><td>left alone</td></tr></table>"
    style = "const s = getComputedStyle(document.querySelector('#other td'));"
    question = f"{style} return [s.color, s.padding, s.textAlign, s.borderTopWidth, s.fontWeight]"
    before = shown("light", [plain]).execute_script(question)
    assert shown("light", [plain, *drawings()]).execute_script(question) == before
