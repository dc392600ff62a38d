"""What is drawn in a notebook, in a browser: it runs nothing, asks nobody, and can be read."""

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

from backread._display.mirrors import mirror_html
from backread._display.progress_bar import progress_html
from backread.mirror import Conversation, SyncReport
from backread.mirror.summary import LastRun, MirrorSummary
from backread.models import Page, WalkReport

sys.path.append(str(Path(__file__).resolve().parents[2]))
from contrast import CONTRASTS, LEAST_CONTRAST

from strangers import ADDRESSES, HOSTILE, stranger, written

# A page as a notebook in a light and in a dark theme, and one that leaves it to the browser.
THEMES = {
    "light": "body { background: #fff; color: rgba(0, 0, 0, .87) }",
    "dark": "body { background: #111; color: #e0e0e0 }",
    "system light": ":root { color-scheme: light dark }",
    "system dark": ":root { color-scheme: light dark }",
}
# JupyterLab's rules for tables and links, as far as they could get in the way.
LAB = """
.lab table { border: none; font-size: 12px; table-layout: fixed; margin-bottom: 1em }
.lab td, .lab th, .lab tr { text-align: right; vertical-align: middle; white-space: normal }
.lab tbody tr:nth-child(odd) { background: rgb(200, 200, 40) }
.lab a:link { color: rgb(100, 181, 246) }
"""

NOW = datetime(2026, 3, 1, tzinfo=UTC)
REPORT = WalkReport(3, 2, 10, 10, 0, 10, 10, 1, 0, "linked", NOW, NOW, None)
SYNCED = SyncReport(
    7, "full", True, 9, 20, 50, 3, 2, 4, 1, 12, 4, "snapshot", None,
    {"snapshot": 19, "uncertified": 1}, (42,), NOW, NOW, 3.5,
)  # fmt: skip

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
        replace(REPORT, started_at=None, ended_at=None),
        SYNCED,
    ]
    cards = [
        mirror_html(CARD),
        mirror_html(MirrorSummary(Path(HOSTILE[1]), problem=HOSTILE[0])),
        mirror_html(MirrorSummary(Path("empty"), problem="nothing is published", is_empty=True)),
    ]
    bars = [progress_html(HOSTILE[2], part, [HOSTILE[1]], live=True) for part in (None, 0.4)]
    return [*(thing._repr_html_() for thing in things), *cards, *bars]


@pytest.fixture
def shown(browser: Chrome, tmp_path: Path) -> Callable[..., Chrome]:
    """Shows drawings in a page of a theme, as a notebook would: all in one document."""

    def show(theme: str, pieces: list[str]) -> Chrome:
        scheme = "dark" if "dark" in theme else "light"
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
        outputs = "".join(f"<div class=lab>{piece}</div>" for piece in pieces)
        page = tmp_path / "notebook.html"
        page.write_text(
            "<!doctype html><html lang=en><meta charset=utf-8><title>t</title>"
            f"<style>{THEMES[theme]}{LAB}</style><body>{outputs}</body></html>",
            encoding="utf-8",
        )
        browser.get(page.as_uri())
        return browser

    return show


@pytest.mark.parametrize("theme", THEMES)
def test_text_can_be_read(shown, theme):
    browser = shown(theme, drawings())
    browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = 1")
    ground = {"light": [255, 255, 255], "dark": [17, 17, 17], "system light": [255, 255, 255],
              "system dark": [18, 18, 18]}[theme]  # fmt: skip
    contrasts = browser.execute_script(CONTRASTS, ground)
    assert len(contrasts) > 1_000
    assert [each for each in contrasts if each[0] < LEAST_CONTRAST] == []


def test_nothing_runs_and_nobody_is_asked(shown):
    browser = shown("light", drawings())
    assert browser.execute_script("return window.hit") is None
    for forbidden in ("script", "img", "iframe", "svg", "object", "link[href]", "form", "[onload]"):
        assert browser.execute_script(
            "return document.querySelectorAll('body ' + arguments[0]).length", forbidden
        ) == 0, forbidden  # fmt: skip
    asked = browser.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name)"
    )
    assert asked == []
    schemes = browser.execute_script("return [...document.links].map(each => each.protocol)")
    assert set(schemes) == {"http:", "https:"}
    browser.execute_script(
        "for (const each of document.links) each.dispatchEvent(new Event('mouseover'))"
    )
    assert browser.execute_script("return window.hit") is None


