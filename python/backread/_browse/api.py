"""What the page's script can ask for, each answered by a JSON object."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from threading import Lock
from typing import Any, cast
from zoneinfo import ZoneInfo

from backread._browse.files import (
    MESSAGES,
    PEOPLE,
    Reply,
    download,
    file_reply,
    stored_files,
)
from backread._browse.lists import PageBubbles, heading, hits_html, people_html, report_page
from backread._client.arguments import LARGEST
from backread._display.words import ago, amount, moment
from backread.errors import MirrorError
from backread.mirror.figures.compute import Scope, compute_figures, select_figure
from backread.mirror.published.conversation import MESSAGE_ORDER, read_window
from backread.mirror.published.people import Only, People, PeopleQuery, PersonOrder
from backread.mirror.published.period import Period
from backread.mirror.published.search import (
    NEWEST_FIRST,
    messages_with,
    search_messages,
    search_words,
)
from backread.mirror.published.snapshot_reader import InterruptibleReader, OpenSnapshot
from backread.mirror.published.status import MirrorStatus, read_status
from backread.models import MEANINGS, Message

ITEMS = 50
MOST_PEOPLE = 5_000
WINDOW = 100
MOST_HITS = 1_000
MOST_OPERATORS = 500
MOST_DAYS = 100_000

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
        names = "state people operators window search message report download file"
        self.calls: dict[str, Callable[[Query], Answer | Reply]] = {
            name: self._twice(getattr(self, name)) for name in names.split()
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
        name = self._reader.folder.name
        return {"snapshot": manifest.sequence, "name": name, **_freshness(self._status[1])}

    def people(self, query: Query) -> Answer:
        """People: ``words`` and the other fields of a `PeopleQuery`, ``offset`` and ``count``."""
        asked, only = self._asked(query)
        offset, count = _part(query, MOST_PEOPLE)
        page = self._people.find(asked, offset=offset, limit=count, only=only)
        after = offset + len(page.people)
        said = f"{page.total:,} {'person' if page.total == 1 else 'people'}"
        if not page.total:
            said = "No one matches. Press Esc to clear the search, and check the filters."
            if asked == PeopleQuery(order=asked.order) and only is None:
                said = "This mirror has no users yet."
        elif only is not None:
            said += " in the report's list; Clear, below Filter and sort, shows all"
        return {
            "html": people_html(page.people, _zone(query)),
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
            limit=WINDOW,
        )
        messages = window.conversation.messages
        zone = query.get("timezone") or "UTC"
        return {
            "heading": heading(window.conversation.user, window.total, zone),
            "html": self._bubbles(query, user_id, messages).render(messages, start=window.start),
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
        [message] = window.conversation.messages
        return {"html": self._bubbles(query, user_id, [message]).whole(message)}

    def search(self, query: Query) -> Answer:
        """The newest messages with all ``words``: ``since, until, user, offset, count``."""
        words = query.get("words", "")
        if not words.strip():
            raise ValueError("Type words to search for, and press Enter.")
        offset, count = _part(query, MOST_HITS)
        period = Period(**_period(query))
        user = _number(query, "user")
        # Each reads all bodies on all cores, so that two at a time only delay each other.
        with self._searching:
            hits = search_messages(
                self._reader, words, period, user=user, limit=count + 1, offset=offset
            ).hits
            total = offset + len(hits)
            if len(hits) > count:
                snapshot = self._reader.snapshot()
                found = messages_with(snapshot, words, period, user)
                [(total,)] = snapshot.rows(f"SELECT count(*) {found}")
        names = self._people.names(list({hit.user_id for hit in hits}))
        after = offset + min(len(hits), count)
        said = f"{amount(total, 'message')} found"
        if len(hits) > count:
            said += f"; these are the newest {after:,}"
        elif not after:
            said = f"No message has all of these words: {words.strip()}"
        return {
            "html": hits_html(hits[:count], names, _zone(query)),
            "count": total,
            "next": after if len(hits) > count and after < MOST_HITS else None,
            "said": said,
        }

    def report(self, query: Query) -> Reply:
        """The report as a page, whose numbers lead to their lists."""
        figures = compute_figures(self._reader, _scope(query))
        return report_page(figures, self._reader.folder.name, query)

    def download(self, query: Query) -> Reply:
        """A conversation, the messages of a search, or people, as CSV or XLSX."""
        shape, words = query.get("format", ""), query.get("words", "")
        if query.get("tab") == "people":
            asked, only = self._asked(query)
            snapshot, source = self._people.source(asked, only)
            return download(snapshot, f"{PEOPLE} {source}", asked.sorting(), "people", shape)
        snapshot = self._reader.snapshot()
        if query.get("tab") == "messages":
            period = Period(**_period(query))
            found = messages_with(snapshot, words, period, _number(query, "user"))
            return download(snapshot, f"{MESSAGES} {found}", NEWEST_FIRST, "messages", shape)
        user_id = _needed(query, "user")
        source = f"FROM messages WHERE user_id = {user_id} AND deleted_at IS NULL"
        name = f"conversation-{user_id}"
        return download(snapshot, f"{MESSAGES} {source}", MESSAGE_ORDER, name, shape)

    def file(self, query: Query) -> Reply:
        """The stored file of a ``message`` of a ``user``."""
        snapshot = self._reader.snapshot()
        return file_reply(snapshot, _needed(query, "user"), _needed(query, "message"))

    def _asked(self, query: Query) -> tuple[PeopleQuery, Only | None]:
        """Which people, and the condition of a list of the report."""
        period, figure = _period(query), query.get("figure", "")

        def counted(snapshot: OpenSnapshot) -> str:
            return select_figure(figure, snapshot, _scope(query))

        asked = PeopleQuery(
            words=query.get("words", ""),
            **({} if figure else period),
            unread=cast("Any", query.get("unread") or None),
            last_sender=cast("Any", query.get("last") or None),
            operator=_number(query, "operator"),
            files=bool(query.get("files")),
            order=cast("PersonOrder", query.get("order") or "newest"),
        )
        return asked, counted if figure else None

    def _bubbles(self, query: Query, user_id: int, messages: Sequence[Message]) -> PageBubbles:
        words = query.get("words", "")
        found = search_words(words) if words.strip() else ()
        sent = [each.id for each in messages if each.file_url]
        files = stored_files(self._reader.snapshot(), user_id, sent)
        return PageBubbles(user_id, found, files, _zone(query))

    def _twice(self, call: Callable[[Query], Answer | Reply]) -> Callable[[Query], Answer | Reply]:
        def answer(query: Query) -> Answer | Reply:
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


def _zone(query: Query) -> ZoneInfo:
    name = query.get("timezone") or "UTC"
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise ValueError(f"time zone {name[:60]!r} is unknown; one is Europe/Berlin") from None


def _period(query: Query) -> dict[str, datetime | None]:
    """The last ``days``, of which today is one, or from the day ``since`` to the day ``until``."""
    zone = _zone(query)
    if days := _number(query, "days"):
        today = datetime.now(zone).replace(hour=0, minute=0, second=0, microsecond=0)
        return {"since": today - timedelta(days=min(days, MOST_DAYS) - 1), "until": None}
    return {"since": _day(query, "since", zone), "until": _day(query, "until", zone, later=1)}


def _scope(query: Query) -> Scope:
    return Scope(query.get("timezone"), query.get("hours"), **_period(query))


def _day(query: Query, name: str, zone: ZoneInfo, *, later: int = 0) -> datetime | None:
    """The beginning of a day, or of the one after."""
    text = query.get(name)
    if not text:
        return None
    try:
        day = date.fromisoformat(text) + timedelta(days=later)
    except (ValueError, OverflowError):
        raise ValueError(f"{name} must be a date such as 2024-03-05, not {text[:40]!r}") from None
    return datetime(day.year, day.month, day.day, tzinfo=zone)


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
