"""`People`: finds people of a mirror by words and by the figures of their conversations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from backread._client.arguments import LARGEST, whole
from backread.mirror.published.people_tables import (
    COUNTED,
    FOLDED,
    KNOWN,
    LAST_BODIES,
    OPERATORS,
    PeopleTables,
)
from backread.mirror.published.period import Moment, moment_of
from backread.mirror.published.search import folded_words
from backread.mirror.store.engine import from_microseconds, quoted, timestamp

if TYPE_CHECKING:
    from backread.mirror.published.snapshot_reader import SnapshotReader

__all__ = ["Operator", "People", "PeoplePage", "PeopleQuery", "Person", "PersonOrder"]

PersonOrder = Literal["newest", "oldest", "longest", "unread", "name", "id"]
"""Newest or oldest last message first, most messages first, most messages that no operator has
read first, by name, by id."""

Side = Literal["user", "operator"]

ORDERS: dict[str, str] = {
    "newest": "last_message_at DESC NULLS LAST",
    "oldest": "last_message_at NULLS LAST",
    "longest": "messages DESC",
    "unread": "unread_by_operator DESC, last_message_at DESC NULLS LAST",
    "name": "nullif(lower(strip_accents(trim(name))), '') NULLS LAST",
    "id": "user_id",
}

NUMBERS = (
    "user_id", "messages", "user_messages", "operator_messages", "auto_invitations", "files",
    "unread_by_operator", "unread_by_user",
)  # fmt: skip
TEXTS = ("name", "email", "reference", "last_sender_type")
TIMES = ("first_message_at", "last_message_at")


@dataclass(frozen=True, slots=True)
class PeopleQuery:
    """Which people to find, and in which order. All conditions must hold.

    - ``words``: each must occur in the name, the e-mail address or the reference; case and accents
      do not count, and ``"a phrase"`` in double quotes is one word. At most 1,000 characters. A
      number also finds the user with this id, first.
    - ``since``, ``until``: only people with a message from ``since`` on and before ``until``: a
      date, a datetime or ISO 8601 text, in UTC unless it names another zone; a date is its
      beginning.
    - ``unread``: ``"operator"`` for people whose messages no operator has read, ``"user"`` for
      people who have not read an operator's message.
    - ``last_sender``: who wrote the last message.
    - ``operator``: only people to whom this operator wrote, by the operator's id.
    - ``files``: only people with an attachment in their conversation.
    """

    words: str = ""
    since: Moment | None = None
    until: Moment | None = None
    unread: Side | None = None
    last_sender: Side | None = None
    operator: int | None = None
    files: bool = False
    order: PersonOrder = "newest"

    def __post_init__(self) -> None:
        for name, allowed in (("unread", Side), ("last_sender", Side), ("order", PersonOrder)):
            value = getattr(self, name)
            if value not in get_args(allowed) and not (value is None and name != "order"):
                *others, last = map(repr, get_args(allowed))
                raise ValueError(f"{name} must be {', '.join(others)} or {last}, not {value!r}")
        if self.operator is not None:
            whole("operator", self.operator, 0, LARGEST, then="")
        since, until = self._moment("since"), self._moment("until")
        if since and until and since >= until:
            raise ValueError("since must be earlier than until")

    def tables(self) -> set[str]:
        """The tables that it needs besides names and times of last messages."""
        figures = (
            self.unread
            or self.last_sender
            or self.operator is not None
            or self.files
            or self.order == "unread"
        )
        return ({COUNTED} if figures else set()) | ({FOLDED} if self.words.strip() else set())

    def conditions(self) -> list[str]:
        """The SQL conditions."""
        found = []
        if self.words.strip():
            found.append(_words_condition(self.words))
        period = [
            f"created_at {sign} {timestamp(moment)}"
            for sign, moment in ((">=", self._moment("since")), ("<", self._moment("until")))
            if moment is not None
        ]
        if period:
            wrote = ["deleted_at IS NULL", *period]
            found.append(f"user_id IN (SELECT user_id FROM messages WHERE {' AND '.join(wrote)})")
        if self.unread:
            found.append(f"unread_by_{self.unread} > 0")
        if self.last_sender:
            found.append(f"last_sender_type = '{self.last_sender}'")
        if self.operator is not None:
            found.append(f"list_contains(operator_ids, {self.operator})")
        if self.files:
            found.append("files > 0")
        return found

    def sorting(self) -> str:
        """The SQL of the order, which is total."""
        number = _number(self.words)
        first = "" if number is None else f"user_id <> {number}, "
        return f"{first}{ORDERS[self.order]}, user_id"

    def _moment(self, name: Literal["since", "until"]) -> datetime | None:
        value = getattr(self, name)
        return None if value is None else moment_of(name, value)


@dataclass(frozen=True, slots=True)
class Person:
    """A user with the figures of the conversation, which are those of the view ``conversations``.

    ``last_body`` is the beginning of the last message's body. It and the figures may be None
    until they are made, see `People.find`.
    """

    user_id: int
    messages: int
    user_messages: int | None
    operator_messages: int | None
    auto_invitations: int | None
    files: int | None
    unread_by_operator: int | None
    unread_by_user: int | None
    name: str | None
    email: str | None
    reference: str | None
    last_sender_type: str | None
    first_message_at: datetime | None
    last_message_at: datetime | None
    last_body: str | None


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """Some of the people that a query finds.

    ``total`` is the number of all of them, ``offset`` the number of those before this page.
    ``counted`` is false while the figures are still being counted.
    """

    people: tuple[Person, ...]
    offset: int
    total: int
    counted: bool


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator, by what the newest message says; automatic invitations do not count."""

    id: int
    name: str
    messages: int
    conversations: int


