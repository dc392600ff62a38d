"""`Mirror.search`: messages that contain words, by a scan over the snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, overload
from unicodedata import category, normalize

from backread._client.arguments import LARGEST, whole
from backread._display.words import amount, full_name, line, minute
from backread.mirror.published.period import Period
from backread.mirror.published.snapshot_reader import OpenSnapshot, SnapshotReader
from backread.mirror.store.engine import from_microseconds, quoted

WORD = re.compile(r'(?<!\S)"([^"]+)"(?!\S)|(\S+)')
"""A quoted phrase, or what is between blanks."""

LONGEST_WORDS = 1_000
"""The length limit of a search: DuckDB plans conditions in quadratic time."""

SNIPPET = 160
"""The number of characters of a snippet."""

BEFORE = 50
"""The number of characters before its first match."""

LONG_WORD = 20
"""How many characters a snippet drops at an end rather than cut a word."""

NEWEST_FIRST = "created_at DESC NULLS LAST, user_id, id"
SENDER = ("sender_forename", "sender_surname", "sender_name")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that contains all words.

    ``user_id``, ``id``, ``created_at`` (UTC), ``sender_type`` and ``body`` are those of the
    message; ``sender_name`` is the sender's full name, ``None`` if unknown. ``snippet`` is the part
    of ``body`` around the first match, with ``…`` where it is cut. ``matches`` are the places of
    the words in the snippet, as pairs of start and end.
    """

    user_id: int
    id: int
    created_at: datetime | None
    sender_type: str | None
    sender_name: str | None
    body: str
    snippet: str
    matches: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        moment = "????-??-?? ??:??" if self.created_at is None else minute(self.created_at)
        name = line(self.sender_name or "") or line(self.sender_type or "") or "unknown"
        return f"{moment}  user {self.user_id}, message {self.id}  {name}: {line(self.snippet)}"


@dataclass(frozen=True, slots=True, repr=False)
class SearchResults(Sequence[SearchHit]):
    """The messages that a search found, newest first; a sequence of `SearchHit`.

    ``words`` is what was searched for, ``hits`` are the messages.

    ``str()`` has one line per hit, times in UTC. Control characters in it are shown as pictures, so
    text from strangers cannot affect a terminal; in a notebook it renders as a table.
    """

    words: str
    hits: tuple[SearchHit, ...]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[SearchHit]:
        return iter(self.hits)

    @overload
    def __getitem__(self, position: int) -> SearchHit: ...
    @overload
    def __getitem__(self, position: slice) -> SearchResults: ...
    def __getitem__(self, position: int | slice) -> SearchHit | SearchResults:
        if isinstance(position, slice):
            return SearchResults(self.words, self.hits[position])
        return self.hits[position]

    def __str__(self) -> str:
        return "\n".join(map(str, self.hits))

    def __repr__(self) -> str:
        return f"<SearchResults for {self.words!r}, {amount(len(self), 'hit')}>"

    def _repr_html_(self) -> str:
        from backread._display.html import LONGEST_CELL, grid, marked, quiet, safe, shortened

        records = [
            {
                "created_at": hit.created_at,
                "user_id": hit.user_id,
                "id": hit.id,
                "sender": hit.sender_name or hit.sender_type,
                "body": marked(hit.snippet, hit.matches),
            }
            for hit in self.hits
        ]
        words = safe(shortened(self.words, LONGEST_CELL))
        caption = f"{amount(len(self), 'message')} with {words} {quiet('times are UTC')}"
        columns = ("created_at", "user_id", "id", "sender", "body")
        return grid(caption, "messages found", columns, records)


def search_messages(
    reader: SnapshotReader,
    words: str,
    period: Period,
    *,
    user: int | None,
    limit: int,
    offset: int = 0,
) -> SearchResults:
    """The newest messages with all words, after the first ``offset``; see `Mirror.search`."""
    wanted = search_words(words)
    limit = whole("limit", limit, 1, LARGEST, then="")
    opened = reader.snapshot()
    found = messages_with(opened, words, period, user)
    rows = opened.rows(
        f"SELECT user_id, id, epoch_us(created_at), sender_type, body, {', '.join(SENDER)} "
        f"{found} ORDER BY {NEWEST_FIRST} LIMIT {limit} OFFSET {offset}"
    )
    return SearchResults(words, tuple(_hit(row, wanted) for row in rows))


