"""The report in a browser: it runs nothing, asks nobody, and can be read on any screen."""

import base64
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.selenium import Axe
from selenium.webdriver import Chrome

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("pygal")

from backread import Mirror
from backread._report import report_html
from backread.testing import MockServer, World

sys.path.append(str(Path(__file__).resolve().parents[2]))
from contrast import CONTRASTS, LEAST_CONTRAST

from hostile_mirror import hostile_mirror
from mirrors import sync

SCREENS = [(400, "light"), (400, "dark"), (1280, "light"), (1280, "dark")]
BACKGROUNDS = {"light": [246, 247, 249], "dark": [20, 23, 27]}
LEAST_GRAPHIC_CONTRAST = 3.0
"""What WCAG 2 asks of the shapes of a chart."""

COLOURS = """
const luminance = (colour) => {
  const [red, green, blue] = colour.match(/[\\d.]+/g).slice(0, 3).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const card = luminance(getComputedStyle(document.querySelector("section")).backgroundColor);
return [...document.querySelectorAll(".chart .rect")].map((bar) => {
  const fill = luminance(getComputedStyle(bar).fill);
  return (Math.max(fill, card) + 0.05) / (Math.min(fill, card) + 0.05);
});
"""


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

    def show(name: str, width: int, scheme: str) -> Chrome:
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
        browser.get_log("browser")
        browser.get(reports[name].as_uri())
        return browser

    return show


@pytest.mark.parametrize("name", ["mock", "hostile"])
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_text_and_bars_can_be_told_from_what_is_behind(shown, name, width, scheme):
    browser = shown(name, width, scheme)
    browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = 1")
    contrasts = browser.execute_script(CONTRASTS, BACKGROUNDS[scheme])
    assert len(contrasts) > 300
    assert [each for each in contrasts if each[0] < LEAST_CONTRAST] == []
    bars = browser.execute_script(COLOURS)
    assert len(bars) > 20
    assert min(bars) >= LEAST_GRAPHIC_CONTRAST


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_page_fits_the_screen_and_the_charts_their_cards(shown, width, scheme):
    for name in ("mock", "hostile"):
        browser = shown(name, width, scheme)
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


@pytest.mark.parametrize("name", ["mock", "hostile"])
def test_nothing_runs_and_nobody_is_asked(shown, name):
    browser = shown(name, 1280, "light")
    assert browser.execute_script("return window.hit") is None
    # A refusal by the page's own policy would be here too.
    assert browser.get_log("browser") == []
    asked = browser.execute_script(
        "return performance.getEntriesByType('resource').map(each => each.name)"
    )
    assert asked == []
    assert browser.execute_script("return document.styleSheets[0].cssRules.length") > 50
    for forbidden in ("script", "img", "iframe", "a", "form", "object", "style", "[style]"):
        query = f"return document.querySelectorAll('body {forbidden}').length"
        assert browser.execute_script(query) == 0, forbidden


def test_screen_readers_hear_what_each_chart_shows(shown):
    browser = shown("mock", 1280, "light")
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    charts = [each for each in tree if _of(each, "role") in ("image", "img")]
    names = [_of(each, "name") for each in charts]
    assert len(names) == 10
    assert len(set(names)) == 10
    # The name is the title with the description.
    assert any("Users write most: " in name for name in names)
    assert [each for each in tree if _of(each, "role") == "heading" and not _of(each, "name")] == []


@pytest.mark.parametrize("name", ["mock", "hostile"])
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_axe_finds_nothing_to_complain_of(shown, name, width, scheme):
    browser = shown(name, width, scheme)
    browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = 1")
    found = Axe().run(browser)["violations"]
    assert [(each["id"], node["target"]) for each in found for node in each["nodes"]] == []


def test_print_has_all_sections_on_few_pages(shown):
    browser = shown("mock", 1280, "dark")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    card = "return getComputedStyle(document.querySelector('section')).backgroundColor"
    assert browser.execute_script(card) == "rgb(255, 255, 255)"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    sheet: Any = {"preferCSSPageSize": True, "paperWidth": 8.27, "paperHeight": 11.69}
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", sheet)["data"])
    assert 2 <= printed.count(b"/Type /Page\n") <= 6


def _of(node: dict[str, Any], name: str) -> str:
    return str(node.get(name, {}).get("value", ""))
