"""A browser for the tests in this folder: Debian's Chromium, headless, driven over loopback.

``browser`` is selenium's driver, one for all tests, without cookies and at its own size and colours
before each. It fails the test where Chromium is missing; ``make test-browser`` installs it, or says
how to.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

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
