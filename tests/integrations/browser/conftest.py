"""A browser for the tests in this folder: Debian's Chromium, headless, driven over loopback.

``browser`` is selenium's driver, one for all tests, without cookies and at its own size and colours
before each. It fails the test where Chromium is missing; ``make test-browser`` installs it, or says
how to.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM = Path("/usr/bin/chromium")
DRIVER = Path("/usr/bin/chromedriver")
FLAGS = [
    "--headless=new",
    # Chromium's sandbox does not start as root, nor in many containers.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    # Nothing but the mock is to be asked for anything.
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    "--window-size=1280,900",
]
SECONDS = 120
"""What a page or a script may take, on a machine that has much else to do."""


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    for program in (CHROMIUM, DRIVER):
        assert program.exists(), f"{program} is missing; run: make test-browser"
    options = Options()
    # Named, so that selenium looks for none and downloads none.
    options.binary_location = str(CHROMIUM)
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    service = Service(executable_path=str(DRIVER))
    with webdriver.Chrome(options=options, service=service) as driver:
        driver.set_page_load_timeout(SECONDS)
        driver.set_script_timeout(SECONDS)
        yield driver


@pytest.fixture
def browser(chromium: webdriver.Chrome) -> webdriver.Chrome:
    chromium.get("about:blank")
    chromium.execute_cdp_cmd("Network.clearBrowserCookies", {})
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    errors(chromium)
    return chromium


def show(browser: webdriver.Chrome, width: int, theme: str) -> None:
    """Gives the page a width, and the reader a light or a dark theme."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def errors(browser: webdriver.Chrome) -> list[str]:
    """What the browser has logged since it was last asked."""
    return [line["message"] for line in browser.get_log("browser")]


def runs_nothing(browser: webdriver.Chrome, *forbidden: str) -> None:
    """Fails where text of strangers ran, is an element that could, or had another place asked."""
    assert browser.execute_script("return window.hit") is None
    elements = ("script", "img", "iframe", "object", "link[href]", "[onload]", *forbidden)
    found = "return [...document.querySelectorAll(arguments[0])].map(each => each.outerHTML)"
    assert browser.execute_script(found, f"body :is({', '.join(elements)})") == []
    asked = "return performance.getEntriesByType('resource').map(each => each.name)"
    origin = browser.execute_script("return location.origin")
    loaded = browser.execute_script(asked)
    assert [each for each in loaded if not each.startswith(f"{origin}/")] == []


def barriers(browser: webdriver.Chrome, *, contrast: bool = True) -> list[Any]:
    """What axe finds inaccessible in the page; without ``contrast`` see `contrast.unreadable`."""
    browser.execute_script(Axe().axe_script)
    run = "axe.run(document, arguments[0]).then(arguments[1])"
    options = {"rules": {"color-contrast": {"enabled": contrast}}}
    found = browser.execute_async_script(run, options)["violations"]
    return [
        (each["id"], each["impact"], node["target"], node["failureSummary"])
        for each in found
        for node in each["nodes"]
    ]


LEAST = 4.5
"""What WCAG 2 asks of text."""

CONTRASTS = """
const parts = (colour) => {
  const numbers = colour.match(/[\\d.]+/g).map(Number);
  return numbers.length < 4 ? [...numbers, 1] : numbers;
};
const over = (above, below) => above.slice(0, 3).map(
  (value, index) => value * above[3] + below[index] * (1 - above[3]));
const luminance = (colour) => {
  const [red, green, blue] = colour.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const page = arguments[0];
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const holder = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !holder.getClientRects().length) continue;
  const chain = [];
  for (let each = holder; each; each = each.parentElement) chain.unshift(getComputedStyle(each));
  let behind = page, opacity = 1;
  for (const style of chain) {
    opacity *= Number(style.opacity);
    behind = over(parts(style.backgroundColor), behind);
  }
  const drawn = holder.namespaceURI.endsWith("svg");
  const ink = parts(drawn ? chain.at(-1).fill : chain.at(-1).color);
  ink[3] *= opacity;
  const [first, second] = [luminance(over(ink, behind)), luminance(behind)];
  const ratio = (Math.max(first, second) + 0.05) / (Math.min(first, second) + 0.05);
  found.push([ratio, walker.currentNode.data.trim().slice(0, 40)]);
}
return found;
"""


def unreadable(browser: webdriver.Chrome, behind: list[int]) -> list[Any]:
    """The texts whose contrast is too low, given the colour behind the page: red, green, blue.

    axe would take a minute for a page of a thousand texts, and a dark canvas for a white one.
    """
    contrasts = browser.execute_script(CONTRASTS, behind)
    assert contrasts, "the page has no text"
    return [each for each in contrasts if each[0] < LEAST]


class Page:
    """A page as somebody sees it."""

    def __init__(self, browser: webdriver.Chrome) -> None:
        self.browser = browser

    def find(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def run(self, script: str, *given: object) -> Any:
        return self.browser.execute_script(script, *given)

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def texts(self, selector: str) -> list[str]:
        """In one go: they come and go."""
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].map(each => each.innerText)",
            selector,
        )

    def until(self, seen: Callable[[], object]) -> None:
        WebDriverWait(self.browser, SECONDS, poll_frequency=0.05).until(lambda _: seen())

    def until_text(self, selector: str, wanted: str) -> None:
        self.until(lambda: wanted in self.text(selector))
