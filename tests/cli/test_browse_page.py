"""What the page of `backread browse` says, and while the mirror changes."""

import csv
import hashlib
import html
import io
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

import duckdb
import pytest

pytest.importorskip("pyarrow")

from backread._browse import BrowseServer
from backread._browse.lists import POLICY
from backread.mirror import Mirror
from backread.mirror.published.search import LONGEST_WORDS
from backread.mirror.store.folder import DATABASE_NAME, file_path
from backread.testing import MockServer, World
from helpers import browse_client
from helpers.browse_client import MESSAGES, USERS, Visitor, publish
from helpers.hostile_text import HOSTILE, message
from helpers.mirrors import BatchSource, batch, sync

own = browse_client.own
folder = browse_client.folder
running = browse_client.running
visitor = browse_client.visitor


def visible(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


def test_the_header_has_the_age_and_the_certificate_or_counts_what_is_not_proved(visitor, tmp_path):
    state = visitor.ask("state")
    assert state["age"].startswith("Synced ")
    assert (state["kind"], state["proof"]) == ("proved", "every list proved complete")
    assert state["name"] == "chats"
    assert any("the list of users is linked" in each for each in state["details"])
    lists: Any = {1: "snapshot", 2: "uncertified"}
    users = [{"id": 1}, {"id": 2}, {"id": 3}]
    BatchSource(batch(users, [], swept="snapshot", lists=lists)).sync_into(tmp_path / "m", "full")
    with BrowseServer(tmp_path / "m") as running:
        state = Visitor(running).enter().ask("state")
    assert (state["kind"], state["proof"]) == ("unproved", "2 of 3 message lists not proved")
    assert any("1 list never read; sync again" in each for each in state["details"])


def test_people_are_listed_searched_and_filtered(visitor):
    page = visitor.ask("people", words="lovelace")
    assert page["total"] == 1
    assert page["next"] is None
    said = visible(page["html"])
    assert "Ada Lovelace" in said
    assert "3 messages · 1 unread" in said
    assert 'href="#/user/1"' in page["html"]
    assert visitor.ask("people", words="Ada", unread="user")["total"] == 0
    assert visitor.ask("people", words="ada", operator=7)["total"] == 1
    assert visitor.ask("operators")["operators"] == [{"id": "7", "name": "Grace"}]
    first = visitor.ask("people", order="id", count=10)
    second = visitor.ask("people", order="id", count=10, offset=first["next"])
    ids = re.findall(r'data-user="(\d+)"', first["html"] + second["html"])
    assert ids == [str(user["id"]) for user in USERS[:20]]
    assert second["next"] == (20 if len(USERS) > 20 else None)
    nobody = visitor.ask("people", words="in no name at all")
    assert (nobody["html"], nobody["total"], nobody["next"]) == ("", 0, None)
    assert nobody["said"].startswith("No one matches")


def test_a_search_leads_to_the_message_in_its_conversation(visitor):
    found = visitor.ask("search", words="INVOICE")
    assert found["count"] == 1
    assert 'href="#/user/1/message/1"' in found["html"]
    assert "<mark>invoice</mark>" in found["html"]
    assert "Ada Lovelace" in visible(found["html"])
    shown = visitor.ask("window", user=1, around=1, words="INVOICE")
    assert "Where is my <mark>invoice</mark>?" in shown["html"]
    found = visitor.ask("search", words="hostile", count=5)
    said = f"{len(HOSTILE)} messages found; these are the newest 5"
    assert (found["next"], found["said"]) == (5, said)
    more = visitor.ask("search", words="hostile", count=5, offset=5)
    assert (more["count"], more["html"].count("<li>")) == (len(HOSTILE), 5)
    # As many words as are allowed fit into an address.
    answer = visitor.ask("search", words="\U0001f600" * LONGEST_WORDS, since="2024-01-01")
    assert (answer["status"], answer["count"]) == (200, 0)


def test_a_conversation_is_shown_as_bubbles_with_a_link_to_each_message(visitor):
    window = visitor.ask("window", user=1)
    assert (window["start"], window["end"], window["total"]) == (0, 3, 3)
    assert (window["first"], window["last"]) == ("1", "3")
    assert "Ada Lovelace" in visible(window["heading"])
    for number in (1, 2, 3):
        assert f'id="message-{number}"' in window["html"]
        assert f'href="#/user/1/message/{number}"' in window["html"]
    assert window["html"].count("br-bubble") == 3
    assert "the end" not in window["html"]
    assert "1,008 more characters" in window["html"]
    whole = visitor.ask("message", user=1, message=3)
    assert visible(whole["html"]) == MESSAGES[2]["body"]


@pytest.mark.parametrize(
    ("name", "parameters", "status", "said"),
    [
        ("window", {"user": 999}, 404, "has no user 999"),
        ("window", {"user": 1, "around": 999}, 404, "has no message 999"),
        ("window", {"user": "x"}, 400, "user must be a whole number"),
        ("people", {"timezone": "Berlin"}, 400, "time zone 'Berlin' is unknown"),
        ("window", {}, 400, "user is missing"),
        ("window", {"user": 1, "around": 1, "before": 2}, 400, "only one"),
        ("people", {"since": "soon"}, 400, "since must be a date"),
        ("people", {"order": "drop table"}, 400, "order must be"),
        ("search", {"words": "  "}, 400, "Type words"),
        ("people", {"figure": "x'y"}, 400, "there is no list"),
        ("download", {"user": 1, "format": "exe"}, 400, "format must be csv or xlsx"),
        ("file", {"user": 1, "message": 1}, 404, "no file of message 1"),
    ],
)
def test_what_makes_no_sense_is_explained(visitor, name, parameters, status, said):
    answer = visitor.ask(name, **parameters)
    assert answer["status"] == status
    assert said in answer["error"]


def test_days_and_times_are_those_of_the_time_zone(own):
    late = message(1, 9, "late", created_at=datetime(2024, 3, 4, 23, 30, tzinfo=UTC))
    publish(own, USERS[:2], [late])
    with BrowseServer(own) as running:
        visitor = Visitor(running).enter()
        for zone, day, time in (("UTC", 4, "23:30"), ("Asia/Tokyo", 5, "08:30")):
            window = visitor.ask("window", user=1, timezone=zone)
            assert f"2024-03-0{day}</time>" in window["html"]
            assert f">{time}</time>" in window["html"]
            assert f"times in {zone}" in window["heading"]
            for shown in (day - 1, day, day + 1):
                given = {"timezone": zone, "since": f"2024-03-0{shown}"}
                given["until"] = given["since"]
                assert visitor.ask("people", **given)["total"] == (shown == day)
        assert visitor.ask("people", days=7)["total"] == 0


def test_each_number_of_the_report_leads_to_the_people_it_counts(tmp_path):
    mirror = Mirror(tmp_path / "chats")
    with MockServer(World(seed=3, users=60, messages_per_user=(0, 30))) as server:
        sync(mirror, server)
    given = {"timezone": "Europe/Berlin", "hours": "mon-fri 9-17", "since": "2018-06-01"}
    with BrowseServer(mirror.folder) as running:
        visitor = Visitor(running).enter()
        reply = visitor.get(f"{visitor.path}api/report?{urlencode(given)}")
        assert reply.status == 200
        assert reply.headers["Content-Security-Policy"] == POLICY
        assert "Back to the conversations" in reply.text
        links = re.findall(r'href="\.\./#/\?([^"]*)">([\d,]+)</a>', reply.text)
        checked = 0
        for query, number in links:
            asked = dict(parse_qsl(html.unescape(query)))
            assert given.items() <= asked.items() or "until" in asked
            people = visitor.ask("people", **asked)
            assert people["status"] == 200
            name = asked.get("figure", "")
            if re.match("unanswered|user_wrote|first_resp|waited", name):
                assert people["total"] == int(number.replace(",", "")), name
                checked += 1
            else:
                assert people["total"] > 0
        assert checked > 5
        talks = re.findall(r'href="\.\./#/user/(\d+)', reply.text)
        assert visitor.ask("window", user=talks[0])["total"] > 0


@pytest.mark.parametrize("shape", ["csv", "xlsx"])
def test_a_search_a_conversation_and_people_are_saved(own, shape):
    publish(own, USERS[:2], [*MESSAGES[:2], message(1, 4, "=cmd|'/c calc'!A1 invoice")])
    with BrowseServer(own) as running:
        visitor = Visitor(running).enter()
        for given, name, rows in (
            ({"user": 1}, "conversation-1", ["Where is my invoice?", "Here it is", "=cmd"]),
            ({"tab": "messages", "words": "invoice"}, "messages", ["=cmd", "Where is my invoice?"]),
            ({"tab": "people", "words": "ada"}, "people", ["Ada Lovelace"]),
        ):
            target = f"{visitor.path}api/download?{urlencode(given | {'format': shape})}"
            reply = visitor.get(target)
            assert reply.status == 200
            saved = f"attachment; filename*=UTF-8''{name}.{shape}"
            assert reply.headers["Content-Disposition"] == saved
            if shape == "csv":
                header, *records = csv.reader(io.StringIO(reply.text))
            else:
                book = pytest.importorskip("openpyxl").load_workbook(io.BytesIO(reply.body))
                header, *records = book.active.values
            cells = [dict(zip(header, each, strict=True)) for each in records]
            texts = [each.get("body") or each["name"] for each in cells]
            assert len(texts) == len(rows)
            for text, expected in zip(texts, rows, strict=True):
                # A spreadsheet would run it as a formula.
                guard = "'" if shape == "csv" and expected == "=cmd" else ""
                assert text.startswith(guard + expected)


PICTURES = {
    "image/png": b"\x89PNG\r\n\x1a\n rest",
    "image/jpeg": b"\xff\xd8\xff\xe0 rest",
    "image/gif": b"GIF89a rest",
    "image/webp": b"RIFF\x10\x00\n\x00WEBPVP8 ",
}
OTHERS = [b"<svg xmlns='http://www.w3.org/2000/svg' onload='hit = 1'/>", b" \x89PNG\r\n\x1a\n", b""]


def test_stored_pictures_are_shown_and_other_files_are_only_saved(own):
    contents = [*PICTURES.values(), *OTHERS]
    sent = [
        message(1, at, "see", file_url=f"https://files.example.com/{at}?sig=old")
        for at in range(len(contents) + 1)
    ]
    publish(own, USERS[:2], sent)
    with duckdb.connect(str(own / DATABASE_NAME)) as database:
        for at, content in enumerate(contents):
            sha256 = hashlib.sha256(content).hexdigest()
            place = file_path(own, sha256)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            name, url = f'x"{at}.png\r\n', f"https://files.example.com/{at}?sig=new"
            database.execute(
                "INSERT INTO files (user_id, message_id, file_url, name, sha256, bytes, media_type)"
                " VALUES (1, ?, ?, ?, ?, ?, 'text/html')",
                [at, url, name, sha256, len(content)],
            )
    publish(own, USERS[:2], [*sent, message(1, 99, "to publish it")])
    with BrowseServer(own) as running:
        visitor = Visitor(running).enter()
        shown = visitor.ask("window", user=1)["html"]
        assert shown.count("<img ") == len(PICTURES)
        # The last one was not fetched.
        assert shown.count(f'href="https://files.example.com/{len(contents)}?sig=old"') == 1
        assert shown.count("https://files.example.com") == 2
        for at, content in enumerate(contents):
            reply = visitor.get(f"{visitor.path}api/file?user=1&message={at}")
            assert (reply.status, reply.body) == (200, content)
            assert reply.headers["X-Content-Type-Options"] == "nosniff"
            assert reply.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
            kind = reply.headers["Content-Type"]
            if at < len(PICTURES):
                assert (kind, reply.headers["Content-Disposition"]) == ([*PICTURES][at], "inline")
            else:
                assert kind == "application/octet-stream"
                saved = f"attachment; filename*=UTF-8''x%22{at}.png%0D%0A"
                assert reply.headers["Content-Disposition"] == saved
        for given in (f"user=1&message={len(contents)}", "user=2&message=0", "user=1&message=99"):
            assert visitor.get(f"{visitor.path}api/file?{given}").status == 404
        assert visitor.get(f"{visitor.path}api/file?user=1&message=0", Cookie="x").status == 403


ALLOWED = {
    "a", "b", "bdi", "button", "caption", "details", "div", "h2", "li", "mark", "p", "span",
    "summary", "table", "tbody", "td", "th", "time", "tr",
}  # fmt: skip


def test_hostile_text_is_shown_as_text(visitor):
    pieces = [
        visitor.ask("people", count=100)["html"],
        visitor.ask("search", words="hostile")["html"],
    ]
    for at in range(len(HOSTILE)):
        for words in ("", "hostile script"):
            window = visitor.ask("window", user=100 + at, words=words)
            pieces += [window["html"], window["heading"]]
    markup = "".join(pieces)
    assert set(re.findall(r"</?([a-zA-Z]\w*)", markup)) <= ALLOWED
    attributes = set(re.findall(r'[ "]([\w-]+)="', re.sub(r'(?<==)"[^"]*"', '""', markup)))
    assert not {each for each in attributes if each.startswith("on") or each in ("style", "src")}
    addresses = re.findall(r'href="([^"]*)"', markup)
    assert {html.unescape(each).split(":")[0].lower() for each in addresses if each[0] != "#"} <= {
        "http",
        "https",
    }
    assert "\x1b" not in markup
    assert visible(markup).count(HOSTILE[0]) >= 3


def test_an_empty_mirror_and_a_silent_user_have_a_page(tmp_path, visitor):
    publish(tmp_path / "m", [], [])
    with BrowseServer(tmp_path / "m") as running:
        empty = Visitor(running).enter()
        assert empty.ask("people")["said"] == "This mirror has no users yet."
        assert empty.ask("state")["proof"] == "every list proved complete"
        assert empty.ask("search", words="x")["count"] == 0
    window = visitor.ask("window", user=2)
    assert (window["html"], window["total"], window["first"]) == ("", 0, None)
    assert "Nobody Spoke" in window["heading"]


def test_a_new_snapshot_is_shown_and_a_mirror_that_vanishes_is_explained(own):
    with BrowseServer(own) as running:
        visitor = Visitor(running).enter()
        before = visitor.ask("state")["snapshot"]
        assert visitor.ask("window", user=1)["total"] == 3
        publish(own, [*USERS[:2], {"id": 5, "name": "New"}], [*MESSAGES[:3], message(1, 9, "new")])
        assert visitor.ask("state")["snapshot"] > before
        assert visitor.ask("window", user=1)["total"] == 4
        assert visitor.ask("search", words="new")["count"] == 1
        assert visitor.ask("people", words="new")["total"] == 1
        # Files that are removed at once are no error.
        Mirror(own).forget(1)
        assert visitor.ask("search", words="new")["count"] == 0
        assert visitor.ask("window", user=1)["status"] == 404
        hidden = own.with_name("hidden")
        own.rename(hidden)
        answer = visitor.ask("state")
        assert (answer["status"], "nothing is published" in answer["error"]) == (404, True)
        hidden.rename(own)
        assert visitor.ask("state")["status"] == 200
