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
from selenium.webdriver import Chrome
from selenium.webdriver.support.ui import WebDriverWait

from conftest import barriers, errors, show

SITE = Path(__file__).resolve().parents[3] / "target/site"
SECONDS = 60
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
def look(browser: Chrome) -> Callable[..., None]:
    """Opens a page in a window of a width, in a theme."""

    def open_page(url: str, width: int = WIDE, theme: str = "light") -> None:
        show(browser, width, theme)
        browser.get(url)
        WebDriverWait(browser, SECONDS).until(
            lambda _: browser.execute_script(
                "return document.readyState === 'complete'"
                " && document.documentElement.classList.contains('js')"
            )
        )

    return open_page


def elsewhere(browser: Chrome, address: str) -> list[str]:
    """The requests of the page that left the site."""
    loaded = browser.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    return [each for each in loaded if not each.startswith(f"{address}/")]


@pytest.mark.parametrize(
    ("page", "width", "theme"),
    [
        ("index.html", NARROW, "dark"),
        ("how-to/many-workers.html", WIDE, "light"),
        ("reference/command-line.html", NARROW, "light"),
        ("reference/python/models.html", WIDE, "dark"),
    ],
)
def test_a_page_has_no_serious_barrier(browser, look, address, page, width, theme):
    look(f"{address}/{page}", width, theme)
    assert browser.execute_script("return document.body.dataset.mdColorScheme") == (
        "slate" if theme == "dark" else "default"
    )
    serious = [each for each in barriers(browser) if each[1] in ("serious", "critical")]
    assert serious == []
    # What is wider than the page scrolls in itself.
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert elsewhere(browser, address) == []
    assert errors(browser) == []
