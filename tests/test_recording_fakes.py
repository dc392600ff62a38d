"""Fakes by themselves: nothing of what they stand for, always the same, and of the same form."""

import copy
import itertools
import json
import pickle
import re
import unicodedata
from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("hypothesis")

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from backread.testing.recording.draws import Key
from backread.testing.recording.identifiers import LARGEST_ID, Identifiers
from backread.testing.recording.rows import fake_message, fake_user, line
from backread.testing.recording.values import Fakes

KEY = b"sixteen bytes or more of a key"
QUICK = settings(max_examples=150, deadline=None, derandomize=True)

WORD = re.compile(r"\w{4,}")
TEXT = st.text(min_size=1, max_size=60)
# What people type: words of a few scripts, addresses and numbers among them.
LETTERS = st.sampled_from("aeiounrstlÄéøßĪоеаинтαειουあいうカ漢字語文가나다אבגדابتث")
WORDS = st.text(LETTERS, min_size=1, max_size=12)
PARTS = st.one_of(
    WORDS,
    WORDS.map(str.title),
    st.integers(0, 10**9).map(str),
    st.builds("{}@{}.com".format, WORDS, WORDS),
    st.builds("https://{}.org/{}?{}={}".format, WORDS, WORDS, WORDS, WORDS),
    st.uuids().map(str),
    st.sampled_from(["😀", "👨‍👩‍👧", "🇩🇪", "\n", "...", "\ud83d"]),
)
PROSE = st.lists(PARTS, min_size=1, max_size=8).map(" ".join)
VALUES: Any = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT, PROSE),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(TEXT, WORDS), inner, max_size=4)
    ),
    max_leaves=12,
)


def words(text: str) -> set[str]:
    # Blanks within addresses are written as signs there.
    return set(WORD.findall(text.casefold()))


@QUICK
@given(st.one_of(TEXT, PROSE))
def test_no_word_or_number_of_a_text_is_in_its_fake(text):
    fake = Fakes(Key(KEY)).string(text)
    found = {each for each in words(text) if each in fake.casefold()}
    assert found <= {"http", "https", "example"}
    if any(unicodedata.category(sign)[0] in "LN" for sign in text):
        assert fake != text


@QUICK
@given(st.one_of(TEXT, PROSE))
def test_a_fake_is_the_same_each_time_and_with_another_key_another(text):
    fake = Fakes(Key(KEY)).string(text)
    assert Fakes(Key(KEY)).string(text) == fake
    letters = sum(unicodedata.category(sign) in ("Ll", "Lu") for sign in text)
    if letters > 12:
        assert Fakes(Key(b"another key of many bytes")).string(text) != fake


@QUICK
@given(TEXT)
def test_signs_between_words_stay(text):
    def signs(text: str) -> str:
        return "".join(s for s in text if unicodedata.category(s)[0] in "PZ")

    assume("@" not in text and "://" not in text)
    assert signs(Fakes(Key(KEY)).string(text)) == signs(text)


@QUICK
@given(st.lists(st.one_of(st.integers(0, 5_000), st.integers(0, LARGEST_ID)), max_size=40))
def test_ids_keep_their_order(ids):
    fake = Identifiers(Key(KEY)).fake
    chosen = sorted(set(ids))
    fakes = [fake(each) for each in chosen]
    assert fakes == sorted(set(fakes))
    assert all(0 <= each < 1 << 63 for each in fakes)
    assert all(fake(each) == made for each, made in zip(chosen, fakes, strict=True))


def test_ids_do_not_keep_their_distances():
    fake = Identifiers(Key(KEY)).fake
    gaps = [fake(each + 1) - fake(each) for each in range(1_000, 1_200)]
    assert len(set(gaps)) > 50
    assert [fake(each) for each in range(50)] != [
        Identifiers(Key(b"another key of many bytes")).fake(each) for each in range(50)
    ]


