"""Text that keeps the shape of another: its scripts, cases, lengths, signs, lines and emoji.

Letters that carry the sound of Latin, Greek and Cyrillic words are left out of the fakes, so that
none of them is a word by chance.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

from backread.testing.recording.draws import Draws

__all__ = ["fake_signs", "fake_text", "gives_away"]

LATIN = "bcdfghjklmnpqrstvwxz"
LATIN_MARKED = "çćčďđĝğĥķĺľņńňŕřśšťźžż"
GREEK = "βγδζθκλμνξπρσφχψ"
CYRILLIC = "бвгджзклмнпрстфхцчшщ"
EMOJI = "😀😃😄😁😆😊🙂😉😌😎🤩🤔😐😴🎈🎉🎁🎯🎨🎵🌱🌳🌵🌷🌼🍀🍉🍋🍎🍐🍓🥕🚀🚲🚌⚽🏀🎲🔔💡"

# What holds emoji together, and how they are drawn.
JOINERS = "\u200d\ufe0e\ufe0f"
LARGE_BLOCKS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x20000, 0x2A6DF))
REGIONAL = (0x1F1E6, 0x1F1FF)
PICTURES = ((0x2600, 0x27BF), (0x1F000, 0x1FAFF))
BLOCK = 128
# A word is letters with their marks; what stands between two words is not drawn, but for digits.
WORD = re.compile(r"[^\W\d_]+")
TELLING = 4
"""So many letters or digits in a row may tell something."""
ATTEMPTS = 16


def fake_text(text: str, draws: Draws) -> str:
    """A text of the same shape; words of letters alone get a letter more or less, or none."""
    return _unlike(text, lambda: "".join(_token(part, draws) for part in re.split(r"(\s+)", text)))


def fake_signs(text: str, draws: Draws) -> str:
    """The same, sign by sign: as long as the text, for what is no prose."""
    return _unlike(text, lambda: "".join(_sign(sign, draws) for sign in text))


def gives_away(fake: str, text: str) -> bool:
    """Whether a fake holds a word or number of the text, or is the text."""
    if fake == text:
        return any(_is_drawn(sign) for sign in text)
    folded = fake.casefold()
    words = re.findall(rf"\w{{{TELLING},}}", text.casefold())
    return any(word in folded for word in words)


def _unlike(text: str, make: Callable[[], str]) -> str:
    for _ in range(ATTEMPTS):
        fake = make()
        if not gives_away(fake, text):
            return fake
    # A script of which there is one sign.
    return "".join("\ufffd" if _is_drawn(sign) else sign for sign in text)


def _token(part: str, draws: Draws) -> str:
    """What stands between two blanks."""
    if not part or part.isspace():
        return part
    if any(sign.isdecimal() for sign in part):
        return "".join(_sign(sign, draws) for sign in part)
    made: list[str] = []
    end = 0
    for word in WORD.finditer(part):
        made += (_sign(sign, draws) for sign in part[end : word.start()])
        signs = word[0]
        length = max(1, len(signs) + draws.below(3) - 1) if len(signs) > 1 else 1
        made += (_sign(signs[min(at, len(signs) - 1)], draws) for at in range(length))
        end = word.end()
    made += (_sign(sign, draws) for sign in part[end:])
    return "".join(made)


def _sign(sign: str, draws: Draws) -> str:
    letters = _letters(sign)
    return sign if not letters else draws.pick(letters)


def _is_drawn(sign: str) -> bool:
    return bool(_letters(sign))


@lru_cache(maxsize=8192)
def _letters(sign: str) -> str:
    """What a sign may become; empty where it stays: blanks, punctuation, currencies, joiners."""
    code = ord(sign)
    if sign in JOINERS:
        return ""
    category = unicodedata.category(sign)
    if REGIONAL[0] <= code <= REGIONAL[1]:
        return "".join(map(chr, range(REGIONAL[0], REGIONAL[1] + 1)))
    if category == "So":
        pictured = any(first <= code <= last for first, last in PICTURES)
        return EMOJI if pictured else _block(code, category)
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
    """The signs of the same kind that stand near one."""
    for first, last in LARGE_BLOCKS:
        if first <= code <= last:
            return "".join(map(chr, range(first, last + 1)))
    first = code - code % BLOCK
    near = map(chr, range(first, first + BLOCK))
    return "".join(each for each in near if unicodedata.category(each) == category)
