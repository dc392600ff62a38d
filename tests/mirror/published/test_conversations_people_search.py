"""Conversations, finding people and searching messages, and how they show themselves."""

import base64
import hashlib
import pickle
import re
import unicodedata
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from backread import MirrorError
from backread.mirror import Conversation, Mirror, SearchResults
from backread.mirror.published.conversation import read_window
from backread.mirror.published.people import People, PeopleQuery
from backread.mirror.published.snapshot_reader import SnapshotReader
from backread.models import Message
from helpers.hostile_text import HOSTILE, stranger, written
from helpers.mirrors import BatchSource, batch


def pretty(conversation: Conversation) -> str:
    """What IPython shows."""
    texts: list[str] = []
    conversation._repr_pretty_(SimpleNamespace(text=texts.append), False)
    return "".join(texts)


def talk(*bodies: str) -> Conversation:
    """Messages by one who is called Ada."""
    ada = stranger("Ada")
    return Conversation(ada, tuple(said(number, body) for number, body in enumerate(bodies)))


def said(number: int, body: str) -> Message:
    message = written(0, "Ada", None, created_at=datetime(2024, 3, 1, 9, number % 60, tzinfo=UTC))
    return Message(**{name: getattr(message, name) for name in message.__slots__} | {"body": body})


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_it_steers_a_terminal_or_is_a_strangers_markup(text):
    conversation = Conversation(
        stranger(text), tuple(written(each, text, text) for each in range(8))
    )
    for shown in (str(conversation), repr(conversation), pretty(conversation)):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", shown)
    html = conversation.to_html()
    assert {*re.findall(r"<([a-zA-Z][\w-]*)", html)} <= {
        "html", "head", "meta", "title", "style", "body", "main", "div", "h1", "bdi", "span",
        "time", "a",
    }  # fmt: skip
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", html)


def test_nobody_writes_a_line_of_somebody_else():
    forged = "2024-03-01 09:59  Support: send me your password"
    name = f"Ada\n{forged}"
    for conversation in (
        talk(f"hello\n{forged}"),
        talk(f"hello\u2028{forged}"),
        Conversation(stranger(name), (written(0, name, name),)),
    ):
        assert forged not in str(conversation).splitlines()


def test_a_long_one_is_cut_where_it_is_only_looked_at():
    long = talk(*(f"number {number}" for number in range(10_000)))
    assert repr(long) == "<Conversation of user 42, 10,000 messages>"
    lines = pretty(long).splitlines()
    assert len(lines) == 42
    assert lines[0] == "Ada (user 42), 10,000 messages"
    assert "9,960 earlier messages" in lines[1]
    assert lines[-1].endswith("number 9999")
    assert len(str(long).splitlines()) == 10_001
    assert len(pretty(talk("x" * 10**6))) < 10_000


def test_a_slice_is_a_conversation():
    whole = talk("one", "two", "three")
    assert whole[1:] == Conversation(whole.user, whole.messages[1:])
    assert [message.body for message in whole[-1:]] == ["three"]
    assert whole[0].body == "one"
    assert str(whole[:1]).splitlines()[0] == "Ada (user 42), 1 message"


def test_a_saved_document_holds_all_messages_whole_and_allows_only_its_own_styles():
    html = talk(*(f"number {number}" for number in range(300)), "y" * 10_000).to_html()
    assert html.count('class="br-bubble"') == 301
    assert "y" * 10_000 in html
    assert "<title>Ada (user 42)</title>" in html
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; style-src 'sha256-")
    styles = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    for style in styles:
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert (len(styles), " style=" in html) == (2, False)


def test_save_writes_html_and_text(tmp_path):
    conversation = talk("one", "two")
    page, text = tmp_path / "ada.html", tmp_path / "ada.TXT"
    assert conversation.save(page) == page
    assert page.read_text(encoding="utf-8") == conversation.to_html()
    conversation.save(text)
    assert text.read_text(encoding="utf-8") == f"{conversation}\n"


def test_save_refuses_what_it_cannot_write(tmp_path):
    conversation = talk("one")
    with pytest.raises(ValueError, match=r"must end in \.html or \.txt"):
        conversation.save(tmp_path / "ada.pdf")
    with pytest.raises(ValueError, match=r"s3://chats/ada\.html is not a local path"):
        conversation.save("s3://chats/ada.html")
    with pytest.raises(MirrorError, match="cannot be written: No such file or directory; choose"):
        conversation.save(tmp_path / "missing" / "ada.html")
    assert list(tmp_path.iterdir()) == []


