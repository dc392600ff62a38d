"""The page of ``backread report``: complete, harmless, and readable without its style sheet."""

import itertools
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from backread import Mirror
from backread._report.page import report_html
from backread.cli.report_text import figures_text
from backread.testing import MockServer, World
from helpers.hostile_mirror import hostile_mirror
from helpers.hostile_text import HOSTILE
from helpers.mirrors import BatchSource, batch, sync

START = datetime(2024, 3, 4, 9, tzinfo=UTC)
VOID = {"meta", "link"}
TAGS = {
    "html", "head", "meta", "link", "title", "style", "body", "header", "main", "footer", "section",
    "h1", "h2", "p", "strong", "bdi", "div", "dl", "dt", "dd", "ul", "li", "details", "summary",
    "table", "thead", "tbody", "tr", "th", "td", "svg", "g", "path", "rect", "text", "desc",
}  # fmt: skip


class Page(HTMLParser):
    """The elements of a page; fails where they are not nested, or are not the report's own."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = self.style = ""
        self.feed(html)
        self.close()
        assert self.open == []
        assert {tag for tag, _ in self.elements} <= TAGS

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.style += data
        else:
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def written(number: int, kind: str, **fields: Any) -> dict[str, Any]:
    """A message of user 1."""
    time = START + timedelta(minutes=number)
    return {
        "user_id": 1, "id": number, "created_at": time, "sender_type": kind, "sender_id": number,
    } | fields  # fmt: skip


def page_of(
    folder: Path, messages: list[dict[str, Any]], user: dict[str, Any] | None = None
) -> Page:
    users = [user or {"id": 1}]
    BatchSource(batch(users, messages, swept="snapshot", lists={1: "snapshot"})).sync_into(folder)
    return Page(report_html(Mirror(folder).figures()))


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    mirror = Mirror(tmp_path_factory.mktemp("report") / "chats")
    with MockServer(World(seed=3, users=120, messages_per_user=(0, 40))) as server:
        sync(mirror, server)
    return mirror


@pytest.fixture(scope="module")
def html(chats: Mirror) -> str:
    figures = chats.figures(timezone="Europe/Berlin", opening_hours="mon-fri 9-17")
    return report_html(figures, "chats")


def test_page_loads_and_runs_nothing(html):
    found = Page(html)
    named = [attributes for _, attributes in found.elements]
    assert not any(name.startswith("on") or name == "style" for each in named for name in each)
    addresses = [each.get(name) for each in named for name in ("href", "src", "xlink:href")]
    assert [each for each in addresses if each] == ["data:,"]
    assert not re.search(r"url\(|@import|@font-face|//", found.style)
    [policy] = [each["content"] for _, each in found.elements if "http-equiv" in each]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert len(html) < 300_000


def test_each_chart_has_a_name_a_description_and_its_figures_as_a_table(html):
    found = Page(html)
    identifiers = [each["id"] for _, each in found.elements if "id" in each]
    assert len(identifiers) == len(set(identifiers))
    charts = [each for tag, each in found.elements if tag == "svg" and "role" in each]
    # A chart has a wide and a narrow form.
    assert len(charts) == 2 * html.count("The figures as a table") == 8
    for chart in charts:
        assert chart["role"] == "img"
        names = (chart["aria-labelledby"] or "").split()
        assert len(names) == 2
        assert set(names) <= set(identifiers)
    for tag, attributes in found.elements:
        assert tag != "th" or attributes.get("scope") in ("row", "col")
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))

    # They need no style sheet, as on Jenkins, whose policy forbids the page's own.
    colours = [each for _, each in found.elements if "colour-" in (each.get("class") or "")]
    assert len(colours) > 40
    assert {each["fill"] for each in colours} == {"#0072b2", "#d55e00", "#009e73"}
    charts = re.findall(r'<div class="(?:wide|narrow)"( hidden)?><svg class="chart" width=', html)
    assert charts == ["", " hidden"] * 4


def test_page_says_what_it_is_about_and_how_complete_it_is(html, chats):
    text = " ".join(Page(html).text.split())
    figures = chats.figures(timezone="Europe/Berlin", opening_hours="mon-fri 9-17")
    outside = figures["responses"]["answered_outside_hours"]
    for words in (
        "Conversations of chats, times in Europe/Berlin",
        "within the opening hours mon-fri 9:00-17:00",
        "Data as of ",
        "Complete: the list of users and all 120 message lists are proved.",
        f"{figures['totals']['messages']:,}",
        f"answered outside opening hours{outside}",
        f"{outside} more were answered before it",
    ):
        assert words in text
    assert "Conversations, times in UTC" in report_html(chats.figures())


def test_each_bar_says_its_value(html, chats):
    figures = chats.figures(timezone="Europe/Berlin")
    week = max(figures["volume"], key=lambda each: each["user_messages"])
    assert f", Users: {week['user_messages']:,}</title>" in html
    rows = re.findall(
        r'<bdi>([^<]*)</bdi><svg[^>]*><rect width="([\d.]+)%".*?</th><td[^>]*>([\d,]+)<', html
    )
    widths = {(name, count): float(width) for name, width, count in rows}
    most, *_, least = figures["operators"][:12]
    assert widths[most["name"], f"{most['messages']:,}"] == 100
    share = least["messages"] / most["messages"]
    assert widths[least["name"], f"{least['messages']:,}"] == pytest.approx(100 * share, abs=0.1)


def test_hostile_text_stays_text(tmp_path):
    figures = hostile_mirror(tmp_path / "chats").figures()
    html = report_html(figures, "<script>\x1b]0;title\x07</script>\u202e" + "n" * 500)
    found = Page(html)
    assert not {*html} & {*"\x00\x07\x08\x1b\x7f\x9b\u202e\u2066\u2028"}
    assert "<script>window.hit = 1</script>" in found.text
    assert "w" * 200 not in html
    assert "Perhaps incomplete" in found.text
    assert f"{len(HOSTILE)} of {len(HOSTILE)} message lists not proved" in found.text


def test_operators_without_a_name_of_their_own_have_their_ids(tmp_path):
    names = ("Ada", "Ada", "Ben", "\u200b\u3164")
    messages = [written(each, "operator", sender_forename=name) for each, name in enumerate(names)]
    text = page_of(tmp_path / "chats", messages, {"id": 1, "name": "\u2800"}).text
    for shown in ("Ada (0)", "Ada (1)", "operator 3", "user 1"):
        assert shown in text
    assert "Ben (" not in text


def test_an_address_in_a_name_is_hidden_in_the_page_and_the_terminal(tmp_path):
    messages = [written(each, kind, sender_forename="bob%40mail.example")
                for each, kind in enumerate(("user", "operator"))]  # fmt: skip
    # The page drops the control character, which would complete the address.
    messages[1]["sender_surname"] = "ada@\u202email.example"
    text = page_of(tmp_path / "chats", messages, {"id": 1, "name": "Zoë zoe@mail.example"}).text
    assert "Zoë [e-mail address" in text
    for shown in (text, figures_text(Mirror(tmp_path / "chats").figures(), "chats")):
        assert "[e-mail address" in shown
        assert re.search("mail.ex|zoe|bob|ada@", shown) is None


def test_few_messages_are_shown_as_well_and_none_says_why(tmp_path, chats):
    text = page_of(tmp_path / "one", [written(1, "user")]).text
    assert "4 Mar 2024, Users: 1" in text
    assert "No operator has answered a user" in text
    assert "There were none in this period" in text
    text = page_of(tmp_path / "timeless", [written(1, "user", created_at=None)]).text
    assert "1 messages without a time are not here." in text
    BatchSource(batch(swept="snapshot")).sync_into(tmp_path / "empty")
    assert "no users and no messages yet" in report_html(Mirror(tmp_path / "empty").figures())
    assert "1 user and no message" in page_of(tmp_path / "silent", []).text
    later = Page(report_html(chats.figures(since="2031-01-01"))).text
    assert "no message from 2031-01-01 00:00" in later


def test_times_are_in_utc_where_python_has_no_time_zones(chats, monkeypatch):
    """As on Windows without tzdata; DuckDB brings its own."""

    def missing(name: str) -> None:
        raise ZoneInfoNotFoundError(name)

    figures = chats.figures(timezone="Europe/Berlin")
    first = figures["longest"][0]["first_message_at"][:16].replace("T", " ")
    assert f"{first} UTC" not in report_html(figures)
    monkeypatch.setattr("backread._report.figures.ZoneInfo", missing)
    assert f"{first} UTC" in report_html(figures)
