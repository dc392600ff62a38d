"""Takes the pictures of README.md: the page of `backread browse`, and a report.

Usage: ``make pictures``, which runs this in the environment of the integration tests; it needs
Debian's chromium and chromium-driver. The pictures show the demo's mirror, made in a temporary
folder with a fixed end, so a picture changes only when its page does.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from backread._browse import BrowseServer

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
UNTIL = "2026-11-30T00:00:00Z"
WIDTH = 1280
BROWSE_HEIGHT = 660
REPORT_HEIGHT = 2400
WORD = "refund"
COLOURS = 256
MOST_BYTES = 150_000
SECONDS = 60
"""What a page may take to load, on a machine that has much else to do."""


@contextmanager
def chromium(profile: Path) -> Iterator[webdriver.Chrome]:
    """Debian's Chromium without a window, in light colours; it makes no request of its own."""
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-proxy-server",
        "--hide-scrollbars",
        "--force-device-scale-factor=1",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(flag)
    service = Service(executable_path="/usr/bin/chromedriver")
    with webdriver.Chrome(options=options, service=service) as browser:
        light = [{"name": "prefers-color-scheme", "value": "light"}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": light})
        yield browser


def show(browser: webdriver.Chrome, url: str, height: int) -> None:
    """Opens a page in a window of the pictures' width."""
    metrics = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(url)


def wait_for(browser: webdriver.Chrome, selector: str) -> None:
    """Waits until the page has such an element, and it has text."""
    script = "return document.querySelector(arguments[0])?.innerText.trim()"
    WebDriverWait(browser, SECONDS).until(lambda _: browser.execute_script(script, selector))


def save(browser: webdriver.Chrome, name: str, top: float = 0, bottom: float = 0) -> None:
    """Writes the window, or a part of its height, with few colours; exits if that is too large."""
    path = IMAGES / name
    picture = Image.open(BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    if bottom:
        picture = picture.crop((0, int(top), WIDTH, int(bottom)))
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    if size > MOST_BYTES:
        sys.exit(f"{name} has {size:,} bytes; the limit is {MOST_BYTES:,}")
    print(f"{name}: {size:,} bytes")


def backread(folder: Path, *arguments: str) -> None:
    """Runs a command in a folder."""
    command = [sys.executable, "-m", "backread", *arguments]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def take_browse(browser: webdriver.Chrome, folder: Path) -> None:
    """A search of the messages, with the first hit open in its conversation."""
    with BrowseServer(folder, on_error=sys.exit) as server:
        show(browser, server.url, BROWSE_HEIGHT)
        wait_for(browser, "#items li")
        browser.find_element(By.ID, "words").send_keys(WORD, Keys.ENTER)
        wait_for(browser, "#items mark")
        browser.find_element(By.CSS_SELECTOR, "#items .item").click()
        wait_for(browser, "#messages")
        save(browser, "browse.png")


def take_report(browser: webdriver.Chrome, page: Path) -> None:
    """The main figures and the first three charts, without the time of the sync above them."""
    show(browser, page.as_uri(), REPORT_HEIGHT)
    wait_for(browser, "main section")
    top, bottom = browser.execute_script(
        """
        const [main, ...charts] = document.querySelectorAll("main, main section");
        const gap = 16;
        return [main.firstElementChild.getBoundingClientRect().top - gap,
          charts[2].getBoundingClientRect().bottom + gap];
        """
    )
    save(browser, "report.png", top, bottom)


def main() -> None:
    """Takes both."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        backread(folder, "demo", "chats", "--until", UNTIL)
        backread(folder, "report", "chats", "--output", "report.html")
        with chromium(folder / "profile") as browser:
            take_browse(browser, folder / "chats")
            take_report(browser, folder / "report.html")


if __name__ == "__main__":
    main()