def test_a_number_of_more_digits_than_python_takes_is_a_decimal(mirror):
    digits = "9" * 5_000
    message = {"user_id": 1, "id": 5, "extra": f'{{"n":{digits},"m":7}}'}
    BatchSource(batch([{"id": 1}], [message], swept="snapshot")).sync_into(mirror.folder)
    [read] = mirror.conversation(1)
    assert read.extra == {"n": Decimal(digits), "m": 7}


# --- people ---------------------------------------------------------------------------------------


START = datetime(2024, 3, 1, 12, tzinfo=UTC)
LONG = "some.very.long.inbox.of.somebody@example"
USERS: list[dict[str, Any]] = [
    {"id": 1, "name": "Ada Lovelace", "email": "ada@example.com", "reference": "order/42"},
    {"id": 2, "name": "José Núñez", "email": f"{LONG}.com", "reference": None},
    {"id": 3, "name": None, "email": None, "reference": None},
    {"id": 42, "name": "Ada Byron", "email": f"{LONG}.org", "reference": "100%"},
]


def message(user_id: int, number: int, **fields: Any) -> dict[str, Any]:
    """The message of a user, ``number`` hours after the start."""
    return {
        "user_id": user_id,
        "id": user_id * 1000 + number,
        "body": f"message {number}",
        "created_at": START + timedelta(hours=number),
        "sender_type": "user",
        "sender_id": user_id,
        "read_by_user": True,
        "read_by_operator": True,
    } | fields


GRACE = {"sender_type": "operator", "sender_id": 7}
MESSAGES = [
    message(1, 0),
    message(1, 1, **GRACE),
    message(1, 2, **GRACE, auto_invitation=True, body="Need help?" * 50),
    message(2, 30, read_by_operator=False),
    message(2, 31, read_by_operator=False, file_url="https://files.example.com/a.pdf"),
    message(42, 50, **GRACE, read_by_user=False),
    message(42, 51, created_at=None, body="when?"),
]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> SnapshotReader:
    folder = tmp_path_factory.mktemp("people") / "chats"
    BatchSource(batch(USERS, MESSAGES, swept="snapshot")).sync_into(folder)
    return SnapshotReader(folder)


@pytest.fixture(scope="module")
def people(reader: SnapshotReader) -> People:
    return People(reader)


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({"order": "newest"}, [42, 2, 1, 3]),
        ({"order": "oldest"}, [1, 2, 42, 3]),
        ({"order": "longest"}, [1, 2, 42, 3]),
        ({"order": "unread"}, [2, 42, 1, 3]),
        ({"order": "name"}, [42, 1, 2, 3]),
        ({"order": "id"}, [1, 2, 3, 42]),
        ({"words": "ada"}, [42, 1]),
        ({"words": '"ada lovelace"'}, [1]),
        ({"words": "jose NUNEZ"}, [2]),
        ({"words": "42"}, [42, 1]),
        ({"words": "#42"}, [42]),
        ({"words": "100%"}, [42]),
        ({"words": "_da"}, []),
        ({"words": "'; DROP TABLE users; --"}, []),
        ({"words": "example.com"}, [2, 1]),
        ({"unread": "operator"}, [2]),
        ({"unread": "user"}, [42]),
        ({"last_sender": "user"}, [42, 2]),
        ({"operator": 7}, [42, 1]),
        ({"files": True}, [2]),
        ({"until": "2024-03-02"}, [1]),
        ({"since": "2024-03-02", "until": "2024-03-03T12:00"}, [2]),
        ({"words": "ada", "operator": 7, "since": "2024-03-02"}, [42]),
    ],
)
def test_people_are_sorted_searched_and_filtered(people, query, ids):
    found = people.find(PeopleQuery(**query))
    assert ([each.user_id for each in found.people], found.total) == (ids, len(ids))


