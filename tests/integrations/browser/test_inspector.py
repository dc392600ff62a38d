"""The inspector page in a browser: what it shows live, and what its controls do to clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

from backread.errors import NotFoundError, RateLimitError
from backread.testing import MockServer, World
from conftest import barriers, errors, show

SECONDS = 60


class Page:
    """The inspector of one server, as somebody sees it."""

    def __init__(self, browser: Chrome, server: MockServer) -> None:
        self.browser = browser
        browser.get("about:blank")
        browser.get(server.inspector_url)

    def find(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.find(selector).text

    def until(self, seen: Callable[[], object], *, but: str = "") -> None:
        WebDriverWait(self.browser, SECONDS, poll_frequency=0.05).until(lambda _: seen(), but)

    def until_text(self, selector: str, wanted: str) -> None:
        self.until(lambda: wanted in self.text(selector), but=f"{selector} never said {wanted!r}")

    def connected(self) -> Page:
        self.until_text("#connection", "live")
        return self

    def type(self, selector: str, text: str) -> None:
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def submit(self, selector: str, text: str) -> None:
        self.type(selector, text)
        self.find(selector).send_keys(Keys.ENTER)

    def press(self, selector: str) -> None:
        button = self.find(selector)
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()

    def rows(self) -> list[str]:
        # In one go: rows come and go while somebody looks at them.
        return self.browser.execute_script(
            "return [...document.querySelectorAll('#requests tbody tr')].map(row => row.innerText)"
        )


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=7, users=120, messages_per_user=(1, 40))) as server:
        yield server


@pytest.fixture
def page(browser: Chrome, server: MockServer) -> Iterator[Page]:
    yield Page(browser, server).connected()
    assert [line for line in errors(browser) if "status of 4" not in line] == []


def test_the_page_shows_the_server_and_hides_the_token(page, server):
    assert page.text("#url") == server.url
    assert page.text("#vendor") == server.vendor
    page.until_text("#world-facts", server.world.fingerprint())
    assert server.admin_token not in page.browser.current_url
    assert server.admin_token not in page.browser.page_source
    page.browser.refresh()
    page.connected()
    assert sum(server.counts().values()) == 0


def test_requests_show_as_they_come(page, server):
    page.until_text("#journal-note", "No request yet")
    with server.client() as client:
        client.users.page(offset=5, limit=7)
        page.until_text("#requests tbody", "GET /external/users?offset=5&limit=7")
        page.until_text("#counts", "users 1")
        client.users.get(42)
    page.until(lambda: len(page.rows()) == 2)
    latest, first = page.rows()
    assert "/external/users/42" in latest
    assert "offset=5" in first
    page.press("#requests tbody tr:last-child button")
    details = page.text("#details")
    for said in ("Request 1", "offset", "5", "limit", "7", "status", "200"):
        assert said in details


def test_odd_requests_are_marked_and_found(page, server):
    with server.client() as client:
        client.users.page()
        with pytest.raises(NotFoundError):
            client.users.get(1)
        server.fault("users: status(404)")
        with pytest.raises(NotFoundError):
            client.users.page()
    page.until(lambda: len(page.rows()) == 3)
    Select(page.find("#filter-answer")).select_by_value("faulted")
    (faulted,) = page.rows()
    assert "fault: users" in faulted
    Select(page.find("#filter-answer")).select_by_value("4")
    assert len(page.rows()) == 2
    Select(page.find("#filter-route")).select_by_visible_text("user")
    (missing,) = page.rows()
    assert "/external/users/1" in missing
    page.type("#filter-text", "nothing like it")
    assert page.rows() == []


def test_a_pause_holds_the_journal_still(page, server):
    page.press("#pause")
    page.until_text("#connection", "paused")
    with server.client() as client:
        client.users.page()
        page.until_text("#counts", "users 1")
        assert page.rows() == []
        page.press("#pause")
        page.until(lambda: len(page.rows()) == 1)
        page.press("#forget")
        page.until(lambda: page.rows() == [])
    assert server.calls().count == 0


def test_a_fault_set_in_the_page_makes_clients_fail(page, server):
    with server.client(max_retries=0) as client:
        page.submit("#fault", "users offset=0: status(404)")
        page.until_text("#faults", "status(404)")
        with pytest.raises(NotFoundError):
            client.users.page()
        page.until_text("#faults", "fired: 1")
        page.press("#faults button")
        page.until_text("#faults", "")
        assert client.users.page().total == 120
        page.press("#quick-faults button")
        page.until_text("#faults", "status(429")
        with pytest.raises(RateLimitError):
            client.users.page()
        page.press("#clear-faults")
        page.until(lambda: not page.all("#faults li"))
        assert client.users.page().total == 120


def test_another_dialect_changes_what_is_served(page, server):
    with server.client() as client:
        ids = [user.id for user in client.users.page(limit=5)]
        Select(page.find("#switch-order")).select_by_value("newest")
        page.until_text("#dialect-text", "documented order=newest")
        newest = [user.id for user in client.users.page(limit=5)]
        assert newest == server.world.user_ids()[:-6:-1]
        Select(page.find("#switch-bundle")).select_by_value("hostile")
        page.until_text("#dialect-text", "hostile")
        assert str(server.dialect) == "hostile"
        assert Select(page.find("#switch-order")).first_selected_option.text == "ties"
        Select(page.find("#switch-bundle")).select_by_value("documented")
        page.until_text("#dialect-text", "conforms")
        assert [user.id for user in client.users.page(limit=5)] == ids


def test_rate_and_clock_are_set(page, server):
    page.submit("#rate", "fast")
    page.until_text("#rate-problem", "10/s")
    page.submit("#rate", "0.01/s burst=1")
    page.until(lambda: page.find("#no-rate").is_enabled())
    with server.client(max_retries=0) as client:
        client.users.page()
        with pytest.raises(RateLimitError):
            client.users.page()
        page.press("#no-rate")
        page.until(lambda: not page.find("#no-rate").is_enabled())
        client.users.page()
    page.press("#virtual")
    page.until_text("#now", "2026-01-01 00:00:00 UTC, virtual")
    page.submit("#seconds", "90")
    page.until_text("#now", "00:01:30")
    assert server.clock.is_virtual
    page.press("#virtual")
    page.until_text("#now", "machine")


def test_the_world_is_looked_at_and_changed(page, server):
    world = server.world
    page.submit("#add-users", "3")
    page.until_text("#world-facts", "123 users")
    page.submit("#user", "42")
    page.until_text("#shown-row", world.user(42)["email"])
    messages = world.message_ids(42)
    page.until_text("#messages-title", str(len(messages)))
    page.press("#shown-messages button")
    page.until_text("#messages-title", str(len(messages) - 1))
    assert world.message_ids(42) == messages[1:]
    page.press("#add-messages")
    page.until(lambda: len(world.message_ids(42)) == len(messages))
    page.press("#remove-user")
    page.until_text("#world-facts", "122 users")
    assert 42 not in world.user_ids()
    page.submit("#user", "42")
    page.until_text("#world-problem", "no user 42")


def test_lanes_are_opened_picked_and_closed(page, server):
    page.type("#lane-users", "5")
    page.submit("#lane-name", "second")
    page.until_text("#lanes", "second")
    page.until(lambda: Select(page.find("#lane")).first_selected_option.text == "second")
    page.until_text("#world-facts", "5 users")
    page.submit("#fault", "any: status(404)")
    page.until_text("#faults", "404")
    with server.client() as client:
        assert client.users.page().total == 120
    assert page.rows() == []
    Select(page.find("#lane")).select_by_value("main")
    page.until(lambda: len(page.rows()) == 1)
    page.until_text("#world-facts", "120 users")
    page.press("#lanes button")
    page.until(lambda: len(Select(page.find("#lane")).options) == 1)


def test_a_wrong_token_is_refused_in_words(browser, server):
    page = Page(browser, server).connected()
    browser.execute_script("sessionStorage.clear()")
    browser.get("about:blank")
    browser.get(f"{server.url}/__mock/#{'0' * 32}")
    page.until_text("#sign-in-problem", "ADMIN_TOKEN")
    assert not page.find("#tools").is_displayed()
    page.submit("#token", server.secret)
    page.until_text("#sign-in-problem", "ADMIN_TOKEN")
    page.submit("#token", server.admin_token)
    page.connected()
    assert page.find("#tools").is_displayed()


HOSTILE = "<script>window.hit = 1</script><img src=x onerror='window.hit = 1'>\u202e&lt;"


def test_what_the_world_says_is_text_and_never_markup(page, server):
    world = server.world
    (message,) = world.add_messages(42, 1)
    for earlier in world.message_ids(42)[:-1]:
        world.remove_message(42, earlier)
    world.edit_user(42, name=HOSTILE)
    world.edit_message(42, message, body=HOSTILE, sender_type=HOSTILE)
    page.submit("#user", "42")
    page.until_text("#shown-row", "<script>window.hit = 1</script>")
    page.until_text("#shown-messages", "<img src=x onerror='window.hit = 1'>")
    page.browser.execute_script(
        "fetch('/external/<img src=x onerror=window.hit=1>?<script>window.hit=1</script>')"
    )
    page.until_text("#requests tbody", "unexpected: unknown_path")
    page.submit("#fault", 'users: garbage("<img src=x onerror=window.hit=1>")')
    page.until_text("#faults", "<img src=x onerror=window.hit=1>")
    assert page.all("main img, main script, #shown-user img") == []
    assert page.browser.execute_script("return window.hit") is None


def test_a_server_that_ended_is_said(browser):
    with MockServer(World(users=3)) as server:
        page = Page(browser, server).connected()
    page.until_text("#connection", "does not answer")


def test_axe_finds_no_barrier_and_nothing_is_wider_than_a_narrow_page(page, server):
    for width in (1280, 400):
        show(page.browser, width, "light")
        with server.client() as client:
            list(client.users.list())
        page.until(lambda: len(page.rows()) >= 2)
        page.submit("#user", "42")
        page.until_text("#shown-row", "email")
        assert page.browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert barriers(page.browser) == []