class People:
    """The people of a mirror's newest snapshot.

    The figures of all conversations are counted once per snapshot, in a thread, and kept in memory
    (about 300 bytes per user), so that finding people takes milliseconds. With 5,000,000 messages,
    names and times of last messages are there after less than a second, all figures after some
    seconds. While those of a new snapshot are counted, the earlier ones are used as long as their
    files are there.

    Thread-safe. Methods raise `MirrorError` if nothing is published, or the snapshot cannot be
    read.

    Args:
        reader: Opens the mirror's snapshots.

    Example:
        >>> people = People(SnapshotReader(Path("chats")))
        >>> for person in people.find(PeopleQuery("example.com", unread="operator")).people:
        ...     print(person.user_id, person.name, person.unread_by_operator)
    """

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader
        self._tables = PeopleTables(reader)

    def find(
        self,
        query: PeopleQuery | None = None,
        *,
        offset: int = 0,
        limit: int = 50,
        wait: bool = True,
        newest: bool = False,
    ) -> PeoplePage:
        """The people that a query finds.

        Args:
            query: Which people; None for all, newest last message first.
            offset: How many of them to skip.
            limit: The most to return.
            wait: Whether to wait for the figures and last messages. Without, they may be None,
                unless the query needs them.
            newest: Whether to wait for the newest snapshot's people rather than return earlier
                ones.
        """
        query = PeopleQuery() if query is None else query
        offset = whole("offset", offset, 0, LARGEST, then="")
        limit = whole("limit", limit, 1, LARGEST, then="")
        # First, because it refuses words that cannot be searched for.
        where = " AND ".join(query.conditions()) or "true"
        waited_for = [COUNTED, LAST_BODIES] if wait else []
        counted = self._tables.get(KNOWN, *query.tables(), *waited_for, newest=newest)
        cursor = counted.cursor.cursor()
        source = f"FROM {counted.people} WHERE {where}"
        [(total,)] = self._reader.rows(cursor, f"SELECT count(*) {source}", [])
        names = [*NUMBERS, *TEXTS, *(f"epoch_us({name})" for name in TIMES)]
        body = "NULL"
        if LAST_BODIES in counted.ready:
            body = f"(SELECT any_value(body) FROM {LAST_BODIES} WHERE user_id = found.user_id)"
        rows = self._reader.rows(
            cursor,
            f"SELECT {', '.join(names)}, {body} FROM (SELECT * {source} "
            f"ORDER BY {query.sorting()} LIMIT {limit} OFFSET {offset}) AS found "
            f"ORDER BY {query.sorting()}",
            [],
        )
        return PeoplePage(tuple(map(_person, rows)), offset, total, counted.people == COUNTED)

    def operators(self) -> tuple[Operator, ...]:
        """The operators, those with the most messages first; waits for the figures."""
        cursor = self._tables.get(COUNTED, OPERATORS).cursor.cursor()
        rows = self._reader.rows(
            cursor,
            f"SELECT id, name, messages, conversations FROM {OPERATORS} ORDER BY messages DESC, id",
            [],
        )
        return tuple(Operator(*row) for row in rows)

    def names(self, user_ids: list[int]) -> dict[int, str]:
        """The names of users, without those that have none."""
        counted = self._tables.get(KNOWN)
        rows = self._reader.rows(
            counted.cursor.cursor(),
            f"SELECT user_id, name FROM {counted.people} "
            "WHERE user_id IN (SELECT unnest(?::BIGINT[])) AND name IS NOT NULL",
            [user_ids],
        )
        return dict(rows)

    def prepare(self) -> None:
        """Begins with names and times of last messages, so that they are there when needed."""
        self._tables.prepare()

    @property
    def counted(self) -> bool:
        """Whether all figures of the newest snapshot are counted; begins to count if not."""
        return self._tables.are_counted()

    def close(self) -> None:
        """Stops counting."""
        self._tables.close()


def _words_condition(words: str) -> str:
    folded = folded_words(words)
    held = " AND ".join(f"contains(text, {quoted(word)})" for word in folded)
    condition = f"user_id IN (SELECT user_id FROM {FOLDED} WHERE {held})"
    number = _number(words)
    return condition if number is None else f"(user_id = {number} OR {condition})"


def _number(words: str) -> int | None:
    text = words.strip().removeprefix("#")
    if text.isascii() and text.isdecimal() and int(text[:20]) <= LARGEST and len(text) < 20:
        return int(text)
    return None


def _person(row: tuple[Any, ...]) -> Person:
    *values, first, last, body = row
    return Person(
        **dict(zip((*NUMBERS, *TEXTS), values, strict=True)),
        first_message_at=from_microseconds(first),
        last_message_at=from_microseconds(last),
        last_body=body,
    )