def test_a_link_leads_where_it_says(shown):
    browser = shown("light", [talk()._repr_html_()])
    said = browser.execute_script(
        "return [...document.links].map(each => [each.host, each.parentElement.innerText])"
    )
    assert said
    for host, text in said:
        assert f"({host})".lower() in text.lower()


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_sticks_out(shown, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser = shown(
        "light",
        [
            talk()._repr_html_(),
            Page(9, 0, 9, tuple(talk(9)))._repr_html_(),
            stranger("w" * 700)._repr_html_(),
            mirror_html(CARD),
        ],
    )
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        widest = browser.execute_script("return document.documentElement.scrollWidth")
        assert widest <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_saved_conversation_can_be_read_and_runs_nothing(browser, tmp_path, scheme):
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    browser.get(talk().save(tmp_path / "chat.html").as_uri())
    assert browser.execute_script("return window.hit") is None
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    # Its policy allows its styles, and no other.
    assert browser.execute_script("return getComputedStyle(document.body).maxWidth") != "none"
    bubble = "return getComputedStyle(document.querySelector('.br-bubble')).borderTopLeftRadius"
    assert browser.execute_script(bubble) == "16px"
    browser.execute_script(
        "const s = document.createElement('style'); s.textContent = 'body{max-width:none}';"
        "document.body.append(s)"
    )
    assert browser.execute_script("return getComputedStyle(document.body).maxWidth") != "none"
    ground = {"light": [255, 255, 255], "dark": [18, 18, 18]}[scheme]
    contrasts = browser.execute_script(CONTRASTS, ground)
    assert len(contrasts) > 100
    assert [each for each in contrasts if each[0] < LEAST_CONTRAST] == []


@pytest.mark.parametrize("text", ["😀" * 10_000, "w" * 3_000, "line\n" * 3_000])
def test_a_long_text_leaves_room_for_the_rest(shown, text):
    long = written(1, text, "https://files.example.com/a.pdf")
    pieces = [Conversation(stranger("Ada"), (long,)), replace(long, extra={}, sender=None)]
    browser = shown("light", [each._repr_html_() for each in pieces])
    heights = browser.execute_script(
        "return [...document.querySelectorAll('.lab')].map(each => each.offsetHeight)"
    )
    assert max(heights) < 900
    ends = """for (const each of document.querySelectorAll('.br-tall')) each.scrollTop = 1e9;
        return [...document.querySelectorAll('.br-tall')].map(each => each.scrollTop)"""
    assert min(browser.execute_script(ends)) > 0


def test_names_of_fields_are_not_broken_within_a_word(shown):
    metrics = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser = shown("light", [written(1, "w" * 700)._repr_html_(), SYNCED._repr_html_()])
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.execute_script("document.querySelectorAll('details').forEach(e => e.open = true)")
        lines = browser.execute_script(
            """const range = document.createRange(), found = {};
            for (const each of document.querySelectorAll('tbody th')) {
                range.selectNodeContents(each);
                found[each.innerText] = range.getClientRects().length;
            }
            return found"""
        )
        widest = browser.execute_script("return document.documentElement.scrollWidth")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    for name in ("read_by_operator", "auto_invitation", "lists_by_certificate", "messages_updated"):
        assert lines[name] == 1, name
    assert widest <= 400


def test_the_user_is_on_the_left(shown):
    browser = shown("dark", [talk()._repr_html_()])
    places = browser.execute_script(
        """const middle = document.querySelector('.br-chat').getBoundingClientRect();
        return ['user', 'operator'].map(side => {
            const bubble = document.querySelector(`.br-${side} .br-bubble`).getBoundingClientRect();
            return [bubble.left - middle.left, middle.right - bubble.right];
        })"""
    )
    [user, operator] = places
    assert user[0] < user[1]
    assert operator[0] > operator[1]


def test_a_strangers_style_reaches_nothing_else(shown):
    plain = "<table id=other><tr><td>left alone</td></tr></table>"
    style = "const s = getComputedStyle(document.querySelector('#other td'));"
    question = f"{style} return [s.color, s.padding, s.textAlign, s.borderTopWidth, s.fontWeight]"
    before = shown("light", [plain]).execute_script(question)
    assert shown("light", [plain, *drawings()]).execute_script(question) == before
