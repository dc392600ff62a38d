"""The tools: each reads the newest published snapshot and answers in text."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from backread import Mirror
from backread._client.privacy import HIDDEN
from backread._display.words import ago, amount, counts, moment
from backread.errors import BackreadError, MirrorError
from backread.integrations.mcp.answers import (
    LARGEST_EXACT,
    LONGEST,
    Row,
    Texts,
    answer,
    fenced,
    fitting,
)
from backread.mirror.published.conversation import read_window
from backread.mirror.published.people import People, PeopleQuery, Person
from backread.mirror.published.queries import RefusedQueryError
from backread.mirror.published.snapshot_reader import InterruptibleReader, OpenSnapshot
from backread.mirror.published.status import status_sentences
from backread.mirror.summary import summarize
from backread.models import Message

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

LONGEST_ONLY_BODY = 20_000
"""Of the only message of an answer."""

MOST_ATTRIBUTES = 30

USER = ("id", "name", "email", "reference", "created_at", "online_at", "last_url")
UNSHOWN = ("user_id", "sender", "extra")
MESSAGE = ("sender_name", *(each.name for each in fields(Message) if each.name not in UNSHOWN))
HIT = ("user_id", "id", "created_at", "sender_type", "sender_name", "snippet")
PERSON = tuple(each.name for each in fields(Person))
FIGURES = ("totals", "responses", "states", "invitations", "attachments")

MOST_SKIPPED = 10_000
"""How many messages a search may skip: it reads their bodies."""

EMAILS = (("users", "email"), ("conversations", "email"), ("messages", "sender_email"))
"""The columns with addresses, by table."""

HIDDEN_COLUMNS = (
    f"E-mail addresses are hidden: {', '.join('.'.join(each) for each in EMAILS)} have the same "
    "text for every address. Do not filter, group or join by them, nor count distinct ones."
)

DEEPEST_QUERY = 100
"""The nesting limit of brackets: DuckDB parses unclosed ones in quadratic time, uninterrupted."""

RUNS = """
SELECT run_id, mode, state, started_at, ended_at, users, messages, messages_added, certificate,
    certificate_reason, lists_by_certificate, error
