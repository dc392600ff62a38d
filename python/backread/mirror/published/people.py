"""`People`: finds people of a mirror by words and by the figures of their conversations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime
from threading import Lock
from typing import Any, Literal, get_args

from backread._client.arguments import LARGEST, whole
from backread.mirror.published.period import Moment, Period
from backread.mirror.published.search import contains_words, plain_text, search_words
from backread.mirror.published.snapshot_reader import OpenSnapshot, SnapshotReader
from backread.mirror.store.engine import from_microseconds

PersonOrder = Literal["newest", "oldest", "longest", "unread", "name", "id"]
"""Newest or oldest last message first, most messages first, most messages that no operator has
read first, by name, by id."""

Side = Literal["user", "operator"]

Only = Callable[[OpenSnapshot], str]

ORDERS: dict[str, str] = {
    "newest": "last_message_at DESC NULLS LAST",
    "oldest": "last_message_at NULLS LAST",
    "longest": "messages DESC",
    "unread": "unread_by_operator DESC, last_message_at DESC NULLS LAST",
    "name": "nullif(lower(strip_accents(trim(name))), '') NULLS LAST",
    "id": "user_id",
}

PREVIEW = 140
"""The number of characters of a last message."""

TEXT = "concat_ws(chr(10), users.name, users.email, users.reference)"

MAKE_PEOPLE = f"""
CREATE TABLE IF NOT EXISTS people AS
SELECT conversations.* EXCLUDE (first_response_seconds, complete), users.reference,
    {plain_text(TEXT)} AS plain
FROM conversations JOIN users ON users.id = conversations.user_id
"""

LAST_BODIES = f"""
SELECT user_id, arg_max_null(left(body, {PREVIEW}), (created_at, id)) FROM messages
WHERE deleted_at IS NULL AND user_id IN (SELECT unnest(?::BIGINT[])) GROUP BY user_id
"""

ANSWERS = """
FROM messages WHERE deleted_at IS NULL AND sender_type = 'operator'
    AND NOT coalesce(auto_invitation, false)
"""

OPERATORS = f"""
SELECT sender_id, coalesce(arg_max(
        nullif(concat_ws(' ', sender_forename, sender_surname), ''),
        coalesce(created_at, TIMESTAMPTZ 'epoch')
    ), ''), count(*) AS answers, count(DISTINCT user_id)
{ANSWERS} AND sender_id IS NOT NULL GROUP BY sender_id ORDER BY answers DESC, sender_id
"""


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
        Period.parse(self.since, self.until)

    def conditions(self) -> list[str]:
        """The SQL conditions."""
        found = []
        if self.words.strip():
            found.append(_words_condition(self.words))
        period = Period.parse(self.since, self.until).conditions("created_at")
        if period:
            wrote = " AND ".join(["deleted_at IS NULL", *period])
            found.append(f"user_id IN (SELECT user_id FROM messages WHERE {wrote})")
        if self.unread:
            found.append(f"unread_by_{self.unread} > 0")
        if self.last_sender:
            found.append(f"last_sender_type = '{self.last_sender}'")
        if self.operator is not None:
            found.append(f"user_id IN (SELECT user_id {ANSWERS} AND sender_id = {self.operator})")
        if self.files:
            found.append("files > 0")
        return found

    def sorting(self) -> str:
        """The SQL of the order, which is total."""
        number = _number(self.words)
        first = "" if number is None else f"user_id <> {number}, "
        return f"{first}{ORDERS[self.order]}, user_id"


@dataclass(frozen=True, slots=True)
class Person:
    """A user with the figures of the conversation, which are those of the view ``conversations``.

    ``last_body`` is the beginning of the last message's body.
    """

    user_id: int
    messages: int
    user_messages: int
    operator_messages: int
    auto_invitations: int
    files: int
    unread_by_operator: int
    unread_by_user: int
    name: str | None
    email: str | None
    reference: str | None
    last_sender_type: str | None
    first_message_at: datetime | None
    last_message_at: datetime | None
    last_body: str | None


FIGURES = tuple(each.name for each in fields(Person) if each.name != "last_body")
TIMES = ("first_message_at", "last_message_at")


@dataclass(frozen=True, slots=True)
class PeoplePage:
    """Some of the people that a query finds.

    ``total`` is the number of all of them, ``offset`` the number of those before this page.
    """

    people: tuple[Person, ...]
    offset: int
    total: int


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator, by what the newest message says; automatic invitations do not count."""

    id: int
    name: str
    messages: int
    conversations: int


