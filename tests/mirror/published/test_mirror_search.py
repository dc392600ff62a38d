"""`Mirror.search`: which messages it finds, and how it shows them."""

import pickle
import unicodedata
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from backread.mirror import Mirror, SearchResults
from helpers.mirrors import BatchSource, batch

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
    "कि की कु",
    "nul\x00byte and\nline two\ttab",
    "",
    "e" * 500 + " end",
    "Zażółć gęślą jaźń",
    "Tiếng Việt có dấu",
    "Ｆｕｌｌ　ｗｉｄｔｈ",
]
START = datetime(2024, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    """Each body is that of message 0, 1, … of user 1 or 2, an hour after the one before."""
    mirror = Mirror(tmp_path_factory.mktemp("mirror") / "chats")
    messages = [
        {
            "user_id": 1 + number % 2,
            "id": number,
            "body": body,
            "created_at": START + timedelta(hours=number),
            "sender_type": "operator",
            "sender_forename": "Ada",
            "sender_surname": "L.",
        }
        for number, body in enumerate(BODIES)
    ]
    nobody: list[Any] = [
        {"user_id": 1, "id": 900, "body": None},
        {"user_id": 1, "id": 901, "body": "no time at all"},
        {"user_id": 2, "id": 902, "body": "deleted later"},
    ]
    users = [{"id": 1}, {"id": 2}]
    lists: Any = {1: "snapshot", 2: "snapshot"}
    for extra in (nobody, nobody[:2]):
        source = BatchSource(batch(users, [*messages, *extra], swept="snapshot", lists=lists))
        source.sync_into(mirror.folder, "full")
    return mirror


def found(mirror: Mirror, words: str, **options: Any) -> list[int]:
    return [hit.id for hit in mirror.search(words, **options)]


@pytest.mark.parametrize(
    ("words", "ids", "marked"),
    [
        ("invoice", [1, 0], ["INVOICE", "invoice"]),
        ("RESUME", [3, 2], ["resume", "Résumé"]),
        ("é invoice", [1, 0], None),
        ("Straße", [4], ["Straße"]),
        ("strasse", [5], ["STRASSE"]),
        ("пришел", [9, 8], ["ПРИШЕЛ", "пришёл"]),
        ("没有", [10], ["没有"]),
        ("안녕", [12, 11], None),
        (unicodedata.normalize("NFD", "주문"), [11], ["주문"]),
        ("مرحبا", [14, 13], ["مرحبا", "مَرْحَبًا"]),
        ("οδός", [15], ["οδός", "Οδος"]),
        ("👍", [16], ["👍"]),
        ("fine", [], []),
        ("istanbul", [18], ["İstanbul"]),
        ("line", [20], ["line"]),
        ("zazołc gesla", [23], ["Zażółć", "gęślą"]),
        ("full", [], []),
    ],
)
def test_case_and_accents_do_not_count(searched, words, ids, marked):
    results = searched.search(words)
    assert [hit.id for hit in results] == ids
    if marked is not None:
        assert [hit.snippet[low:high] for hit in results for low, high in hit.matches] == marked


def test_each_character_of_the_words_is_literal(searched):
    literal = {"100%": [6], "a_b": [6], "\\": [6], "*": [6], "'single'": [6], '"double': [6]}
    literal |= {'"': [6], "[a-z]+": [6], "^$": [6], "(": [6], "back\\slash": [6], "\\pM": []}
    literal |= {"%": [6], "_": [6], "'": [6], '""': [], "x{61}": [], ".*": []}
    for words, expected in literal.items():
        assert found(searched, words) == expected, words


def test_a_quoted_phrase_is_one_word(searched):
    assert found(searched, "paid not") == [1]
    assert found(searched, '"paid not"') == []
    assert found(searched, '"not paid" INV') == [1]
    assert found(searched, '"line two"') == [20]
    assert found(searched, "\u3000invoice\n paid\t") == [1]


@pytest.mark.parametrize("words", ["", '" "', "\u0301"])
def test_blank_words_are_refused(searched, words):
    with pytest.raises(ValueError, match="at least one word"):
        searched.search(words)


def test_other_wrong_arguments_are_refused(searched):
    with pytest.raises(ValueError, match="without surrogates"):
        searched.search("a\ud800")
    with pytest.raises(ValueError, match="limit must be 1 or more, not 0"):
        searched.search("a", limit=0)
    with pytest.raises(TypeError, match="user must be an int, not str"):
        searched.search("a", user="42")
    with pytest.raises(TypeError, match="no option users; did you mean user"):
        searched.search("a", users=42)
    with pytest.raises(TypeError, match="words must be text, not list"):
        searched.search(["a"])


def test_the_newest_come_first_within_the_times_and_the_user(searched):
    assert found(searched, "resum") == [3, 2]
    assert found(searched, "resum", limit=1) == [3]
    assert found(searched, "resum", user=1) == [2]
    assert found(searched, "resum", user=2) == [3]
    assert found(searched, "resum", user=77) == []
    assert found(searched, "resum", since=START + timedelta(hours=3)) == [3]
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
    messages = [
        {
            "user_id": 1,
            "id": 1,
            "body": hostile,
            "sender_type": "user",
            "sender_name": "\x1bEve<b>",
        },
        {"user_id": 1, "id": 2, "body": "word"},
    ]
    BatchSource(batch([{"id": 1}], messages, swept="snapshot")).sync_into(mirror.folder)
    results = mirror.search("word")
    assert isinstance(results, SearchResults)
    assert results[:1] == SearchResults("word", (results[0],))
    assert pickle.loads(pickle.dumps(results)) == results
    first, second = str(results).splitlines()
    assert first == (
        "????-??-?? ??:??  user 1, message 1  ␛Eve<b>: ␛[31mred <script>alert(1)</script> word "
        "\N{REPLACEMENT CHARACTER}more"
    )
    assert second.endswith("unknown: word")
    html = results._repr_html_()
    assert html.count("<mark>word</mark>") == 2
    assert not [each for each in ("<script>", "<b>", "\x1b") if each in html]
    assert repr(results) == "<SearchResults for 'word', 2 hits>"
    assert str(mirror.search("no such")) == ""