FROM runs ORDER BY run_id DESC LIMIT ?
"""


def _not_rounded(given: object) -> object:
    if isinstance(given, (int, float)) and abs(given) > LARGEST_EXACT:
        raise PydanticCustomError(
            "rounded", "must be a string, because numbers above 2^53 may have been rounded"
        )
    return given


Id = Annotated[int, BeforeValidator(_not_rounded, json_schema_input_type=int | str), Field(ge=0)]
IdOrNone = Annotated[
    int | None, BeforeValidator(_not_rounded, json_schema_input_type=int | str | None), Field(ge=0)
]
UpTo50 = Annotated[int, Field(ge=1, le=50)]


class _Reader(InterruptibleReader):
    """Hides the columns with addresses from queries; a text in them may not look like one."""

    def __init__(self, folder: Path, *, emails: bool) -> None:
        super().__init__(folder)
        self._emails = emails

    def snapshot(self, *, restricted: bool = False) -> OpenSnapshot:
        opened = super().snapshot(restricted=restricted)
        if restricted and not self._emails:
            for table, column in EMAILS:
                opened.rows(
                    f"CREATE TEMP VIEW {table} AS SELECT * REPLACE "
                    f"(CASE WHEN {column} IS NOT NULL THEN '{HIDDEN}' END AS {column}) "
                    f"FROM memory.main.{table}"
                )
        return opened


class _Mirror(Mirror):
    """A mirror whose queries another thread can end."""

    def __init__(self, folder: str | os.PathLike[str], *, emails: bool) -> None:
        super().__init__(folder)
        self.reader = self._reader = _Reader(self.folder, emails=emails)


class Tools:
    """The tools of one mirror.

    Args:
        folder: The mirror's folder.
        emails: Whether answers may have e-mail addresses.
    """

    def __init__(self, folder: str | os.PathLike[str], *, emails: bool) -> None:
        self.mirror = _Mirror(folder, emails=emails)
        self.reader = self.mirror.reader
        self._people = People(self.reader)
        self._texts = Texts(emails=emails)
        # A wrong folder is better said at the start than at each call.
        self.mirror.sql("SELECT 1")

    def run(self, tool: Callable[..., str], arguments: Mapping[str, Any], ended: Event) -> str:
        """Calls one of the tools; the reader's ``interrupt(ended)`` ends it."""
        with self.reader.call(ended):
            try:
                return "" if ended.is_set() else tool(**arguments)
            except (BackreadError, ValueError, TypeError) as error:
                # What a caller can understand and avoid.
                raise ToolError(str(error)) from error

    def mirror_status(self, runs: Annotated[int, Field(ge=1, le=20)] = 5) -> str:
        """How old and how complete the data is: its certificates, row counts and newest syncs.

        A list of users or messages with a certificate (snapshot, counted, linked) is proved to be
        complete; "uncertified" means that rows may be missing. runs is how many syncs to tell of.
        """
        facts = [*self._age(), *status_sentences(self.reader)]
        return answer(facts, self._table(self.mirror.sql(RUNS, [runs])))

    def find_users(
        self,
        words: str = "",
        unread: Literal["operator", "user"] | None = None,
        last_sender: Literal["user", "operator"] | None = None,
        since: str | None = None,
        until: str | None = None,
        files: bool = False,
        order: Literal["newest", "oldest", "longest", "unread", "name", "id"] = "newest",
        offset: Annotated[int, Field(ge=0)] = 0,
        limit: UpTo50 = 20,
    ) -> str:
        """Finds users and the figures of their conversations; all conditions must hold.

        words are in the name, address or reference; "a phrase" in double quotes counts as one.
        unread="operator": with messages that no operator has read. last_sender: who wrote the last
        message. since and until are about any message of the conversation: dates or times in ISO
        8601, UTC unless they name a zone; until is excluded. files: only with attachments.
        """
        # First: a sync may publish while people are counted, and the age must not be newer.
        facts = self._age()
        query = PeopleQuery(words, since, until, unread, last_sender, files=files, order=order)
        page = self._people.find(query, offset=offset, limit=limit)
        rows = [self._texts.row(each, PERSON) for each in page.people]
        return _page([*facts, f"{amount(page.total, 'user')} found."], rows, offset, page.total)

    def search_messages(
        self,
        words: str,
        since: str | None = None,
        until: str | None = None,
        user_id: IdOrNone = None,
        offset: Annotated[int, Field(ge=0, le=MOST_SKIPPED)] = 0,
        limit: UpTo50 = 20,
    ) -> str:
        """Finds the newest messages whose body has all words; case and accents do not count.

        "A phrase" in double quotes counts as one word. since and until are dates or times in ISO
        8601, UTC unless they name a zone; until is excluded. user_id: only of this user.
        read_conversation with around=id shows what was said before and after a message.
        """
        # One more tells whether there are more.
        most = offset + limit + 1
        found = self.mirror.search(words, since=since, until=until, user=user_id, limit=most)
        rows = [self._texts.row(each, HIT) for each in found.hits[offset : offset + limit]]
        return _page([*self._age(), "Newest first."], rows, offset, len(found))

    def read_conversation(
        self,
        user_id: Id,
        at: Literal["first", "last"] = "last",
        around: IdOrNone = None,
        before: IdOrNone = None,
        after: IdOrNone = None,
        limit: Annotated[int, Field(ge=1, le=100)] = 30,
    ) -> str:
        """Reads a part of the conversation with a user, in chronological order.

        user_id is that of find_users. at is the end to read, unless around, before or after is the
        id of a message. limit=1 with around shows one long message whole.
        """
        window = read_window(
            self.reader, user_id, at=at, around=around, before=before, after=after, limit=limit
        )
        user, messages = window.conversation.user, window.conversation.messages
        longest = {"body": LONGEST_ONLY_BODY} if len(messages) == 1 else {}
        rows = [self._texts.row(each, MESSAGE, **longest) for each in messages]
        attributes = list(user.attributes.items())
        head = {
            "user": self._texts.row(user, USER),
            "attributes": self._texts.value(dict(attributes[:MOST_ATTRIBUTES])),
        }
        anchor = 0 if after is not None or (before is around is None and at == "first") else -1
        if around is not None:
            anchor = [each.id for each in messages].index(around)
        shown = fitting(rows, anchor % max(len(rows), 1), beside=head)
        start, end = window.start + shown.start, window.start + shown.stop
        which = f"Messages {start + 1:,} to {end:,}" if shown else "No messages"
        facts = [*self._age(), f"{which} of {window.total:,}."]
        if start > 0 and shown:
            facts.append(f"Earlier ones: before={json.dumps(rows[shown.start]['id'])}.")
        if end < window.total and shown:
            facts.append(f"Later ones: after={json.dumps(rows[shown.stop - 1]['id'])}.")
        facts += window.deleted.in_words()
        if (count := len(attributes)) > MOST_ATTRIBUTES:
            facts.append(f"The first {MOST_ATTRIBUTES} of the user's {count:,} attributes.")
        return answer(facts, [head, *rows[shown.start : shown.stop]])

    def conversation_figures(
        self,
        timezone: str | None = None,
        opening_hours: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> str:
        """Volume, first response times, unread and unanswered conversations, operators' workload.

        Times are in seconds; p50 is the median, p90 the ninth decile. timezone is an IANA name such
        as Europe/Berlin, by default UTC. opening_hours, such as mon-fri 9-17: other time is not
        response time. since and until are dates or times in ISO 8601; until is excluded.
        """
        figures: Any = self.mirror.figures(
            timezone=timezone, opening_hours=opening_hours, since=since, until=until
        )
        rows = [
            *({name: figures[name]} for name in FIGURES),
            *({"operator": each} for each in figures["operators"]),
            *({figures["unit"]: each} for each in reversed(figures["volume"])),
        ]
        hours = figures["opening_hours"] or "always"
        facts = [*self._age(), f"Days are those of {figures['timezone']}; open: {hours}."]
        return answer(facts, [self._texts.value(each) for each in rows])

    def run_sql(
        self,
        query: Annotated[str, Field(max_length=20_000)],
        limit: Annotated[int, Field(ge=1, le=500)] = 100,
    ) -> str:
        """Runs one SELECT over the tables users, messages, conversations, lists, rejects and runs.

        The SQL is DuckDB's; limit is the most rows. The columns: SELECT column_name, column_type
        FROM (DESCRIBE messages). Times are UTC. Users and messages that the service deleted have a
        deleted_at.
        """
        _refuse_nested_brackets(query)
        try:
            head, *rows = self._table(self.mirror.sql(query).limit(limit + 1))
        except RefusedQueryError as error:
            raise ToolError(f"run_sql {error.reason}") from None
        except Exception as error:
            # DuckDB may quote values of the tables.
            said = self._texts.short(str(error), LONGEST["body"]) or type(error).__name__
            raise ToolError(f"the query failed.\n{fenced(said)}") from None
        shown = fitting(rows[:limit], beside=head)
        facts = [*self._age(), f"{amount(len(shown), 'row')}."]
        if len(rows) > len(shown):
            facts.append("There are more rows; a larger limit, OFFSET or fewer columns show them.")
        if not self._texts.emails:
            facts.append(HIDDEN_COLUMNS)
        return answer(facts, [head, *rows[: shown.stop]])

    def _table(self, relation: DuckDBPyRelation) -> list[Row]:
        rows = (relation.columns, *relation.fetchall())
        return [[self._texts.cell(each) for each in row] for row in rows]

    def _age(self) -> list[str]:
        """How old the data is and what is proved, for the head of each answer."""
        summary = summarize(self.mirror.folder, self.reader)
        if summary.problem is not None:
            raise MirrorError(summary.problem)
        if (run := summary.run) is None:
            return ["No sync has read all users yet."]
        age = ago((datetime.now(UTC) - run.at).total_seconds())
        at, lists = moment(run.at.replace(microsecond=0)), counts(summary.lists) or "none"
        return [
            f"Data as of {at} ({age}; run {run.run_id}, {run.state}).",
            f"List of users: {run.certificate}. Message lists: {lists}.",
        ]


def _page(facts: list[str], rows: Sequence[Row], offset: int, total: int) -> str:
    """The answer with rows after the first ``offset`` of ``total``."""
    shown = fitting(rows)
    last = offset + len(shown)
    more = f"; offset={last} continues" if last < total else ""
    place = f"Rows {offset + 1:,} to {last:,}{more}." if shown else "No rows here."
    return answer([*facts, place], rows[: shown.stop])


def _refuse_nested_brackets(query: str) -> None:
    depth = 0
    for sign in query:
        depth = max(depth + (sign in "([{") - (sign in ")]}"), 0)
        if depth > DEEPEST_QUERY:
            raise ToolError(f"run_sql takes brackets nested at most {DEEPEST_QUERY} deep")
