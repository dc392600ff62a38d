"""The page of `backread browse` in a browser: reading, searching, keys, and hostile text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.keys import Keys

from backread._browse import BrowseServer
from conftest import Page, barriers, errors, runs_nothing, show, unreadable
from helpers.hostile_text import ADDRESSES, HOSTILE, message
from helpers.mirrors import BatchSource, batch

LONG = 1_500
"""The messages of user 1, one an hour."""

BEHIND = {"light": [255, 255, 255], "dark": [29, 33, 40]}
REPORT_BEHIND = {"light": [246, 247, 249], "dark": [20, 23, 27]}

USERS: list[dict[str, Any]] = [
    {"id": 1, "name": "Ada Lovelace", "email": "ada@example.com"},
    {"id": 2, "name": "Bo", "email": "bo@example.com"},
    {"id": 3, "name": "Silent"},
    {"id": 4, "name": "עדה", "email": "rtl@example.com"},
    *({"id": 100 + at, "name": text, "email": text} for at, text in enumerate(HOSTILE)),
]
MESSAGES = [
    *(message(1, number, f"message number {number}.") for number in range(LONG)),
    message(
        2, 5_000, "Where is the zebra?", read_by_operator=False,
        file_url="https://files.example.com/dot.gif",
    ),
    message(2, 5_001, "Here", sender_type="operator", sender_id=7, sender_forename="Grace"),
    message(4, 4_000, "שלום, לא קיבלתי את ההזמנה."),
    *(
        message(
            100 + at, 2_000 + at, f"hostile {text}", sender_name=text,
            file_url=ADDRESSES[at % len(ADDRESSES)],
        )
        for at, text in enumerate(HOSTILE)
    ),
]  # fmt: skip


def publish(folder: Path, messages: list[dict[str, Any]]) -> None:
    lists: Any = {each["id"]: "snapshot" for each in USERS}
    BatchSource(batch(USERS, messages, swept="linked", lists=lists)).sync_into(folder, "full")


class BrowsePage(Page):
    """The page of a server."""

    def __init__(self, browser: Chrome, server: BrowseServer) -> None:
        super().__init__(browser)
        self.server = server

    def open(self, fragment: str = "") -> BrowsePage:
        self.browser.get("about:blank")
        self.browser.get(self.server.url + fragment)
        self.until(lambda: self.all("#items .item") and "counting" not in self.text("#list-status"))
        return self

    def keys(self, *keys: str) -> None:
        for key in keys:
            ActionChains(self.browser).send_keys(key).perform()

    def focused(self) -> str:
        return self.run("return document.activeElement.innerText || document.activeElement.id")

    def search(self, words: str) -> None:
        self.run("document.getElementById('words').focus()")
        self.find("#words").clear()
        self.find("#words").send_keys(words)

    def numbers(self) -> list[int]:
        """The messages that are in the page."""
        return [int(each) for each in re.findall(r"number (\d+)\.", self.text("#messages"))]

    def top_of(self, number: int) -> float:
        return self.run(
            "return document.getElementById(arguments[0])?.getBoundingClientRect().top",
            f"message-{number}",
        )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowseServer]:
    folder = tmp_path_factory.mktemp("browse") / "chats"
    publish(folder, MESSAGES)
    with BrowseServer(folder, on_error=pytest.fail) as server:
        yield server


@pytest.fixture
def page(browser: Chrome, server: BrowseServer) -> Iterator[BrowsePage]:
    yield BrowsePage(browser, server)
    assert [line for line in errors(browser) if "status of 4" not in line] == []


def test_a_conversation_is_read(page, server):
    page.open()
    assert "token" not in page.browser.current_url
    page.until_text("#age", "Synced")
    assert "every list proved" in page.text("#proof")
    assert page.text("#list-status") == f"{len(USERS)} people"
    page.find("#items .item[data-user='2']").click()
    page.until_text("#messages", "Where is the zebra?")
    assert page.text("#conversation-name") == "Bo"
    assert page.browser.current_url.endswith("#/user/2")
    page.until(lambda: page.browser.title == "Bo · chats · backread")
    assert page.find("#items .item[data-user='2']").get_attribute("aria-current") == "true"
    page.find("#heading summary").click()
    assert "bo@example.com" in page.text("#heading")
    page.find("#freshness summary").click()
    page.until_text("#details", "the list of users is linked")
    page.find("#message-5000 .br-when a").click()
    page.until(lambda: page.all("#message-5000.linked"))
    assert page.browser.current_url.endswith("#/user/2/message/5000")
    page.browser.back()
    page.browser.back()
    page.until_text("#nothing", "Choose someone")
    page.open("#/user/2/message/77")
    page.until_text("#messages", "has no message 77")


def test_typing_finds_people_and_enter_finds_messages_or_opens_the_person(page):
    page.open()
    page.search("bo@")
    page.until(lambda: page.texts(".item-name") == ["Bo"])
    page.search("zebra")
    page.until_text("#list-status", "No one matches")
    page.keys(Keys.ENTER)
    page.until_text("#list-status", "1 message found")
    assert page.texts(".item mark") == ["zebra"]
    page.find("#items .item").click()
    page.until(lambda: page.all("#message-5000.linked"))
    assert page.texts("#messages mark") == ["zebra"]
    assert page.focused().startswith("Ada")
    page.search("no message has these")
    page.keys(Keys.ENTER)
    page.until_text("#list-status", "No message has all of these words: no message has these")
    assert page.texts("#list-saves a") == ["CSV", "XLSX"]
    page.find("#words").send_keys(" either")
    page.until_text("#list-status", "Press Enter to search")
    page.open()
    page.search("lovelace")
    page.keys(Keys.ENTER)
    page.until_text("#conversation-name", "Ada Lovelace")
    page.search("example.com")
    page.keys(Keys.ENTER)
    page.until_text("#list-status", "people match. Choose one, or press Enter again")
    page.keys(Keys.ENTER)
    page.until(lambda: "tab=messages" in page.browser.current_url)


def test_filters_are_in_the_address_and_lead_to_the_report(page):
    page.open()
    page.find("#filters-button").click()
    page.until(lambda: "Grace" in page.text("select[name=operator]"))
    page.find("select[name=operator]").send_keys("Grace")
    page.until(lambda: page.texts(".item-name") == ["Bo"])
    assert "operator=7" in page.browser.current_url
    assert page.text("#filters-button") == "Filter and sort (1)"
    page.browser.refresh()
    page.until(lambda: page.texts(".item-name") == ["Bo"])
    page.find("#filters-button").click()
    page.find("#filters button[type=reset]").click()
    page.until_text("#list-status", f"{len(USERS)} people")
    page.find("[name=timezone]").send_keys("Asia/Tokyo", Keys.TAB)
    page.until(lambda: "timezone=Asia" in page.browser.current_url)
    page.find("#report").click()
    page.until_text("h1", "Conversations of chats, times in Asia/Tokyo")
    page.find(".tiles div:nth-child(6) a").click()
    page.until_text("#list-status", "1 person in the report's list")


def test_keys_are_enough(page):
    page.open()
    page.keys("?")
    page.until(lambda: page.find("#help").is_displayed())
    page.keys(Keys.ESCAPE)
    page.until(lambda: not page.find("#help").is_displayed())
    names = page.texts(".item-name")
    page.keys("j")
    page.until(lambda: page.focused().startswith(names[0]))
    page.keys("j", "j", "k", Keys.ENTER)
    page.until(lambda: page.text("#conversation-name") == names[1])
    page.keys("n", "n", "p")
    page.until(lambda: page.text("#conversation-name") == names[2])
    page.keys("/")
    assert page.focused() == "words"
    page.keys("ada love")
    page.until(lambda: page.texts(".item-name") == ["Ada Lovelace"])
    page.keys(Keys.ARROW_DOWN, Keys.ENTER)
    page.until_text("#conversation-name", "Ada Lovelace")
    page.until(lambda: LONG - 1 in page.numbers())
    page.keys("g")
    page.until(lambda: 0 in page.numbers())
    page.keys("G")
    page.until(lambda: LONG - 1 in page.numbers())
    page.keys(Keys.ESCAPE)
    page.until_text("#list-status", f"{len(USERS)} people")
    page.keys(Keys.ESCAPE)
    page.until_text("#nothing", "Choose someone")


def test_a_long_conversation_is_loaded_page_by_page_in_both_directions(page):
    page.open("#/user/1/message/700")
    page.until(lambda: page.all("#message-700.linked"))
    assert 0 < page.top_of(700) < 800
    seen = set(page.numbers())
    assert len(seen) <= 400
    for step, end, last in ((-1, 0, "of 1,500"), (1, LONG - 1, "1,500 of 1,500")):
        for _ in range(200):
            if end in seen:
                break
            page.run("document.getElementById('messages').scrollBy(0, arguments[0])", step * 2_000)
            numbers = page.numbers()
            assert numbers == list(range(numbers[0], numbers[-1] + 1))
            # What is far away leaves the page again.
            assert len(numbers) <= 1_100
            seen |= set(numbers)
        page.run("document.getElementById('messages').scrollBy(0, arguments[0])", step * 10**6)
        page.until_text("#place", last)
    assert seen == set(range(LONG))
    days = page.texts(".br-day:not([hidden])")
    assert len(days) == len(set(days))


def test_hostile_text_runs_nothing_and_asks_nobody(page):
    page.open()
    for at, text in enumerate(HOSTILE):
        page.run("location.hash = arguments[0]", f"#/user/{100 + at}")
        page.until(lambda at=at: page.all(f"#message-{2_000 + at}"))
        page.run("location.hash = arguments[0]", f"#/?words={'hostile'}&tab=messages")
        page.until_text("#list-status", "found")
        if at < 6:
            page.search(text.splitlines()[0])
            page.keys(Keys.ENTER)
    page.open(f"#/user/{100 + len(HOSTILE) - 1}")
    page.until(lambda: page.all("#heading summary"))
    page.find("#heading summary").click()
    runs_nothing(page.browser, "svg", "style")
    schemes = page.run("return [...document.links].map(each => each.protocol)")
    assert set(schemes) <= {"http:", "https:"}


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (400, "dark")])
def test_axe_finds_no_barrier(page, width, theme):
    show(page.browser, width, theme)
    for fragment in ("", "#/user/2/message/5000", "#/?words=number&tab=messages", "help"):
        page.open(fragment if fragment != "help" else "")
        if fragment == "help":
            page.find("#help-button").click()
        elif "user" in fragment:
            page.until(lambda: page.all(".linked"))
        else:
            page.find("#filters-button").click()
            page.find("#freshness summary").click()
        assert barriers(page.browser, contrast=False) == []
        assert unreadable(page.browser, BEHIND[theme]) == []
    page.run("location.href = document.getElementById('report').href")
    page.until(lambda: page.all(".tiles"))
    assert barriers(page.browser, contrast=False) == []
    assert unreadable(page.browser, REPORT_BEHIND[theme]) == []
    root = "const root = document.documentElement; return root.scrollWidth - root.clientWidth"
    assert page.run(root) == 0


def test_a_narrow_page_has_one_column_and_nothing_is_wider(page):
    show(page.browser, 320, "light")
    for fragment in ("#/user/110", "#/user/120", "#/?words=hostile&tab=messages", ""):
        page.open(fragment)
        if "user" in fragment:
            page.until(lambda: page.all(".br-message"))
        else:
            page.run("document.getElementById('filters-button').click()")
        for place in ("html", "header", "#list", "#items-scroll", "#messages", "#conversation-top"):
            sticking = page.run(
                "const each = document.querySelector(arguments[0]);"
                "return each.scrollWidth - each.clientWidth",
                place,
            )
            assert sticking <= 0, (fragment, place)
    assert page.find("#list").is_displayed()
    assert not page.find("#conversation").is_displayed()
    page.find("#items .item[data-user='2']").click()
    page.until_text("#messages", "Where is the zebra?")
    assert not page.find("#list").is_displayed()
    assert page.find("#age").is_displayed()
    page.find("#back").click()
    page.until(lambda: page.find("#list").is_displayed())


def test_a_new_snapshot_comes_by_itself_and_moves_nothing(browser, tmp_path):
    publish(tmp_path / "chats", MESSAGES)
    with BrowseServer(tmp_path / "chats") as server:
        page = BrowsePage(browser, server)
        page.open("#/user/1/message/700")
        page.until(lambda: page.all("#message-700.linked"))
        page.run("document.getElementById('messages').scrollBy(0, 37)")
        before = page.top_of(700)
        assert page.text("#place").endswith("of 1,500")
        publish(
            tmp_path / "chats",
            [*MESSAGES, message(1, LONG, "the newest"), message(3, 9_000, "no longer silent")],
        )
        # As if the page had been in the background.
        page.run("document.dispatchEvent(new Event('visibilitychange'))")
        page.until(lambda: page.text("#place").endswith("of 1,501"))
        page.until(lambda: page.texts(".item-name")[0] == "Silent")
        page.until(lambda: abs(page.top_of(700) - before) < 3)
    # The end of the command is explained, too.
    page.run("document.dispatchEvent(new Event('visibilitychange'))")
    page.until_text("#trouble", "backread browse has ended")
