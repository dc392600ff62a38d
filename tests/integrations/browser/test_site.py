"""The documentation site in a browser: accessible, wide and narrow, light and dark, and offline.

``make docs`` builds it into target/site; ``make test-browser`` does so first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.selenium import Axe
from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SITE = Path(__file__).resolve().parents[3] / "target/site"
SECONDS = 60
PAGES = [
    "index.html",
    "how-to/many-workers.html",
    "reference/command-line.html",
    "reference/python/models.html",
    "explanation/certificates.html",
]
NARROW, WIDE = 400, 1280


class Quiet(SimpleHTTPRequestHandler):
    """A file server that logs nothing."""

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Says nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    assert (SITE / "index.html").is_file(), "target/site is missing; run: make docs"
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def look(browser: Chrome) -> Iterator[Callable[..., None]]:
    """Opens a page in a window of a width, in a theme."""
    browser.get_log("browser")

    def open_page(url: str, width: int = WIDE, theme: str = "light") -> None:
        features = [{"name": "prefers-color-scheme", "value": theme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.get(url)
        WebDriverWait(browser, SECONDS).until(
            lambda _: browser.execute_script(
                "return document.readyState === 'complete'"
                " && document.documentElement.classList.contains('js')"
            )
        )

    yield open_page
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def errors(browser: Chrome) -> list[str]:
    return [line["message"] for line in browser.get_log("browser")]


def elsewhere(browser: Chrome, address: str) -> list[str]:
    """The requests of the page that left the site."""
    loaded = browser.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    return [each for each in loaded if not each.startswith(f"{address}/")]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_serious_barrier(browser, look, address, page, width, theme):
    look(f"{address}/{page}", width, theme)
    assert browser.execute_script("return document.body.dataset.mdColorScheme") == (
        "slate" if theme == "dark" else "default"
    )
    found = Axe().run(browser)["violations"]
    serious = [
        (each["id"], node["target"], node["failureSummary"])
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
    assert serious == []
    assert errors(browser) == []


def test_every_page_fits_a_phone_and_loads_nothing_from_elsewhere(browser, look, address):
    for page in sorted(SITE.rglob("*.html")):
        name = page.relative_to(SITE).as_posix()
        look(f"{address}/{name}", NARROW)
        # What is wider than the page scrolls in itself.
        assert browser.execute_script("return document.documentElement.scrollWidth") == NARROW, name
        assert elsewhere(browser, address) == [], name
        assert errors(browser) == [], name


@pytest.mark.parametrize("kind", ["http", "file"])
def test_search_finds_a_page_without_a_network(browser, look, address, kind):
    root = address if kind == "http" else SITE.as_uri()
    look(f"{root}/index.html")
    browser.find_element(By.CSS_SELECTOR, ".md-search__button").click()
    ActionChains(browser).send_keys("ResponseTooLargeError").perform()
    # The results are below the focused element, in a tree of their own, and follow each key.
    results = (
        "const found = document.activeElement.shadowRoot?.querySelectorAll('a[href]') ?? [];"
        "return [...found].map(link => link.href)"
    )
    WebDriverWait(browser, SECONDS).until(
        lambda _: any(
            "reference/python/errors.html" in link for link in browser.execute_script(results)
        )
    )
    assert elsewhere(browser, root) == []
    assert errors(browser) == []


def test_code_can_be_copied(browser, look, address):
    look(f"{address}/index.html")
    buttons = browser.find_elements(By.CSS_SELECTOR, ".md-code__button[data-md-type=copy]")
    assert len(buttons) == 1