def messages_with(opened: OpenSnapshot, words: str, period: Period, user: int | None) -> str:
    """The SQL from FROM on for the messages with all words; see `Mirror.search`."""
    wanted = search_words(words)
    conditions = ["deleted_at IS NULL", *period.conditions("created_at")]
    source = "messages"
    if user is not None:
        user = whole("user", user, 0, LARGEST, then="")
        source = f"({opened.of_user(user)['messages']})"
        conditions.append(f"user_id = {user}")
    return (
        f"FROM (SELECT *, {plain_text('body')} AS plain FROM {source} "
        f"WHERE {' AND '.join(conditions)}) WHERE {contains_words(wanted)}"
    )


def search_words(words: str) -> list[str]:
    """The words and phrases of a search, plain; ValueError if there are none or too many."""
    if not isinstance(words, str):
        raise TypeError(f"words must be text, not {type(words).__name__}")
    if len(words) > LONGEST_WORDS:
        raise ValueError(
            f"words must have at most {LONGEST_WORDS:,} characters, not {len(words):,}"
        )
    if any(category(each) == "Cs" for each in words):
        raise ValueError("words must be valid Unicode text, without surrogates")
    quoted_or_not = WORD.findall(normalize("NFC", words))
    found = ["".join(map(_plain, phrase or word)) for phrase, word in quoted_or_not]
    found = [each for each in found if each.strip()]
    if not found:
        raise ValueError("words must have at least one word to look for")
    return list(dict.fromkeys(found))


def plain_text(text: str) -> str:
    """The SQL expression for a text without case and accents; ``text`` is SQL."""
    # strip_accents leaves out what is after a NUL.
    return f"strip_accents(lower(replace({text}, chr(0), ' ')))"


def contains_words(words: Sequence[str]) -> str:
    """The SQL condition that the column ``plain`` has all words from `search_words`."""
    first, *others = map(quoted, sorted(words, key=len, reverse=True))
    condition = f"contains(plain, {first})"
    if not others:
        return condition
    # As one more condition, because DuckDB plans hundreds in seconds.
    listed = f"list_transform([{', '.join(others)}], lambda word: contains(plain, word))"
    return f"{condition} AND list_bool_and({listed})"


@lru_cache(10_000)
def _plain(character: str) -> str:
    """The character without case and marks, as in `plain_text`."""
    if character == "\0":
        return " "
    decomposed = normalize("NFD", character.lower())
    return normalize("NFC", "".join(each for each in decomposed if category(each)[0] != "M"))


def _hit(row: Sequence[Any], words: Sequence[str]) -> SearchHit:
    user_id, message_id, created_at, sender_type, body, *names = row
    snippet, matches = _snippet(body, words)
    return SearchHit(
        user_id=user_id,
        id=message_id,
        created_at=from_microseconds(created_at),
        sender_type=sender_type,
        sender_name=full_name(*names),
        body=body,
        snippet=snippet,
        matches=matches,
    )


def _snippet(body: str, words: Sequence[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The part of the body around its first match, and the matches in it."""
    places = places_of(body, words)
    start = max(places[0][0] - BEFORE, 0) if places else 0
    start = max(min(start, len(body) - SNIPPET), 0)
    end = min(start + SNIPPET, len(body))
    # Whole words, where blanks separate them; the first match always stays.
    first, last = places[0] if places else (start, start)
    if start:
        start = body.find(" ", start - 1, min(start + LONG_WORD, first)) + 1 or start
    if end < len(body):
        blank = body.rfind(" ", max(end - LONG_WORD, last), end + 1)
        end = end if blank < 0 else blank
    before, after = "…" if start else "", "…" if end < len(body) else ""
    shift = len(before) - start
    inside = tuple(
        (max(low, start) + shift, min(high, end) + shift)
        for low, high in places
        if low < end and high > start
    )
    return f"{before}{body[start:end]}{after}", inside


def places_of(body: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Where words from `search_words` are in the body, in order and without overlaps.

    Some may be missing, because only single characters are compared: in decomposed Hangul.
    """
    parts = [_plain(character) for character in body]
    text = "".join(parts)
    # For each character of the text its place in the body. A letter goes on to the next one, so
    # that it includes its marks.
    origins = [place for place, part in enumerate(parts) for _ in part] + [len(body)]
    found = [
        (origins[match.start()], origins[match.end()])
        for word in words
        for match in re.finditer(re.escape(word), text)
    ]
    merged: list[tuple[int, int]] = []
    for low, high in sorted(found):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return merged
