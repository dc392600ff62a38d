"""A browser for the tests in this folder: Debian's Chromium, headless, driven over loopback.

``browser`` is selenium's driver, with a new, empty profile, one for each test file. It fails the
test where Chromium is missing; ``make test-integrations`` installs it, or says how to.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
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
SECONDS_TO_LOAD = 60


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    for program in (CHROMIUM, DRIVER):
        assert program.exists(), f"{program} is missing; run: make test-integrations"
    options = Options()
    # Named, so that selenium looks for none and downloads none.
    options.binary_location = str(CHROMIUM)
    for flag in FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    service = Service(executable_path=str(DRIVER))
    with webdriver.Chrome(options=options, service=service) as driver:
        driver.set_page_load_timeout(SECONDS_TO_LOAD)
        yield driver