class People:
    """The people of a mirror's newest snapshot.

    The first query of a snapshot counts the figures of all conversations, which takes about as long
    as reading the view ``conversations``, and keeps them in memory (about 300 bytes per user).

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
        self._making = Lock()

    def find(
        self,
        query: PeopleQuery | None = None,
        *,
        offset: int = 0,
        limit: int = 50,
        only: Only | None = None,
    ) -> PeoplePage:
        """The people that a query finds.

        Args:
            query: Which people; None for all, newest last message first.
            offset: How many of them to skip.
            limit: The maximum number of people.
            only: Gives one more SQL condition, on the snapshot that is read.
        """
        query = PeopleQuery() if query is None else query
        offset = whole("offset", offset, 0, LARGEST, then="")
        limit = whole("limit", limit, 1, LARGEST, then="")
        snapshot, source = self.source(query, only)
        [(total,)] = snapshot.rows(f"SELECT count(*) {source}")
        names = (f"epoch_us({name})" if name in TIMES else name for name in FIGURES)
        rows = snapshot.rows(
            f"SELECT {', '.join(names)} {source} "
            f"ORDER BY {query.sorting()} LIMIT {limit} OFFSET {offset}"
        )
        bodies = dict(snapshot.rows(LAST_BODIES, [[row[0] for row in rows]]))
        return PeoplePage(tuple(_person(row, bodies.get(row[0])) for row in rows), offset, total)

    def source(self, query: PeopleQuery, only: Only | None = None) -> tuple[OpenSnapshot, str]:
        """The snapshot, and the SQL from FROM on for all people that a query finds, in no order."""
        # First, because it refuses words that cannot be searched for.
        conditions = query.conditions()
        snapshot = self._people()
        if only is not None:
            conditions.append(only(snapshot))
        return snapshot, f"FROM people WHERE {' AND '.join(conditions) or 'true'}"

    def operators(self) -> tuple[Operator, ...]:
        """The operators, those with the most messages first."""
        return tuple(Operator(*row) for row in self._reader.snapshot().rows(OPERATORS))

    def names(self, user_ids: list[int]) -> dict[int, str]:
        """The names of users, without those that have none."""
        query = (
            "SELECT id, name FROM users WHERE id IN (SELECT unnest(?::BIGINT[])) "
            "AND name IS NOT NULL AND deleted_at IS NULL"
        )
        return dict(self._reader.snapshot().rows(query, [user_ids]))

    def _people(self) -> OpenSnapshot:
        """The newest snapshot with the table ``people``.

        Each snapshot has a separate database, so its table is made once.
        """
        snapshot = self._reader.snapshot()
        with self._making:
            snapshot.rows(MAKE_PEOPLE)
        return snapshot


def _words_condition(words: str) -> str:
    condition = contains_words(search_words(words))
    number = _number(words)
    return condition if number is None else f"(user_id = {number} OR {condition})"


def _number(words: str) -> int | None:
    text = words.strip().removeprefix("#")
    if text.isascii() and text.isdecimal() and int(text[:20]) <= LARGEST and len(text) < 20:
        return int(text)
    return None


def _person(row: tuple[Any, ...], last_body: str | None) -> Person:
    values: dict[str, Any] = {
        name: from_microseconds(value) if name in TIMES else value
        for name, value in zip(FIGURES, row, strict=True)
    }
    return Person(**values, last_body=last_body)
