"""``backread report``: the figures in a terminal, and one HTML file with charts."""

import itertools
import json
import os
import re
import stat
import sys
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pygal")

from backread import Mirror
from backread._report import is_report, report_html
from backread.cli.report import _progress
from backread.mirror import FiguresProgress
from backread.testing import MockServer, World
from helpers.command_line import posix_only
from helpers.hostile_mirror import hostile_mirror
from helpers.hostile_text import HOSTILE
from helpers.mirrors import BatchSource, batch, sync

START = datetime(2024, 3, 4, 9, tzinfo=UTC)
VOID = {"meta", "link"}
TAGS = {
    "html", "head", "meta", "link", "title", "style", "body", "header", "main", "footer", "section",
    "figure", "figcaption", "h1", "h2", "h3", "p", "strong", "bdi", "div", "dl", "dt", "dd", "ul",
    "li", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "svg", "g", "path",
    "rect", "text", "desc",
}  # fmt: skip


class Page(HTMLParser):
    """The elements of a page; fails where they are not nested."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.style = ""
        self.comments = 0
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.style += data
        else:
            self.text += data

    def handle_comment(self, data: str) -> None:
        self.comments += 1


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mirror = Mirror(tmp_path_factory.mktemp("report") / "chats")
    with MockServer(World(seed=3, users=120, messages_per_user=(0, 40))) as server:
        sync(mirror, server)
    return mirror.folder


@pytest.fixture(scope="module")
def page(chats: Path) -> str:
    figures = Mirror(chats).figures(timezone="Europe/Berlin", opening_hours="mon-fri 9-17")
    return report_html(figures, "chats")


# --- the page -------------------------------------------------------------------------------------


def test_page_is_well_formed_and_loads_nothing(page):
    found = Page(page)
    assert found.tags <= TAGS
    assert found.comments == 0
    named = [attributes for _, attributes in found.elements]
    assert not any(name.startswith("on") or name == "style" for each in named for name in each)
    addresses = [each.get(name) for each in named for name in ("href", "src", "xlink:href")]
    assert [each for each in addresses if each] == ["data:,"]
    assert not re.search(r"url\(|@import|@font-face|//", found.style)
    [policy] = [each["content"] for _, each in found.elements if "http-equiv" in each]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    identifiers = [each["id"] for each in named if "id" in each]
    assert len(identifiers) == len(set(identifiers))
    assert len(page) < 300_000


def test_each_chart_has_a_name_a_description_and_its_figures_as_a_table(page):
    found = Page(page)
    charts = [each for tag, each in found.elements if tag == "svg" and "role" in each]
    texts = {each["id"] for _, each in found.elements if "id" in each}
    assert len(charts) == 20
    for chart in charts:
        assert chart["role"] == "img"
        names = (chart["aria-labelledby"] or "").split()
        assert len(names) == 2
        assert set(names) <= texts
    # A chart has a wide and a narrow form.
    assert (
        page.count("<figcaption>") == page.count("The figures as a table") == len(charts) // 2 - 1
    )
    for tag, attributes in found.elements:
        assert tag != "th" or attributes.get("scope") in ("row", "col")
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_charts_need_no_style_sheet_to_be_coloured_and_drawn_once(page):
    """As on Jenkins, whose policy forbids the page's own."""
    found = Page(page)
    series = [each for tag, each in found.elements if "serie-" in (each.get("class") or "")]
    assert len(series) > 20
    assert {each["fill"] for each in series} <= {"#0072b2", "#d55e00", "#009e73", "#767d86"}
    axes = [each for _, each in found.elements if (each.get("class") or "").startswith("axis ")]
    assert {each["text-anchor"] for each in axes if "d" not in each} == {"middle", "end"}
    charts = re.findall(r'<div class="(?:wide|narrow)"( hidden)?><svg class="chart" width=', page)
    assert charts == ["", " hidden"] * (len(charts) // 2)
    assert len(charts) == 20


def test_a_name_that_cannot_be_seen_is_shown_as_its_id(backread, tmp_path):
    messages = [
        {"user_id": 7, "id": each, "created_at": START + timedelta(minutes=each),
         "sender_type": kind, "sender_id": 40 + each, "sender_forename": "\u200b\u3164"}
        for each, kind in enumerate(("user", "operator"))
    ]  # fmt: skip
    chats = tmp_path / "chats"
    BatchSource(batch([{"id": 7, "name": "\u2800"}], messages, swept="linked")).sync_into(chats)
    text = Page(report_html(Mirror(chats).figures())).text
    assert text.count("operator 41") > 2
    assert "user 7" in text
    assert "\noperator 41 " in backread("report", chats).out


def test_names_of_wide_characters_leave_room_for_the_bars(tmp_path):
    names = ["漢字" * 20, "W" * 60, "Ada"]
    messages = [
        {"user_id": 1, "id": each, "created_at": START + timedelta(minutes=each),
         "sender_type": "operator", "sender_id": each, "sender_forename": name}
        for each, name in enumerate(names)
    ]  # fmt: skip
    BatchSource(batch([{"id": 1}], messages, swept="linked")).sync_into(tmp_path / "chats")
    html = report_html(Mirror(tmp_path / "chats").figures())
    drawn = re.findall(
        r'viewBox="0 0 (\d+) \d+"[^>]*aria-labelledby="workload-.*?translate\((\d+)', html
    )
    assert [int(width) for width, _ in drawn] == [520, 340]
    assert all(int(left) < 0.45 * int(width) for width, left in drawn)


def test_page_says_what_it_is_about(page, chats):
    text = " ".join(Page(page).text.split())
    assert "Conversations of chats, times in Europe/Berlin" in text
    assert "within the opening hours mon-fri 9:00-17:00" in text
    assert "Data as of " in text
    assert "Complete: the list of users and all 120 message lists are proved." in text
    figures = Mirror(chats).figures(timezone="Europe/Berlin")
    for count in (figures["totals"]["messages"], figures["totals"]["user_messages"]):
        assert f"{count:,}" in text
    assert figures["operators"][0]["name"] in text
    hours = Mirror(chats).figures(timezone="Europe/Berlin", opening_hours="mon-fri 9-17")[
        "responses"
    ]
    assert f"answered outside opening hours{hours['answered_outside_hours']}" in text
    assert f"{hours['answered_outside_hours']} more were answered before it" in text
    assert "Conversations, times in UTC" in Page(report_html(Mirror(chats).figures())).text


def test_each_bar_says_its_value(page, chats):
    figures = Mirror(chats).figures(timezone="Europe/Berlin")
    week = max(figures["volume"], key=lambda each: each["user_messages"])
    assert f", Users: {week['user_messages']:,}</title>" in page
    titles = re.findall(r"<title>([^<]*), Messages: ([\d,]+)</title>", page)
    operators = {each["name"]: each["messages"] for each in figures["operators"]}
    drawn = {name: int(count.replace(",", "")) for name, count in titles}
    assert (
        drawn.items()
        >= {name: count for name, count in operators.items() if name and len(name) < 17}.items()
    )


def test_hostile_text_stays_text(tmp_path):
    figures = hostile_mirror(tmp_path / "chats").figures()
    html = report_html(figures, "<script>\x1b]0;title\x07</script>\u202e" + "n" * 500)
    found = Page(html)
    assert found.tags <= TAGS
    assert found.comments == 0
    assert not {*html} & {*"\x00\x07\x08\x1b\x7f\x9b\u202e\u2066\u2028"}
    assert "<script>window.hit = 1</script>" in found.text
    assert "w" * 200 not in html
    assert "Perhaps incomplete" in found.text
    assert f"{len(HOSTILE)} of {len(HOSTILE)} message lists not proved" in found.text


def test_names_that_xml_cannot_have_are_drawn(tmp_path):
    messages = [
        {"user_id": 1, "id": number, "created_at": START, "sender_type": kind,
         "sender_id": 7 + number, "sender_surname": f"x{text}"}
        for number, text in enumerate(("", "\ufffe", "\uffff", "\U0001ffff", "\x00"))
        for kind in ["operator" if number else "user"]
    ]  # fmt: skip
    source = BatchSource(batch([{"id": 1}], messages, swept="snapshot", lists={1: "snapshot"}))
    source.sync_into(tmp_path / "chats")
    html = report_html(Mirror(tmp_path / "chats").figures())
    assert "x\ufffd</text>" in html
    Page(html)


def test_messages_without_times_leave_out_the_chart_of_times(tmp_path):
    messages = [{"user_id": 1, "id": 5, "created_at": None, "sender_type": "user", "sender_id": 1}]
    source = BatchSource(batch([{"id": 1}], messages, swept="snapshot", lists={1: "snapshot"}))
    source.sync_into(tmp_path / "chats")
    text = Page(report_html(Mirror(tmp_path / "chats").figures())).text
    assert "1 messages without a time are not here." in text


def test_page_without_data_says_so_in_words(tmp_path):
    mirror = Mirror(tmp_path / "chats")
    BatchSource(batch(swept="snapshot")).sync_into(mirror.folder)
    text = Page(report_html(mirror.figures())).text
    assert "No data" in text
    assert "no users and no messages yet" in text
    BatchSource(batch([{"id": 1}], swept="snapshot", lists={1: "snapshot"})).sync_into(
        mirror.folder
    )
    assert "1 user and no message" in Page(report_html(mirror.figures())).text


def test_period_without_messages_says_so(chats):
    figures = Mirror(chats).figures(since="2031-01-01")
    assert "no message from 2031-01-01 00:00" in Page(report_html(figures)).text


def test_charts_of_one_message_are_drawn(tmp_path):
    message = {"user_id": 1, "id": 1, "created_at": START, "sender_type": "user", "sender_id": 1}
    source = BatchSource(batch([{"id": 1}], [message], swept="snapshot", lists={1: "snapshot"}))
    source.sync_into(tmp_path / "chats")
    text = Page(report_html(Mirror(tmp_path / "chats").figures())).text
    assert "4 Mar 2024, Users: 1" in text
    assert "No operator has answered a user" in text
    assert "There were none in this period" in text


def test_operators_of_one_name_are_told_apart_by_their_ids(tmp_path):
    messages = [
        {"user_id": 1, "id": each, "created_at": START + timedelta(minutes=each),
         "sender_type": "operator", "sender_id": each, "sender_forename": name}
        for each, name in enumerate(("Ada", "Ada", "Ben"))
    ]  # fmt: skip
    source = BatchSource(batch([{"id": 1}], messages, swept="linked"))
    source.sync_into(tmp_path / "chats")
    text = Page(report_html(Mirror(tmp_path / "chats").figures(), "chats")).text
    assert "Ada (0)" in text
    assert "Ada (1)" in text
    assert "Ben (" not in text


def test_an_address_in_a_name_is_hidden_in_the_page_and_the_terminal(backread, tmp_path):
    messages = [
        {"user_id": 1, "id": each, "created_at": START + timedelta(minutes=each),
         "sender_type": kind, "sender_id": each, "sender_forename": "bob%40mail.example"}
        for each, kind in enumerate(("user", "operator"))
    ]  # fmt: skip
    # The page drops the control character, which would complete the address.
    messages[1]["sender_surname"] = "ada@\u202email.example"
    user = {"id": 1, "name": "Zoë zoe@mail.example"}
    chats = tmp_path / "chats"
    BatchSource(batch([user], messages, swept="linked")).sync_into(chats)
    html = report_html(Mirror(chats).figures())
    assert "Zoë [e-mail address" in html
    for shown in (html, backread("report", chats).out):
        assert "[e-mail address" in shown
        assert re.search("mail.ex|zoe|bob|ada@", shown) is None


def test_times_are_in_utc_where_python_has_no_time_zones(chats, monkeypatch):
    """As on Windows without tzdata; DuckDB brings its own."""

    def missing(name: str) -> None:
        raise ZoneInfoNotFoundError(name)

    figures = Mirror(chats).figures(timezone="Europe/Berlin")
    first = figures["longest"][0]["first_message_at"]
    first = first[:16].replace("T", " ")
    assert f"{first} UTC" not in report_html(figures)
    monkeypatch.setattr("backread._report.words.ZoneInfo", missing)
    assert f"{first} UTC" in report_html(figures)


# --- the command ----------------------------------------------------------------------------------


def test_without_a_file_the_main_figures_fit_a_narrow_terminal(backread, chats):
    done = backread(
        "report", chats, "--timezone", "europe/berlin", "--opening-hours", "mon-fri 9-17"
    )
    assert (done.code, done.error) == (0, "")
    assert done.out.startswith("Conversations of chats, times in Europe/Berlin\n")
    figures = Mirror(chats).figures()
    assert f"{figures['totals']['messages']:,}" in done.out
    assert str(figures["operators"][0]["name"]) in done.out
    hours = Mirror(chats).figures(timezone="Europe/Berlin", opening_hours="mon-fri 9-17")
    outside = hours["responses"]["answered_outside_hours"]
    assert f" {outside}  answered outside opening hours\n" in done.out
    from rich.cells import cell_len

    assert max(map(cell_len, done.out.splitlines())) <= 80
    assert "times in UTC\n" in backread("report", chats).out


def test_progress_is_shown_only_where_it_takes_long(monkeypatch):
    shown: list[Any] = []

    class Output:
        """A terminal that keeps what it is shown."""

        show = end = staticmethod(shown.append)

    monkeypatch.setattr("backread.cli.report.find_output", Output)
    monkeypatch.setattr("backread.cli.report.SECONDS_BEFORE", 1_000)
    with _progress() as tell:
        tell(FiguresProgress("times", 2, 7, 0.5))
    assert shown == []
    monkeypatch.setattr("backread.cli.report.SECONDS_BEFORE", 0)
    with _progress() as tell:
        while not shown:
            tell(FiguresProgress("times", 2, 7, 1.0))
        tell(FiguresProgress("operators", 4, 7, 1.5))
    assert (shown[-2].label, shown[-2].fraction) == ("operators", 4 / 7)
    assert shown[-1].label == "computed"


def test_hostile_names_cannot_affect_the_terminal(backread, tmp_path):
    hostile_mirror(tmp_path / "chats")
    done = backread("report", tmp_path / "chats")
    assert done.code == 0
    assert not {*done.out} & {*"\x00\x07\x08\x1b\x7f\x9b\u202e\u2066\u2028\r"}


def test_json_has_all_figures(backread, chats):
    done = backread("report", chats, "--format", "json", "--since", "2019-03-01")
    document = json.loads(done.out)
    assert document["since"] == "2019-03-01T00:00:00+00:00"
    expected = Mirror(chats).figures(since="2019-03-01")
    volatile = ("computed_at", "coverage")
    assert document | dict.fromkeys(volatile) == {**expected, **dict.fromkeys(volatile)}


@posix_only
def test_file_is_complete_private_and_replaced_by_the_next_report(backread, chats, tmp_path):
    tmp_path.chmod(0o700)
    path = tmp_path / "report.html"
    done = backread("report", chats, "-o", path)
    assert (done.code, done.error) == (0, "")
    assert str(path) in done.out
    assert is_report(path.read_bytes())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    first = path.read_bytes()
    assert backread("report", chats, "-o", path, "--since", "2019-04-01").code == 0
    assert path.read_bytes() != first
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_no_other_file_is_replaced(backread, chats, tmp_path):
    path = tmp_path / "thesis.html"
    path.write_text("<p>years of work", encoding="utf-8")
    done = backread("report", chats, "-o", path)
    assert (done.code, done.out) == (2, "")
    assert "is no report of backread, so it is not replaced" in done.line
    assert path.read_text(encoding="utf-8") == "<p>years of work"
    path.write_bytes(b"")
    assert backread("report", chats, "-o", path).code == 0


def test_places_where_no_report_can_be(backread, chats, tmp_path):
    done = backread("report", chats, "-o", tmp_path)
    assert done.code == 2
    assert f"is a folder; name a file in it: -o {tmp_path / 'report.html'}" in done.line
    done = backread("report", chats, "-o", tmp_path / "none" / "report.html")
    assert done.code == 2
    assert "does not exist; create it" in done.line
    done = backread("report", chats, "-o", chats / "report.html")
    assert done.code == 2
    assert "is inside the mirror" in done.line
    assert backread("report", chats, "-o", "s3://bucket/report.html").code == 2


@posix_only
def test_failed_write_leaves_the_old_report(backread, chats, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    assert backread("report", chats, "-o", path).code == 0
    before = path.read_bytes()

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    done = backread("report", chats, "-o", path)
    assert done.code == 2
    assert "free some space" in done.line
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_wrong_options_are_one_line_and_exit_2(backread, chats, tmp_path):
    for arguments, words in (
        (("--timezone", "Berlin"), "--timezone: 'Berlin' is unknown; did you mean Europe/Berlin?"),
        (("--opening-hours", "nine to five"), "--opening-hours: 'nine' in 'nine to five'"),
        (("--since", "soon"), "--since must be a date or time"),
        (
            ("--since", "2024-02-01", "--until", "2024-01-01"),
            "--since must be earlier than --until",
        ),
        (("--open",), "add -o report.html"),
        (("-o", "report.pdf"), "the report is HTML"),
        (("-o", "report.7z"), "the report is HTML"),
        (("-o", tmp_path / "r.html", "--format", "json"), "leave out -o"),
    ):
        done = backread("report", chats, *arguments)
        assert (done.code, done.out) == (2, "")
        assert words in done.line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["2026-11-25", "report.2026-11-25", "report.HTML"])
def test_names_with_a_date_in_them_are_written(backread, chats, tmp_path, name):
    assert backread("report", chats, "-o", tmp_path / name).code == 0
    assert (tmp_path / name).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_missing_pygal_says_what_to_install(backread, chats, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygal", None)
    done = backread("report", chats, "-o", tmp_path / "report.html")
    assert done.code == 1
    assert 'pip install "backread[report]"' in done.line
    assert backread("report", chats).code == 0


def test_open_shows_the_file_in_the_browser(backread, chats, tmp_path, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or False)
    done = backread("report", chats, "-o", tmp_path / "report.html", "--open")
    assert opened == [(tmp_path / "report.html").as_uri()]
    assert done.code == 0
    assert "open " in done.error
