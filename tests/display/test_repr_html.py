"""What is drawn in a notebook: text of strangers stays text, and what matters is seen first."""

import re
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st

from backread import Mirror
from backread._display.words import ago, duration
from backread._progress.output import State, notebook_line
from backread.mirror.published.conversation import Conversation
from backread.mirror.published.search import SearchHit, SearchResults
from backread.mirror.sync.report import SyncFigures, SyncReport
from backread.models import Message, OtherSender, Page, WalkReport
from helpers.hostile_text import ADDRESSES, HOSTILE, check, stranger, written

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
REPORT = WalkReport(
    14, 12, 1_203, 1_200, 3, 1_190, 1_200, 1, 0, "linked", NOW, NOW + timedelta(seconds=75), None
)
FIGURES = SyncFigures(
    1_234, 20, 5_000, 3, 2, 400, 1, 12, 4, 9,
    {"snapshot": 19, "uncertified": 1}, {"whole": 20}, NOW, 3_725.0, 0.0,
)  # fmt: skip
SYNCED = SyncReport(
    *(getattr(FIGURES, each.name) for each in fields(FIGURES) if not each.kw_only),
    replace(FIGURES, requests=2_345),
    7, "full", True, "snapshot", None, (42,), NOW, 1, "it broke",
)  # fmt: skip

texts = st.text(max_size=60) | st.sampled_from(HOSTILE)
addresses = st.sampled_from(ADDRESSES) | st.text(max_size=40) | st.from_regex(r"https?://.{1,30}")


def drawings(text: str, address: str | None) -> list[Any]:
    user = stranger(text, address)
    messages = tuple(written(number, text, address) for number in range(8))
    return [
        user,
        *messages,
        Page(9, 0, 1, (user,)),
        Page(9, 0, 8, messages),
        Page(9, 0, 1, ({text: text, "sender": {text: text}},)),
        replace(REPORT, certificate="uncertified", reason=text),
        replace(SYNCED, certificate="uncertified", certificate_reason=text, error=text),
        Conversation(user, messages),
    ]


@settings(deadline=None)
@given(texts, st.none() | addresses)
def test_what_strangers_write_is_no_markup(text, address):
    for thing in drawings(text, address):
        html = thing._repr_html_()
        assert check(html).links <= {address}
        assert not re.search(r"<(link|img|style[^>]*>[^<]*(url\(|@import))", html)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", html)


def test_no_notebook_typesets_formulas_that_strangers_write(tmp_path, backread_mock):
    """MathJax leaves out elements of these classes; version 2 of it, those of the second."""
    formula = "$\\href{javascript:window.hit=1}{x}$"
    hit = SearchHit(42, 1, NOW, "user", formula, formula, formula, ())
    bar = notebook_line(State(formula, (formula,), 0.5), live=True)
    assert "value" in check(bar).attributes
    assert "progress" not in check(notebook_line(State("x", ("x",), None), live=False)).tags
    with backread_mock.client() as client:
        shown = [*drawings(formula, None), SearchResults(formula, (hit,)), client.users.list()]
    drawn = [each._repr_html_() for each in [*shown, Mirror(tmp_path / "chats")]]
    for html in (*drawn, bar):
        [classes] = re.findall(r'^<div class="([^"]*)"', html)
        assert {"mathjax_ignore", "tex2jax_ignore"} <= set(classes.split())


@pytest.mark.parametrize("text", [each for each in HOSTILE if len(each) < 100])
def test_what_strangers_write_is_seen(text):
    words = set(re.findall(r"\w+", re.sub(r"\x9b|[\x00-\x1f]", " ", text)))
    for thing in drawings(text, None):
        if isinstance(thing, WalkReport | SyncReport | Conversation | Message):
            drawn = check(thing._repr_html_()).text
            assert [word for word in words if word not in drawn] == []


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses_are_links_where_they_are_plain(address):
    plain = {ADDRESSES[0], ADDRESSES[1], "https://files.example.com/%E2%80%AEgpj.exe"}
    conversation = Conversation(stranger("Ada"), (written(1, "see here", address),))
    drawn = check(conversation._repr_html_())
    assert drawn.links == ({address} if address in plain else set())
    assert "\u202e" not in drawn.text or address not in plain
    assert check(conversation[0]._repr_html_()).links == drawn.links
    if address == ADDRESSES[0]:
        assert "a b.pdf (files.example.com)" in drawn.text
        assert drawn.attributes["rel"] == {"noopener noreferrer nofollow"}


# --- conversations --------------------------------------------------------------------------------


def test_a_conversation_is_drawn_as_a_chat():
    talk = Conversation(
        stranger("Ada"),
        (
            written(0, "Hello?", read_by_operator=False),
            written(1, "Good morning", created_at=datetime(2024, 3, 2, 8, 5, tzinfo=UTC)),
            written(5, "May I help?", auto_invitation=True, created_at=None),
        ),
    )
    html = talk._repr_html_()
    sides = re.findall(r'"br-message br-(\w+)"', html)
    assert sides == ["user", "operator", "automatic"]
    text = check(html).text
    for said in ("3 messages", "2024-03-01 to 2024-03-02", "times in UTC", "Friday, 2024-03-01"):
        assert said in text
    assert "09:00 · not read by an operator" in text
    assert "Saturday, 2024-03-02" in text
    assert "automatic invitation" in text
    assert "no time" in text