def test_figures_and_the_last_message(people):
    [ada] = people.find(PeopleQuery("lovelace")).people
    assert (ada.messages, ada.user_messages, ada.operator_messages, ada.auto_invitations) == (
        3, 1, 1, 1,
    )  # fmt: skip
    assert (ada.name, ada.email, ada.reference) == ("Ada Lovelace", "ada@example.com", "order/42")
    assert ada.last_message_at == START + timedelta(hours=2)
    assert ada.last_body.startswith("Need help?")
    assert len(ada.last_body) < 200
    [silent] = people.find(PeopleQuery("#3")).people
    assert (silent.messages, silent.name, silent.last_message_at) == (0, None, None)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"unread": "nobody"}, "unread must be 'user' or 'operator'"),
        ({"order": "colour"}, "order must be"),
        ({"since": "yesterday"}, "since must be a date"),
        ({"since": "0001-01-01T00:00+14:00"}, "outside the years"),
        ({"since": "2024-03-02", "until": "2024-03-01"}, "since must be earlier than until"),
        ({"operator": -1}, "operator"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(query, said):
    with pytest.raises(ValueError, match=said):
        PeopleQuery(**query)


def test_more_words_than_can_be_searched_for_are_refused(people):
    """DuckDB would work on 3,000 words for a minute."""
    with pytest.raises(ValueError, match="words must have at most 1,000 characters, not 16,889"):
        people.find(PeopleQuery(" ".join(f"w{each}" for each in range(3_000))))
    assert people.find(PeopleQuery("w" * 1_000)).total == 0


def test_a_window_is_beside_or_around_a_message_and_full_where_it_can_be(reader, mirror):
    messages = [message(1, number) for number in range(30)]
    BatchSource(batch([{"id": 1}], messages, swept="snapshot")).sync_into(mirror.folder)
    long = SnapshotReader(mirror.folder)
    for options, first, end in (
        ({"around": 1000}, 0, 10),
        ({"around": 1015}, 10, 20),
        ({"around": 1029}, 20, 30),
        ({"before": 1020}, 10, 20),
        ({"before": 1004}, 0, 4),
        ({"before": 1000}, 0, 0),
        ({"at": "first"}, 0, 10),
        ({"after": 1019}, 20, 30),
        ({"after": 1029}, 30, 30),
    ):
        window = read_window(long, 1, limit=10, **options)
        assert (window.start, window.end, window.total) == (first, end, 30), options
        assert [each.id - 1000 for each in window.conversation] == list(range(first, end))
    # Messages without a time are last.
    assert [each.id for each in read_window(reader, 42).conversation] == [42050, 42051]
    with pytest.raises(MirrorError, match="no user 9"):
        read_window(long, 9)
    with pytest.raises(MirrorError, match="user 1 has no message 77"):
        read_window(long, 1, around=77)
    with pytest.raises(ValueError, match="only one"):
        read_window(long, 1, around=1001, before=1002)


# --- search ---------------------------------------------------------------------------------------


BODIES = [
    "Please send the invoice to my office",
    "INVOICE not paid",
    "Résumé and cafe\N{COMBINING ACUTE ACCENT}",
    "resume",
    "Die Straße ist groß",
    "STRASSE",
    "100% sure, a_b, back\\slash, star*, 'single' and \"double\" (brackets) [a-z]+ ^$ .",
    "100 percent, aXb",
    "Заказ пришёл, ещё счёт",
    "ЗАКАЗ ПРИШЕЛ",
    "订单来得太晚，没有人回答",
    "안녕하세요, 주문이 늦었어요",
    unicodedata.normalize("NFD", "안녕하세요 Ångström é ç"),
    "مَرْحَبًا بالعالم",
    "مرحبا",
    "ΟΔΟΣ οδός Οδος",
    "thumbs 👍🏽 family 👨‍👩‍👧 heart ❤️",
    "ﬁne ﬂuﬀ ㎏ ℌello ⅓ ①",
    "İstanbul ISPARTA ılık",
    "nul\x00byte and\nline two\ttab",
    "Zażółć gęślą jaźń",
    "Ｆｕｌｌ　ｗｉｄｔｈ",
]


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    """Each body is that of message 0, 1, … of user 1 or 2, an hour after the one before."""
    mirror = Mirror(tmp_path_factory.mktemp("mirror") / "chats")
    messages: list[Any] = [
        {
            "user_id": 1 + number % 2,
            "id": number,
            "body": body,
            "created_at": START + timedelta(hours=number),
        }
        for number, body in enumerate(BODIES)
    ]
    messages += [{"user_id": 1, "id": 900}, {"user_id": 1, "id": 901, "body": "no time at all"}]
    deleted = {"user_id": 2, "id": 902, "body": "deleted later"}
    lists: Any = {1: "snapshot", 2: "snapshot"}
    for shown in ([*messages, deleted], messages):
        read = batch([{"id": 1}, {"id": 2}], shown, swept="snapshot", lists=lists)
        BatchSource(read).sync_into(mirror.folder, "full")
    return mirror


def found(mirror: Mirror, words: str, **options: Any) -> list[int]:
    return [hit.id for hit in mirror.search(words, **options)]


@pytest.mark.parametrize(
    ("words", "ids", "marked"),
    [
        ("invoice", [1, 0], ["INVOICE", "invoice"]),
        ("invo voice", [1, 0], ["INVOICE", "invoice"]),
        ("RESUME", [3, 2], ["resume", "Résumé"]),
        ("Straße", [4], ["Straße"]),
        ("strasse", [5], ["STRASSE"]),
        ("пришел", [9, 8], ["ПРИШЕЛ", "пришёл"]),
        (unicodedata.normalize("NFD", "주문"), [11], ["주문"]),
        ("مرحبا", [14, 13], ["مرحبا", "مَرْحَبًا"]),
        ("没有", [10], ["没有"]),
        ("οδός", [15], ["οδός", "Οδος"]),
        ("fine", [], []),
        ("istanbul", [18], ["İstanbul"]),
        ("zazołc gesla", [20], ["Zażółć", "gęślą"]),
    ],
)
def test_case_and_accents_do_not_count(searched, words, ids, marked):
    results = searched.search(words)
    assert [hit.id for hit in results] == ids
    assert [hit.snippet[low:high] for hit in results for low, high in hit.matches] == marked


def test_each_character_of_the_words_is_literal(searched):
    for words in ("100%", "a_b", "\\", "*", "'single'", '"double', '"', "[a-z]+", "^$", "%", "_"):
        assert found(searched, words) == [6], words
    for words in ("\\pM", '""', "x{61}", ".*"):
        assert found(searched, words) == [], words


def test_a_quoted_phrase_is_one_word(searched):
    assert found(searched, "\u3000paid\n not\t") == [1]
    assert found(searched, '"paid not"') == []
    assert found(searched, '"not paid" INV') == [1]
    assert found(searched, '"line two"') == [19]


@pytest.mark.parametrize(
    ("words", "options", "said"),
    [
        ("", {}, "at least one word"),
        ('" "', {}, "at least one word"),
        ("\u0301", {}, "at least one word"),
        ("a\ud800", {}, "without surrogates"),
        ("a", {"limit": 0}, "limit must be 1 or more, not 0"),
        ("a", {"user": "42"}, "user must be an int, not str"),
        ("a", {"users": 42}, "no option users; did you mean user"),
        (["a"], {}, "words must be text, not list"),
    ],
)
def test_wrong_arguments_are_refused(searched, words, options, said):
    with pytest.raises((ValueError, TypeError), match=said):
        searched.search(words, **options)


def test_the_newest_come_first_within_the_times_and_the_user(searched):
    assert found(searched, "resum") == [3, 2]
    assert found(searched, "resum", limit=1) == found(searched, "resum", user=2) == [3]
    assert found(searched, "resum", user=77) == []
    assert found(searched, "resum", until=START + timedelta(hours=3)) == [2]
    assert found(searched, "resum", since="2024-03-01T14:30", until=date(2024, 3, 2)) == [3]
    assert found(searched, "time") == [901]
    assert found(searched, "deleted") == []


def test_a_snippet_shows_the_first_match(mirror):
    body = "before " * 40 + "the Re\u0301sume\u0301 and Straße " + "after " * 40
    message = {"user_id": 1, "id": 1, "body": body, "sender_type": "user", "created_at": START}
    BatchSource(batch([{"id": 1}], [message], swept="snapshot")).sync_into(mirror.folder)
    [hit] = mirror.search("RESUME straß")
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")
    assert len(hit.snippet) < 170
    words = hit.snippet.strip("…").split()
    assert {words[0], words[-1]} == {"before", "after"}  # no word is cut
    assert [hit.snippet[low:high] for low, high in hit.matches] == ["Re\u0301sume\u0301", "Straß"]
    assert (hit.user_id, hit.id, hit.sender_type, hit.created_at) == (1, 1, "user", START)


def test_results_are_a_sequence_that_shows_itself_harmlessly(mirror):
    hostile = "\x1b[31mred\u202e <script>alert(1)</script> word\r\n\x9bmore"
    sent = {"user_id": 1, "id": 1, "body": hostile, "sender_type": "user"}
    messages = [sent | {"sender_name": "\x1bEve<b>"}, {"user_id": 1, "id": 2, "body": "word"}]
    BatchSource(batch([{"id": 1}], messages, swept="snapshot")).sync_into(mirror.folder)
    results = mirror.search("word")
    assert results[:1] == SearchResults("word", (results[0],))
    assert pickle.loads(pickle.dumps(results)) == results
    assert repr(results) == "<SearchResults for 'word', 2 hits>"
    first, second = str(results).splitlines()
    assert first == (
        "????-??-?? ??:??  user 1, message 1  ␛Eve<b>: ␛[31mred <script>alert(1)</script> word "
        "\N{REPLACEMENT CHARACTER}more"
    )
    assert second.endswith("unknown: word")
    html = results._repr_html_()
    assert html.count("<mark>word</mark>") == 2
    assert not [each for each in ("<script>", "<b>", "\x1b") if each in html]
