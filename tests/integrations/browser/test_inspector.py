"""The inspector page in a browser: what it shows live, and what its fault form does to clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from backread.errors import NotFoundError
from backread.testing import MockServer, World
from conftest import Page, barriers, errors, show


class Inspector(Page):
    """The inspector of one server."""

    def __init__(self, browser: Chrome, server: MockServer) -> None:
        super().__init__(browser)
        browser.get("about:blank")
        browser.get(server.inspector_url)

    def connected(self) -> Inspector:
        self.until_text("#connection", "live")
        return self

    def submit(self, selector: str, text: str) -> None:
        field = self.find(selector)
        field.clear()
        field.send_keys(text, Keys.ENTER)

    def press(self, selector: str) -> None:
        button = self.find(selector)
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()

    def rows(self) -> list[str]:
        return self.texts("#requests tbody tr")


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=7, users=120, messages_per_user=(1, 40))) as server:
        yield server


@pytest.fixture
def page(browser: Chrome, server: MockServer) -> Iterator[Inspector]:
    yield Inspector(browser, server).connected()
    assert [line for line in errors(browser) if "status of 4" not in line] == []


def test_the_page_shows_the_server_and_hides_the_token(page, server):
    assert page.text("#url") == server.url
    page.until_text("#worlds", "main: 120 users, 0 requests")
    assert server.admin_token not in page.browser.current_url
    assert server.admin_token not in page.browser.page_source
    page.browser.refresh()
    page.connected()
    assert sum(server.counts().values()) == 0


def test_requests_show_as_they_come_and_odd_ones_are_marked(page, server):
    page.until_text("#counts", "No request yet")
    with server.client() as client:
        client.users.page(offset=5, limit=7)
        page.until_text("#requests tbody", "GET /external/users?offset=5&limit=7")
        page.until_text("#counts", "users: 1, 200: 1")
        server.fault("user: status(404)")
        with pytest.raises(NotFoundError):
            client.users.get(42)
    page.until(lambda: len(page.rows()) == 2)
    latest, first = page.rows()
    assert "/external/users/42" in latest
    assert "fault: user: status(404)" in latest
    assert "offset=5" in first


def test_a_fault_added_in_the_page_makes_clients_fail(page, server):
    with server.client(max_retries=0) as client:
        page.submit("#fault", "users offset=x: status(404)")
        page.until_text("#fault-problem", "offset must be a whole number")
        page.submit("#fault", "users offset=0: status(404)")
        page.until_text("#faults", "status(404)")
        with pytest.raises(NotFoundError):
            client.users.page()
        page.until_text("#faults", "fired: 1")
        page.press("#faults button")
        page.until(lambda: not page.all("#faults li"))
        assert client.users.page().total == 120


def test_each_lane_is_listed_and_can_be_picked(page, server):
    with server.lane(World(users=5), name="second") as lane, server.client() as client:
        page.until_text("#worlds", "second: 5 users")
        client.users.page()
        page.until(lambda: len(page.rows()) == 1)
        Select(page.find("#lane")).select_by_value("second")
        page.until(lambda: page.rows() == [])
        page.submit("#fault", "any: status(404)")
        page.until_text("#faults", "404")
        assert client.users.page().total == 120
        assert lane.faults == ("any: status(404)",)
    page.until(lambda: page.find("#lane").get_property("value") == "main")
    page.until(lambda: len(page.rows()) == 2)


def test_a_wrong_token_is_refused_in_words_and_a_server_that_ended_is_said(browser, server):
    page = Inspector(browser, server).connected()
    browser.execute_script("sessionStorage.clear()")
    browser.get("about:blank")
    browser.get(f"{server.url}/__mock/#{'0' * 32}")
    page.until_text("#sign-in-problem", "ADMIN_TOKEN")
    assert not page.find("#tools").is_displayed()
    page.submit("#token", server.admin_token)
    page.connected()
    assert page.find("#tools").is_displayed()
    server.close()
    page.until_text("#connection", "does not answer")


def test_what_the_server_says_is_text_and_never_markup(page, server):
    page.browser.execute_script(
        "fetch('/external/<img src=x onerror=window.hit=1>?<script>window.hit=1</script>')"
    )
    page.until_text("#requests tbody", "unexpected: unknown_path")
    page.submit("#fault", 'users: garbage("<img src=x onerror=window.hit=1>")')
    page.until_text("#faults", "<img src=x onerror=window.hit=1>")
    assert page.all("main img, main script") == []
    assert page.browser.execute_script("return window.hit") is None


def test_axe_finds_no_barrier_and_nothing_is_wider_than_a_narrow_page(page, server):
    server.fault(f'users: garbage("{"long" * 99}") x1')
    for width in (1280, 400):
        show(page.browser, width, "light")
        with server.client() as client:
            list(client.users.list())
        page.until(lambda: len(page.rows()) >= 3)
        assert page.browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert barriers(page.browser) == []
