"""What the page's script can ask for, each answered by a JSON object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from threading import Lock
from typing import Any, cast

from backread._browse.lists import PageBubbles, heading, hits_html, people_html
from backread._client.arguments import LARGEST
from backread._display.words import ago, amount, moment
from backread.errors import MirrorError
from backread.mirror.published.conversation import read_window
from backread.mirror.published.interruptible_reader import InterruptibleReader
from backread.mirror.published.people import People, PeopleQuery, PersonOrder
from backread.mirror.published.search import search_messages, search_words
from backread.mirror.published.status import MirrorStatus, read_status
from backread.models import MEANINGS

__all__ = ["Api"]

ITEMS = 50
MOST_PEOPLE = 5_000
MESSAGES = 100
MOST_HITS = 1_000
MOST_OPERATORS = 500

Query = Mapping[str, str]
Answer = dict[str, Any]


class Api:
    """The requests by name; thread-safe.

    They raise ValueError for parameters that make no sense, and `MirrorError` for what is not in
    the mirror or cannot be read.
    """

    def __init__(self, reader: InterruptibleReader) -> None:
        self._reader = reader
        self._people = People(reader)
        self._searching = Lock()
        self._status: tuple[object, MirrorStatus | None] | None = None
        calls = (self.state, self.people, self.operators, self.window, self.search, self.message)
        self.calls: dict[str, Callable[[Query], Answer]] = {
            each.__name__: self._twice(each) for each in calls
        }

    def state(self, query: Query) -> Answer:
        """Which snapshot is the newest, its age and certificate."""
        manifest = self._reader.snapshot().manifest
        if self._status is None or self._status[0] != manifest:
            status = None
            # No run over all users has read anything yet.
            with suppress(MirrorError):
                status = read_status(self._reader, None)
            self._status = manifest, status
        return {"snapshot": manifest.sequence, **_freshness(self._status[1])}

    def people(self, query: Query) -> Answer:
        """People: ``words`` and the other fields of a `PeopleQuery`, ``offset`` and ``count``."""
        asked = PeopleQuery(
            words=query.get("words", ""),
            since=query.get("since") or None,
            until=_end(query),
            unread=cast("Any", query.get("unread") or None),
            last_sender=cast("Any", query.get("last") or None),
            operator=_number(query, "operator"),
            files=bool(query.get("files")),
            order=cast("PersonOrder", query.get("order") or "newest"),
        )
        offset, count = _part(query, MOST_PEOPLE)
        page = self._people.find(asked, offset=offset, limit=count)
        after = offset + len(page.people)
        said = f"{page.total:,} {'person' if page.total == 1 else 'people'}"
        if not page.total:
            said = "No one matches. Press Esc to clear the search, and check the filters."
            if asked == PeopleQuery(order=asked.order):
                said = "This mirror has no users yet."
        return {
            "html": people_html(page.people),
            "total": page.total,
            "next": after if after < page.total else None,
            "said": said,
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
        """The newest messages with all ``words``: ``since, until, user, offset, count``."""
        words = query.get("words", "")
        if not words.strip():
            raise ValueError("Type words to search for, and press Enter.")
        offset, count = _part(query, MOST_HITS)
        # Each reads all bodies on all cores, so that two at a time only delay each other.
        with self._searching:
            hits = search_messages(
                self._reader,
                words,
                since=query.get("since") or None,
                until=_end(query),
                user=_number(query, "user"),
                limit=count + 1,
                offset=offset,
            ).hits
        names = self._people.names(list({hit.user_id for hit in hits}))
        after = offset + min(len(hits), count)
        said = f"{amount(after, 'message')} found"
        if len(hits) > count:
            said = f"The newest {after:,} messages found"
        elif not after:
            said = f"No message has all of these words: {words.strip()}"
        return {
            "html": hits_html(hits[:count], names),
            "count": after,
            "next": after if len(hits) > count and after < MOST_HITS else None,
            "said": said,
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


def _freshness(status: MirrorStatus | None) -> Answer:
    """How old the data is, and what is proved of it, in words; the age is that of now."""
    if status is None:
        nothing = {"age": "Never synced to an end", "proof": "list of users not proved"}
        return {**nothing, "kind": "unproved", "details": []}
    held = {status.users_certificate, *status.lists}
    unproved = sum(status.lists.get(name, 0) for name in ("uncertified", "never read"))
    kind, proof = "unproved", "list of users not proved"
    if unproved:
        proof = f"{unproved:,} of {amount(sum(status.lists.values()), 'message list')} not proved"
    elif status.users_certificate != "uncertified":
        kind, proof = "proved", "every list proved complete"
    part = "in part " if status.state == "partial" else ""
    details = [
        f"The last sync that read something ended {moment(status.as_of.replace(microsecond=0))}."
    ]
    details += ["; ".join(filter(None, (each.text, each.advice))) for each in status.lines]
    details += [f"{name.capitalize()}: {MEANINGS[name]}." for name in MEANINGS if name in held]
    age = (datetime.now(UTC) - status.as_of).total_seconds()
    return {"age": f"Synced {part}{ago(age)}", "kind": kind, "proof": proof, "details": details}


def _end(query: Query) -> str | None:
    """When the period ends whose last day is ``until``."""
    until = query.get("until") or None
    with suppress(ValueError, OverflowError):
        return None if until is None else str(date.fromisoformat(until) + timedelta(days=1))
    return until


def _part(query: Query, most: int) -> tuple[int, int]:
    """The ``offset`` and the ``count`` of the items that the page asks for."""
    offset = _number(query, "offset") or 0
    return offset, min(_number(query, "count") or ITEMS, most)


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
