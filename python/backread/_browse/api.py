"""What the page's script can ask for, each answered by a JSON object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, cast

from backread._browse.freshness import Freshness, read_freshness
from backread._browse.lists import PageBubbles, heading, hits_html, people_html
from backread._client.arguments import LARGEST
from backread.errors import MirrorError
from backread.mirror.published.conversation import read_window
from backread.mirror.published.interruptible_reader import InterruptibleReader
from backread.mirror.published.people import People, PeopleQuery, PersonOrder
from backread.mirror.published.search import search_messages, search_words

__all__ = ["Api", "Query"]

PEOPLE = 50
MOST_PEOPLE = 5_000
HITS = 50
MESSAGES = 100
MOST_HITS = 1_000
MOST_OPERATORS = 500

Answer = dict[str, Any]


class Query(dict[str, str]):
    """The parameters of a request; ``is_given_up`` says whether the browser went away."""

    def __init__(self, parameters: Mapping[str, str], is_given_up: Callable[[], bool]) -> None:
        super().__init__(parameters)
        self.is_given_up = is_given_up


class Api:
    """The requests by name; thread-safe.

    They raise ValueError for parameters that make no sense, and `MirrorError` for what is not in
    the mirror or cannot be read.
    """

    def __init__(self, reader: InterruptibleReader) -> None:
        self._reader = reader
        self._people = People(reader)
        self._searching = Lock()
        self._freshness: tuple[object, Freshness] | None = None
        calls = (self.state, self.people, self.operators, self.window, self.search, self.message)
        self.calls: dict[str, Callable[[Query], Answer]] = {
            each.__name__: self._twice(each) for each in calls
        }

    def state(self, query: Query) -> Answer:
        """Which snapshot is the newest, its age and certificate."""
        manifest = self._reader.snapshot().manifest
        kept = self._freshness
        if kept is None or kept[0] != manifest:
            kept = manifest, read_freshness(self._reader)
            self._freshness = kept
        fresh = kept[1]
        return {
            "snapshot": manifest.sequence,
            "age": fresh.age(),
            "kind": fresh.kind,
            "proof": fresh.proof,
            "details": list(fresh.details),
        }

    def people(self, query: Query) -> Answer:
        """People: ``words`` and the other fields of a `PeopleQuery`, ``offset`` and ``count``."""
        asked = PeopleQuery(
            words=query.get("words", ""),
            since=query.get("since") or None,
            until=query.get("until") or None,
            unread=cast("Any", query.get("unread") or None),
            last_sender=cast("Any", query.get("last") or None),
            operator=_number(query, "operator"),
            files=bool(query.get("files")),
            order=cast("PersonOrder", query.get("order") or "newest"),
        )
        offset = _number(query, "offset") or 0
        count = min(_number(query, "count") or PEOPLE, MOST_PEOPLE)
        page = self._people.find(asked, offset=offset, limit=count)
        after = offset + len(page.people)
        return {
            "html": people_html(page.people),
            "total": page.total,
            "next": after if after < page.total else None,
        }

    def operators(self, query: Query) -> Answer:
        """The operators, those with the most messages first."""
        found = self._people.operators()[:MOST_OPERATORS]
        return {
            "operators": [
                {"id": str(each.id), "name": each.name or f"operator {each.id}"} for each in found
            ]
        }

    def window(self, query: Query) -> Answer:
        """Messages of ``user``: ``around``, ``before`` or ``after`` one, or ``at`` an end."""
        user_id = _needed(query, "user")
        window = read_window(
            self._reader,
            user_id,
            at="first" if query.get("at") == "first" else "last",
            around=_number(query, "around"),
            before=_number(query, "before"),
            after=_number(query, "after"),
            limit=MESSAGES,
        )
        messages = window.conversation.messages
        return {
            "heading": heading(window.conversation.user, window.total),
            "html": self._bubbles(query, user_id).render(messages, start=window.start),
            # As text, for JavaScript has no integers beyond 2**53.
            "first": str(messages[0].id) if messages else None,
            "last": str(messages[-1].id) if messages else None,
            "start": window.start,
            "end": window.end,
            "total": window.total,
        }

    def message(self, query: Query) -> Answer:
        """The whole body of a ``message`` of a ``user``."""
        user_id = _needed(query, "user")
        window = read_window(self._reader, user_id, around=_needed(query, "message"), limit=1)
        return {"html": self._bubbles(query, user_id).whole(window.conversation.messages[0])}

    def search(self, query: Query) -> Answer:
        """The newest messages with all ``words``: ``since, until, user``, ``count`` of them."""
        words = query.get("words", "")
        if not words.strip():
            raise ValueError("Type a word to search for.")
        count = min(_number(query, "count") or HITS, MOST_HITS)
        # Each reads all bodies on all cores, so that two at a time only delay each other.
        with self._searching:
            if query.is_given_up():
                # While it waited for others, which would delay the next one.
                raise ValueError("The search was given up.")
            hits = search_messages(
                self._reader,
                words,
                since=query.get("since") or None,
                until=query.get("until") or None,
                user=_number(query, "user"),
                limit=count + 1,
            ).hits
        names = self._people.names(list({hit.user_id for hit in hits}))
        more = len(hits) > count
        return {
            "html": hits_html(hits[:count], names),
            "count": min(len(hits), count),
            "next": min(count + HITS, MOST_HITS) if more and count < MOST_HITS else None,
            "more": more,
        }

    def _bubbles(self, query: Query, user_id: int) -> PageBubbles:
        words = query.get("words", "")
        return PageBubbles(user_id, search_words(words) if words.strip() else ())

    def _twice(self, call: Callable[[Query], Answer]) -> Callable[[Query], Answer]:
        def answer(query: Query) -> Answer:
            with self._reader.call(object()):
                try:
                    return call(query)
                except MirrorError:
                    # A publication may have removed the files that were being read.
                    return call(query)

        return answer


def _needed(query: Query, name: str) -> int:
    number = _number(query, name)
    if number is None:
        raise ValueError(f"{name} is missing")
    return number


def _number(query: Query, name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= LARGEST):
        raise ValueError(f"{name} must be a whole number, not {text[:40]!r}")
    return int(text)
