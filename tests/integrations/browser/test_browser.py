"""A browser reaches the mock."""

from __future__ import annotations

import json

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from backread.testing import MockServer


def test_the_openapi_document_opens(browser: Chrome, backread_server: MockServer) -> None:
    browser.get(f"{backread_server.url}/openapi.json")
    shown = browser.find_element(By.TAG_NAME, "pre").text
    assert json.loads(shown)["openapi"].startswith("3.1")