def test_a_name_stands_once_over_messages_in_a_row_and_times_are_in_utc():
    east = datetime.fromisoformat("2024-03-02T01:30:00+05:00")
    messages = [written(each, "x", created_at=east) for each in (0, 8, 12, 1, 16)]
    html = Conversation(stranger("Ada"), tuple(messages))._repr_html_()
    assert html.count('class="br-who"') == 3
    assert html.count('datetime="2024-03-01T20:30:00Z">20:30<') == 5


def test_a_long_conversation_is_cut_and_says_so():
    html = Conversation(
        stranger("Ada"), (written(0, "x\x1c"), written(0, "y" * 10**6))
    )._repr_html_()
    assert len(html) < 20_000
    assert "996,000 more characters in conversation[1].body" in html
    assert "␜" in html
    talk = Conversation(stranger("Ada"), tuple(written(n, f"number {n}") for n in range(1_500)))
    text = check(talk._repr_html_()).text
    assert "1,300 earlier messages not drawn" in text
    assert "number 1299" not in text
    assert "number 1300" in text
    assert "number 1499" in text
    rest = check(talk[:200]._repr_html_()).text
    assert "not drawn" not in rest
    assert "number 199" in rest


@pytest.mark.parametrize("character", ["<", "\u202e"])
def test_a_row_shows_the_begin_of_a_long_value_and_counts_the_rest(character):
    long = character * 120_000
    address = f"https://files.example.com/{long}"
    extra = {"own": [long], "name": {long: 1}}
    for thing in (
        replace(stranger(long), extra=extra),
        replace(written(0, long, address), sender=OtherSender("bot", None, extra), extra=extra),
    ):
        drawn = check(thing._repr_html_())
        assert drawn.text.count("… 100,000 more characters") >= 1
        assert max(map(len, re.split(" more characters", drawn.text))) < 25_000
        assert drawn.links == set()


@pytest.mark.parametrize("text", ["\u200b\u2060\ufeff", " \n\t ", "\U0001bca0\U0001d173"])
def test_text_that_cannot_be_seen_says_so(text):
    html = Conversation(stranger(text), (written(0, text), written(1, f"{text}.")))._repr_html_()
    assert check(html).text.count(f"{len(text)} characters, none to be seen") == 1
    # The name of the sender is of the same kind.
    assert "<bdi>user</bdi>" in html


# --- reports --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "badge", "said"),
    [
        ({}, "✓ linked", "1,200 of 1,200, 3 repeats left out requests14 took1 min 15 s"),
        ({"certificate": "uncertified", "reason": "2 rows short"}, "! uncertified", "2 rows short"),
        ({"ended_at": None}, "… not read to its end", ""),
        ({"started_at": None}, "not read yet", ""),
        (
            {"lists_by_certificate": {"snapshot": 3_000, "uncertified": 25},
             "uncertified_users": tuple(range(25))},
            "✓ linked",
            "3,000 snapshot, 25 uncertified 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 15 more",
        ),
    ],
)  # fmt: skip
def test_a_report_says_first_what_was_proved(changes, badge, said):
    text = check(replace(REPORT, **changes)._repr_html_()).text
    assert text.startswith(f"WalkReport {badge}")
    assert [word for word in said.split() if word not in text] == []


def test_a_sync_says_what_changed_and_what_was_not_proved():
    html = SYNCED._repr_html_()
    assert [each.name for each in fields(SYNCED) if f">{each.name}</th>" not in html] == []
    text = check(html).text
    for said in ("users2032", "messages5,0004001", "✓ snapshot", "! uncertified 42", "gone12",
                 "1 h 02 min, 1,234 requests", "it broke", "full, resumed",
                 "20 users, 5,000 messages, 1 h 02 min, 2,345 requests"):  # fmt: skip
        assert said in text


def test_a_listing_says_how_it_is_read_and_asks_nothing(backread_mock):
    client = backread_mock.client()
    user_id = next(each for each in backread_mock.world.user_ids()
                   if len(backread_mock.world.message_ids(each)) > 1)  # fmt: skip
    listing = client.messages.list(user_id)
    unread = check(listing._repr_html_()).text
    assert unread.startswith(f"Listing of messages of user {user_id} not read yet")
    assert "for message in listing" in unread
    assert backread_mock.calls().count == 0
    assert "await listing.to_polars()" in backread_mock.async_client().users.list()._repr_html_()
    rows = listing.to_list()
    read = check(listing._repr_html_()).text
    assert "✓ snapshot" in read
    assert f"rows{len(rows)} of {len(rows)}" in read


@pytest.mark.parametrize(
    ("text_of", "seconds", "said"),
    [
        (duration, 0.0814, "81 ms"), (duration, 0.9996, "1.00 s"), (duration, 59.96, "1 min 00 s"),
        (duration, 86_399, "23 h 59 min"), (duration, 93_600, "1 d 02 h"),
        (ago, 7_200, "2 hours ago"), (ago, -200, "just now"),
        (ago, -7_500, "2 h 05 min in the future, so a clock was wrong"),
    ],
)  # fmt: skip
def test_durations_are_readable_and_what_is_still_to_come_is_not_taken_for_now(
    text_of, seconds, said
):
    assert text_of(seconds) == said
