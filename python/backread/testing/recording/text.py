"""Replaces text with fake text of the same shape: scripts, case, lengths, punctuation and emoji.

Fakes in Latin, Greek and Cyrillic letters have no vowels, so that none is a word by chance.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

from backread.testing.recording.draws import Draws

__all__ = ["fake_characters", "fake_text", "leaks"]

LATIN = "bcdfghjklmnpqrstvwxz"
LATIN_MARKED = "çćčďđĝğĥķĺľņńňŕřśšťźžż"
GREEK = "βγδζθκλμνξπρσφχψ"
CYRILLIC = "бвгджзклмнпрстфхцчшщ"
EMOJI = "😀😃😄😁😆😊🙂😉😌😎🤩🤔😐😴🎈🎉🎁🎯🎨🎵🌱🌳🌵🌷🌼🍀🍉🍋🍎🍐🍓🥕🚀🚲🚌⚽🏀🎲🔔💡"

# The zero-width joiner and the variation selectors.
JOINERS = "\u200d\ufe0e\ufe0f"
LARGE_BLOCKS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x20000, 0x2A6DF))
REGIONAL_INDICATORS = (0x1F1E6, 0x1F1FF)
EMOJI_RANGES = ((0x2600, 0x27BF), (0x1F000, 0x1FAFF))
BLOCK = 128
WORD = re.compile(r"[^\W\d_]+")
MIN_LEAK = 4
"""A fake must not share a word or number of at least this length with the text."""
ATTEMPTS = 16


def fake_text(text: str, draws: Draws) -> str:
    """Fake text; words may become a letter longer or shorter, unless they are joined to digits."""
    parts = re.split(r"(\s+)", text)
    return _without_leaks(text, lambda: "".join(_token(part, draws) for part in parts))


def fake_characters(text: str, draws: Draws) -> str:
    """Fake text of the same length, for text that is not prose."""
    return _without_leaks(text, lambda: "".join(_character(character, draws) for character in text))


def leaks(fake: str, text: str) -> bool:
    """Whether a fake contains a word or number of the text, or equals it."""
    if fake == text:
        return any(_is_replaced(character) for character in text)
    folded = fake.casefold()
    words = re.findall(rf"\w{{{MIN_LEAK},}}", text.casefold())
    return any(word in folded for word in words)


def _without_leaks(text: str, make: Callable[[], str]) -> str:
    for _ in range(ATTEMPTS):
        fake = make()
        if not leaks(fake, text):
            return fake
    # A script with too few characters to choose from.
    return "".join("\ufffd" if _is_replaced(character) else character for character in text)


def _token(part: str, draws: Draws) -> str:
    """Fakes a part of the text between two runs of white space."""
    if not part or part.isspace():
        return part
    if any(character.isdecimal() for character in part):
        return "".join(_character(character, draws) for character in part)
    made: list[str] = []
    end = 0
    for word in WORD.finditer(part):
        made += (_character(character, draws) for character in part[end : word.start()])
        old = word[0]
        length = max(1, len(old) + draws.below(3) - 1) if len(old) > 1 else 1
        made += (_character(old[min(at, len(old) - 1)], draws) for at in range(length))
        end = word.end()
    made += (_character(character, draws) for character in part[end:])
    return "".join(made)


def _character(character: str, draws: Draws) -> str:
    replacements = _replacements(character)
    return draws.pick(replacements) if replacements else character


def _is_replaced(character: str) -> bool:
    return bool(_replacements(character))


@lru_cache(maxsize=8192)
def _replacements(character: str) -> str:
    """The replacements of a character; none for white space, punctuation, currencies, joiners."""
    code = ord(character)
    if character in JOINERS:
        return ""
    category = unicodedata.category(character)
    if REGIONAL_INDICATORS[0] <= code <= REGIONAL_INDICATORS[1]:
        return "".join(map(chr, range(REGIONAL_INDICATORS[0], REGIONAL_INDICATORS[1] + 1)))
    if category == "So":
        is_emoji = any(first <= code <= last for first, last in EMOJI_RANGES)
        return EMOJI if is_emoji else _block(code, category)
    if category[0] not in "LMN" and category != "Co":
        return ""
    if category == "Nd" and code < BLOCK:
        return "0123456789"
    letters = _consonants(code) if category in ("Lu", "Ll") else None
    if letters is None:
        return _block(code, category)
    return letters.upper() if category == "Lu" else letters


def _consonants(code: int) -> str | None:
    if code < BLOCK:
        return LATIN
    if code < 0x250 or 0x1E00 <= code <= 0x1EFF:
        return LATIN_MARKED
    if 0x370 <= code <= 0x3FF or 0x1F00 <= code <= 0x1FFF:
        return GREEK
    return CYRILLIC if 0x400 <= code <= 0x52F else None


@lru_cache(maxsize=512)
def _block(code: int, category: str) -> str:
    """The characters of the same category in the same block."""
    for first, last in LARGE_BLOCKS:
        if first <= code <= last:
            return "".join(map(chr, range(first, last + 1)))
    first = code - code % BLOCK
    near = map(chr, range(first, first + BLOCK))
    return "".join(each for each in near if unicodedata.category(each) == category)
