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
    "nul\x00byte and\nline two\ttab",
    "Zażółć gęślą jaźń",
    "Ｆｕｌｌ　ｗｉｄｔｈ",
]
START = datetime(2024, 3, 1, 12, tzinfo=UTC)


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
        ("RESUME", [3, 2], ["resume", "Résumé"]),
        ("Straße", [4], ["Straße"]),
        ("strasse", [5], ["STRASSE"]),
        ("пришел", [9, 8], ["ПРИШЕЛ", "пришёл"]),
        ("没有", [10], ["没有"]),
        (unicodedata.normalize("NFD", "주문"), [11], ["주문"]),
        ("مرحبا", [14, 13], ["مرحبا", "مَرْحَبًا"]),
        ("οδός", [15], ["οδός", "Οδος"]),
        ("👍", [16], ["👍"]),
        ("fine", [], []),
        ("istanbul", [18], ["İstanbul"]),
        ("line", [19], ["line"]),
        ("zazołc gesla", [20], ["Zażółć", "gęślą"]),
        ("full", [], []),
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
