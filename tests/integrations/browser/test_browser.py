"""A browser reaches the mock."""

import json

from selenium.webdriver.common.by import By


def test_the_openapi_document_opens(browser, backread_server):
    browser.get(f"{backread_server.url}/openapi.json")
    shown = browser.find_element(By.TAG_NAME, "pre").text
    assert json.loads(shown)["openapi"].startswith("3.1")
