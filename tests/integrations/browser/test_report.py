"""The report in a browser: it runs nothing, asks nobody, and can be read on any screen."""

from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from backread import Mirror
from backread._report.page import report_html
from backread.testing import MockServer, World
from conftest import barriers, errors, runs_nothing, show, unreadable
from helpers.hostile_mirror import hostile_mirror
from helpers.mirrors import sync

BEHIND = {"light": [246, 247, 249], "dark": [20, 23, 27]}
SCREENS = [(400, "dark"), (1280, "light")]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report of the mock, and one in which all names are hostile."""
    folder = tmp_path_factory.mktemp("reports")
    mirror = Mirror(folder / "chats")
    with MockServer(World(seed=3, users=120, messages_per_user=(0, 40))) as server:
        sync(mirror, server)
    hostile = hostile_mirror(folder / "hostile")
    found = {}
    for name, each in (("mock", mirror), ("hostile", hostile)):
        found[name] = folder / f"{name}.html"
        figures = each.figures(timezone="Europe/Berlin", opening_hours="mon-fri 9-17")
        found[name].write_text(report_html(figures, each.folder.name), encoding="utf-8")
    return found


@pytest.fixture
def shown(browser: Chrome, reports: dict[str, Path]) -> Callable[[str, int, str], Chrome]:
    """Shows a report on a screen of a width, in a light or a dark theme."""

    def open_page(name: str, width: int, theme: str) -> Chrome:
        show(browser, width, theme)
        browser.get(reports[name].as_uri())
        return browser

    return open_page


@pytest.mark.parametrize(("width", "theme"), SCREENS)
def test_page_fits_the_screen_and_the_charts_their_cards(shown, width, theme):
    for name in ("mock", "hostile"):
        browser = shown(name, width, theme)
        root = "const root = document.documentElement; return root.scrollWidth - root.clientWidth"
        assert browser.execute_script(root) == 0
        outside = browser.execute_script(
            """
            return [...document.querySelectorAll(".chart text")].filter((text) => {
              const [inner, outer] = [text, text.ownerSVGElement].map(
                (each) => each.getBoundingClientRect());
              return outer.width && (inner.left < outer.left - 2 || inner.right > outer.right + 2);
            }).map((text) => text.textContent);
            """
        )
        assert outside == []
        forms = browser.execute_script(
            "return [...document.querySelectorAll('.chart')].map(each => each.clientWidth > 0)"
        )
        assert forms == [width > 620, width <= 620] * (len(forms) // 2)


def test_nothing_runs_and_nobody_is_asked(shown):
    browser = shown("hostile", 1280, "light")
    runs_nothing(browser, "a", "form", "style", "[style]")
    # A refusal by the page's own policy would be here too.
    assert errors(browser) == []
    assert browser.execute_script("return document.styleSheets[0].cssRules.length") > 50


@pytest.mark.parametrize(
    ("name", "width", "theme"), [("mock", 400, "dark"), ("hostile", 1280, "light")]
)
def test_axe_finds_no_barrier(shown, name, width, theme):
    browser = shown(name, width, theme)
    browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = 1")
    assert barriers(browser, contrast=False) == []
    assert unreadable(browser, BEHIND[theme]) == []
