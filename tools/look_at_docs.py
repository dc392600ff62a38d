"""Takes screenshots of the documentation site, to look at: wide and narrow, light and dark.

Usage: ``python tools/look_at_docs.py FOLDER [PAGE...]``, after ``make docs`` and in an environment
with the group ``integrations``. A page is named as in target/site: ``how-to/mirror.html``. The
pictures go to the folder, one for each page, width and theme, as far down as the page reaches.
"""

import sys
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

SITE = Path(__file__).resolve().parent.parent / "target/site"
PAGES = (
    "index.html",
    "how-to/index.html",
    "how-to/mirror.html",
    "reference/command-line.html",
    "reference/python/client.html",
    "explanation/certificates.html",
)
WIDTHS = (400, 1280)
LONGEST = 6_000
"""The most pixels of a page's height."""


def start() -> webdriver.Chrome:
    """Debian's Chromium, without a window."""
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def take(browser: webdriver.Chrome, page: str, width: int, theme: str, folder: Path) -> Path:
    """One picture; its path."""
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    for height in (900, LONGEST):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        if height == 900:
            browser.get((SITE / page).as_uri())
            WebDriverWait(browser, 60).until(
                lambda _: browser.execute_script("return document.readyState") == "complete"
            )
    picture = folder / f"{page.removesuffix('.html').replace('/', '-')}-{width}-{theme}.png"
    browser.save_screenshot(str(picture))
    return picture


def main() -> None:
    """Takes all pictures and prints their paths."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, pages = Path(sys.argv[1]), sys.argv[2:] or PAGES
    folder.mkdir(parents=True, exist_ok=True)
    with start() as browser:
        for page in pages:
            for width in WIDTHS:
                for theme in ("light", "dark"):
                    print(take(browser, page, width, theme, folder))


if __name__ == "__main__":
    main()
