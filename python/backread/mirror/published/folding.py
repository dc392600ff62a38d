"""Text without its case and accents, and the SQL condition that finds it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from unicodedata import category, decomposition, normalize

from backread.mirror.store.engine import quoted

__all__ = ["fold", "folded_with_origins", "may_contain"]

LONGEST_PIECE = 24
"""The number of folded characters of a word that the condition looks for."""

MOST_WORDS = 8
"""The number of words that the condition looks for, the longest ones."""

# All characters beyond these fold to themselves or, as marks, to nothing.
FOLDING = (range(0x20000), range(0x2F800, 0x2FA20))
HANGUL = range(0xAC00, 0xD7A4)
SURROGATES = range(0xD800, 0xE000)
MARKS = r"\pM*"


def fold(text: str) -> str:
    """The text without case, accents and other nonspacing marks, and in compatible characters.

    Unicode's NFKD without category Mn, then full case folding: ``É`` is ``e``, ``ß`` is ``ss``.
    """
    if text.isascii():
        return text.lower()
    return "".join(
        character for character in normalize("NFKD", text) if category(character) != "Mn"
    ).casefold()


def folded_with_origins(text: str) -> tuple[str, Sequence[int]]:
    """The folded text, and for each of its characters the index of its origin in ``text``."""
    if text.isascii():
        return text.lower(), range(len(text))
    parts = [fold(character) for character in text]
    origins = [index for index, part in enumerate(parts) for _ in part]
    return "".join(parts), origins


def may_contain(column: str, folded_words: Iterable[str]) -> str:
    """The SQL condition that holds for all texts which contain these words, and few others.

    Folding each text in SQL would take ten times as long as this search for its variants.
    """
    longest = sorted(set(folded_words), key=len, reverse=True)[:MOST_WORDS]
    return " AND ".join(_condition(column, word[:LONGEST_PIECE]) for word in longest)


def _condition(column: str, piece: str) -> str:
    # Texts that are only ASCII have no variants but case, which DuckDB finds twice as fast.
    literal = "".join(map(_escaped, piece))
    plain = f"regexp_matches({column}, {quoted(literal)}, 'i')" if piece.isascii() else "false"
    return (
        f"CASE WHEN strlen({column}) = length({column}) THEN {plain} "
        f"ELSE regexp_matches({column}, {quoted(_pattern(piece))}) END"
    )


def _pattern(piece: str) -> str:
    """The regular expression for texts that contain the piece when folded.

    A character such as ``ß`` stands for several folded ones, so it may be at the place of each of
    them, and the others may be missing.
    """
    alone, parts_of = _variants()
    pattern = ""
    for index, folded in enumerate(piece):
        characters = set(alone.get(folded, ()))
        if not _is_folded(folded):
            characters.add(ord(folded))
        skipped = False
        for code, expansion, offset in parts_of.get(folded, ()):
            start = index - offset
            covered = range(max(start, 0), min(start + len(expansion), len(piece)))
            if all(piece[each] == expansion[each - start] for each in covered):
                characters.add(code)
                skipped = skipped or covered.start < index
        either = _character_class(characters)
        if index == 0:
            pattern = either
        else:
            pattern += f"(?:{MARKS}{either})?" if skipped else f"{MARKS}{either}"
    return pattern


@cache
def _variants() -> tuple[dict[str, list[int]], dict[str, list[tuple[int, str, int]]]]:
    """What folds to each folded character: alone, and as a part of several, with its offset."""
    alone: dict[str, list[int]] = {}
    parts_of: dict[str, list[tuple[int, str, int]]] = {}
    for code in chain(*FOLDING):
        character = chr(code)
        if not _is_folded(character):
            continue
        folded = fold(character)
        if len(folded) == 1:
            alone.setdefault(folded, []).append(code)
        else:
            for offset, each in enumerate(folded):
                parts_of.setdefault(each, []).append((code, folded, offset))
    return alone, parts_of


def _is_folded(character: str) -> bool:
    """Whether the character folds to something else."""
    if ord(character) in SURROGATES:
        return False
    return (
        ord(character) in HANGUL
        or character.casefold() != character
        or (decomposition(character) != "" and fold(character) != character)
    )


def _character_class(codes: Iterable[int]) -> str:
    ranges: list[tuple[int, int]] = []
    for code in sorted(codes):
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], code
        else:
            ranges.append((code, code))
    return "[" + "".join(rf"\x{{{low:x}}}-\x{{{high:x}}}" for low, high in ranges) + "]"


def _escaped(character: str) -> str:
    return character if character.isalnum() else rf"\x{{{ord(character):x}}}"