@QUICK
@given(st.lists(st.datetimes(timezones=st.just(UTC)), min_size=2, max_size=2))
def test_times_move_together(moments):
    fakes = Fakes(Key(KEY))
    moment, other = moments
    assume(min(moments).year > 20)
    first, second = (
        fakes.string(each.isoformat(timespec="microseconds")) for each in (moment, other)
    )
    assert datetime.fromisoformat(second) - datetime.fromisoformat(first) == other - moment


@pytest.mark.parametrize("digits", range(1, 10))
def test_the_fractions_of_times_move_and_keep_their_order(digits):
    fakes = Fakes(Key(KEY))
    fractions = [f"{each:09}"[:digits] for each in range(0, 10**9, 87_654_321)]
    texts = [f"2024-03-05T09:31:{at:02}.{each}Z" for at in (6, 7) for each in fractions]
    made = [fakes.string(each) for each in texts]
    assert made == sorted(made)
    assert all(len(new) == len(old) for new, old in zip(made, texts, strict=True))
    assert not {each[19:] for each in made if digits > 2} & {each[19:] for each in texts}
    assert len(set(made)) == len(set(texts))


@QUICK
@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
@example(-5e-324)
def test_numbers_keep_type_sign_and_size(number):
    fake = Fakes(Key(KEY)).number(number)
    assert type(fake) is type(number)
    assert (fake < 0) == (number < 0)
    if isinstance(number, int):
        assert len(str(fake)) == len(str(number))
        assert (fake == number) == (abs(number) < 10)


@QUICK
@given(VALUES)
def test_any_value_keeps_its_shape(value):
    fakes = Fakes(Key(KEY))
    fake = fakes.value(value)

    def shape(value: Any) -> Any:
        if isinstance(value, dict):
            return [shape(held) for held in value.values()]
        return [shape(each) for each in value] if isinstance(value, list) else type(value)

    assert shape(fake) == shape(value)
    json.loads(json.dumps(fake))


@QUICK
@given(st.dictionaries(st.one_of(TEXT, WORDS), VALUES, max_size=5), VALUES, VALUES)
def test_any_row_is_one_of_a_world(extra, body, sender):
    from backread.testing import World

    fakes = Fakes(Key(KEY))
    user = fake_user({**extra, "id": 42, "user_attributes": body}, fakes)
    message = fake_message(
        {**extra, "id": "7", "body": body, "sender_type": sender, "sender": sender}, fakes
    )
    assert user is not None
    assert message is not None
    try:
        text = line(user, [message]).encode()
    except UnicodeEncodeError:
        # A client repairs what is not valid text before anybody sees it.
        assume(False)
    world = World.from_jsonl([text])
    assert world.user_ids() == [user["id"]]
    assert world.message_ids(user["id"]) == [message["id"]]


def test_a_fake_that_would_be_its_original_is_drawn_again():
    # There are two such signs, so that one fake in sixteen is the text by chance.
    texts = ["".join(signs) for signs in itertools.product("ªº", repeat=4)]
    for number in range(10):
        fakes = Fakes(Key(f"the key with the number {number}"))
        assert [text for text in texts if fakes.string(text) == text] == []


def test_parts_of_an_url_are_told_by_the_whole_way_to_them():
    fakes = Fakes(Key(KEY))
    one, same, other = (
        fakes.string(f"https://acme.com/{path}").split("/")[3:]
        for path in ("shoes/red", "shoes/blue", "bags/red")
    )
    assert one[0] == same[0] != other[0]
    assert one[1] not in (same[1], other[1])


def test_a_key_neither_shows_nor_travels():
    key = Key(KEY)
    assert KEY.decode() not in repr(key)
    for travel in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            travel(key)


def test_names_that_look_like_data_are_no_names():
    fakes = Fakes(Key(KEY))
    for name in ("plan", "last_order", "x-1", "_ref"):
        assert fakes.name(name) == name
    for name in ("Ada Lovelace", "ada@acme.com", "Ωmega", "1815-12-10", "", "x" * 65):
        assert fakes.name(name) != name or not name
    # So many names are no names of fields.
    kept = [name for name in (f"customer{n}" for n in range(1_000)) if fakes.name(name) == name]
    assert len(kept) < 200
