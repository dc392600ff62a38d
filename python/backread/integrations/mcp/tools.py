"""The tools: each reads the newest published snapshot and answers in text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Timer
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from backread._display.words import ago, amount, counts, moment
from backread.errors import BackreadError, MirrorError
from backread.integrations.mcp.answers import (
    HIDDEN,
    SHORTENED,
    Row,
    Texts,
    answer,
    exact,
    fenced,
    fitting,
    is_rounded,
)
from backread.integrations.mcp.rows import (
    figure_rows,
    figures_left_out,
    hit_row,
    message_row,
    person_row,
    sql_row,
    user_left_out,
    user_row,
)
from backread.mirror.figures.compute import compute_figures
from backread.mirror.published.conversation import read_window
from backread.mirror.published.interruptible_reader import InterruptibleReader
from backread.mirror.published.people import People, PeopleQuery
from backread.mirror.published.queries import RefusedQueryError, check_reads_only
from backread.mirror.published.search import search_messages
from backread.mirror.published.status import status_sentences
from backread.mirror.summary import summarize

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["HIDDEN_COLUMNS", "Tools"]

LONGEST_BODY = 2_000
LONGEST_ONLY_BODY = 20_000
"""Of the only message of an answer."""

MOST_SKIPPED = 10_000
"""The most messages that a search skips: it reads their bodies."""

EMAILS = (("users", "email"), ("conversations", "email"), ("messages", "sender_email"))
"""The columns with addresses, by table."""

HIDDEN_COLUMNS = (
    f"E-mail addresses are hidden: {', '.join('.'.join(each) for each in EMAILS)} have the same "
    "text for every address. Do not filter, group or join by them, nor count distinct ones."
)

SECONDS = 30.0
"""How long a query may take."""

MOST_ROWS = 500
"""How many rows a query may return."""

LONGEST_QUERY = 20_000
DEEPEST_QUERY = 100
"""The most nested brackets: DuckDB needs quadratic time for unclosed ones, uninterrupted."""

WITH_DELETED = ("users", "messages")
"""The tables that keep rows that the service no longer has."""

RUNS = """
SELECT run_id, mode, state, started_at, ended_at, users, messages, messages_added, certificate,
    certificate_reason, lists_by_certificate, error
FROM runs ORDER BY run_id DESC LIMIT ?
"""

Words = Annotated[str, Field(description='Words; "a phrase" in double quotes counts as one word.')]
Since = Annotated[
    str | None, Field(description="Date or time (ISO 8601, UTC unless it names a zone).")
]
Until = Annotated[str | None, Field(description="Like since; this moment is excluded.")]


def _not_rounded(given: object) -> object:
    if is_rounded(given):
        raise PydanticCustomError(
            "rounded", "must be a string, because numbers above 2^53 may have been rounded"
        )
    return given


Id = Annotated[int, BeforeValidator(_not_rounded, json_schema_input_type=int | str)]
IdOrNone = Annotated[
    int | None, BeforeValidator(_not_rounded, json_schema_input_type=int | str | None)
]
UserId = Annotated[Id, Field(ge=0, description="The id of a user, as find_users gives it.")]


class Tools:
    """The tools of one mirror.

    Args:
        folder: The mirror's folder.
        emails: Whether answers may have e-mail addresses.
    """

    def __init__(self, folder: Path, *, emails: bool) -> None:
        self._folder = folder
        self.shows_emails = emails
        self._texts = Texts(emails=emails)
        self._reader = InterruptibleReader(folder)
        self._people = People(self._reader)

    def run(self, tool: Callable[..., str], arguments: Mapping[str, Any], cancelled: Event) -> str:
        """Calls one of the tools; ``cancelled`` is its own, for `cancel`. `close` waits for it."""
        with self._reader.call(cancelled):
            return "" if cancelled.is_set() else tool(**arguments)

    def cancel(self, cancelled: Event) -> None:
        """Interrupts the queries of one call until it has ended."""
        cancelled.set()
        self._reader.interrupt(cancelled)

    def close(self) -> None:
        """Interrupts what is running, and refuses further calls."""
        self._reader.close()

    def mirror_status(
        self, runs: Annotated[int, Field(ge=1, le=20, description="How many runs.")] = 5
    ) -> str:
        """How old and how complete the data is: its certificates, row counts and newest syncs.

        A list of users or messages with a certificate (snapshot, counted, linked) is proved to be
        complete; "uncertified" means that rows may be missing.
        """
        with told_errors():
            summary = summarize(self._folder, self._reader)
            cursor = self._reader.cursor()
            relation = cursor.sql(RUNS, params=[runs])
            columns, found = relation.columns, relation.fetchall()
            facts = [*self._age(), *status_sentences(self._reader)]
            for name, count in summary.rows.items():
                deleted = 0
                if name in WITH_DELETED:
                    query = f"SELECT count(*) FROM {name} WHERE deleted_at IS NOT NULL"
                    [(deleted,)] = self._reader.rows(cursor, query, [])
                of_which = f", of which {deleted:,} deleted" if deleted else ""
                facts.append(f"Rows of {name}: {count:,}{of_which}.")
            rows = [dict(zip(columns, sql_row(each, self._texts), strict=True)) for each in found]
            return answer(facts, rows)

    def find_users(
        self,
        words: Annotated[str, Field(description="In the name, address or reference.")] = "",
        unread: Annotated[
            Literal["operator", "user"] | None,
            Field(description="operator: with messages that no operator has read."),
        ] = None,
        last_sender: Annotated[
            Literal["user", "operator"] | None, Field(description="Who wrote the last message.")
        ] = None,
        since: Since = None,
        until: Until = None,
        files: Annotated[bool, Field(description="Only with attachments.")] = False,
        order: Literal["newest", "oldest", "longest", "unread", "name", "id"] = "newest",
        offset: Annotated[int, Field(ge=0)] = 0,
        limit: Annotated[int, Field(ge=1, le=50)] = 20,
    ) -> str:
        """Finds users and the figures of their conversations; all conditions must hold.

        since and until are about any message of the conversation.
        """
        with told_errors():
            query = PeopleQuery(
                words,
                since=since,
                until=until,
                unread=unread,
                last_sender=last_sender,
                files=files,
                order=order,
            )
            # First: a sync may publish while people are counted, and no age is to be of later data.
            age = self._age()
            page = self._people.find(query, offset=offset, limit=limit)
            facts = [*age, f"{amount(page.total, 'user')} found."]
            rows = [person_row(each, self._texts) for each in page.people]
            shown = fitting(rows)
            if shown:
                last = offset + len(shown)
                more = f"; offset={last} continues" if last < page.total else ""
                facts.append(f"Users {offset + 1:,} to {last:,}{more}.")
            return answer([*facts, *_shortened(shown, rows)], rows[: shown.stop])

    def search_messages(
        self,
        words: Words,
        since: Since = None,
        until: Until = None,
        user_id: Annotated[IdOrNone, Field(ge=0, description="Only of this user.")] = None,
        offset: Annotated[int, Field(ge=0, le=MOST_SKIPPED)] = 0,
        limit: Annotated[int, Field(ge=1, le=50)] = 20,
    ) -> str:
        """Finds the newest messages whose body has all words; case and accents do not count.

        read_conversation with around=message_id shows what was said before and after.
        """
        with told_errors():
            found = search_messages(
                self._reader,
                words,
                since=since,
                until=until,
                user=user_id,
                # One more tells whether there are more.
                limit=limit + 1,
                offset=offset,
            )
            rows = [hit_row(each, self._texts) for each in found.hits[:limit]]
            shown = fitting(rows)
            after = f" after the first {offset:,}" if offset else ""
            head = f"{amount(len(shown), 'message')} found{after}, newest first."
            facts = [*self._age(), head]
            if len(shown) < len(found):
                last = offset + len(shown)
                more = f"offset={last} continues" if last <= MOST_SKIPPED else "narrow the search"
                facts.append(f"There are more; {more}.")
            return answer([*facts, *_shortened(shown, rows)], rows[: shown.stop])

    def read_conversation(
        self,
        user_id: UserId,
        at: Annotated[
            Literal["first", "last"], Field(description="Which end to read, by default the last.")
        ] = "last",
        around: Annotated[IdOrNone, Field(description="A message id to read around.")] = None,
        before: Annotated[IdOrNone, Field(description="Reads before this message id.")] = None,
        after: Annotated[IdOrNone, Field(description="Reads after this message id.")] = None,
        limit: Annotated[int, Field(ge=1, le=100)] = 30,
    ) -> str:
        """Reads a part of the conversation with a user, in chronological order.

        limit=1 with around shows one long message whole.
        """
        with told_errors():
            window = read_window(
                self._reader,
                user_id,
                at=at,
                around=around,
                before=before,
                after=after,
                limit=limit,
            )
            messages = window.conversation.messages
            longest = LONGEST_ONLY_BODY if len(messages) == 1 else LONGEST_BODY
            user = user_row(window.conversation.user, self._texts)
            rows = [message_row(each, longest, self._texts) for each in messages]
            last = before is not None or (around is after is None and at == "last")
            anchor = len(rows) - 1 if last else 0
            if around is not None:
                anchor = [each.id for each in messages].index(around)
            shown = fitting(rows, anchor, beside=user)
            facts = self._age()
            if shown:
                start, end = window.start + shown.start, window.start + shown.stop
                facts.append(f"Messages {start + 1:,} to {end:,} of {window.total:,}.")
                facts += _shortened(shown, rows)
                if start > 0:
                    first = json.dumps(exact(messages[shown.start].id))
                    facts.append(f"Earlier ones: before={first}.")
                if end < window.total:
                    final = json.dumps(exact(messages[shown.stop - 1].id))
                    facts.append(f"Later ones: after={final}.")
            else:
                facts.append(f"No messages here; the conversation has {window.total:,}.")
            facts += window.deleted.in_words()
            facts += user_left_out(window.conversation.user)
            return answer(facts, [user, *rows[shown.start : shown.stop]])

    def conversation_figures(
        self,
        timezone: Annotated[
            str | None, Field(description="An IANA name such as Europe/Berlin; default UTC.")
        ] = None,
        opening_hours: Annotated[
            str | None,
            Field(description="Such as mon-fri 9-17: other time is not response time."),
        ] = None,
        since: Since = None,
        until: Until = None,
    ) -> str:
        """Volume, first response times, unread and unanswered conversations, operators' workload.

        Times are in seconds; p50 is the median, p90 the ninth decile.
        """
        with told_errors():
            figures = compute_figures(
                self._reader,
                timezone=timezone,
                opening_hours=opening_hours,
                since=since,
                until=until,
                tell=None,
            )
            facts = [*self._age(), f"Days are those of {figures['timezone']}."]
            if figures["opening_hours"]:
                facts.append(f"Response times count only {figures['opening_hours']}.")
            facts += figures_left_out(figures)
            return answer(facts, figure_rows(figures, self._texts))

    def run_sql(
        self,
        query: Annotated[str, Field(description="One SELECT in DuckDB's SQL.")],
        limit: Annotated[int, Field(ge=1, le=MOST_ROWS, description="The most rows.")] = 100,
    ) -> str:
        """Runs one SELECT over the tables users, messages, conversations, lists, rejects and runs.

        The columns: SELECT column_name, column_type FROM (DESCRIBE messages). Times are UTC. Users
        and messages that the service deleted have a deleted_at.
        """
        with told_errors():
            cursor = self._reader.cursor(restricted=True)
            if not self.shows_emails:
                # Of this cursor only. They hide what is not written like an address, too.
                for table, column in EMAILS:
                    cursor.execute(
                        f"CREATE TEMP VIEW {table} AS SELECT * REPLACE "
                        f"(CASE WHEN {column} IS NOT NULL THEN '{HIDDEN}' END AS {column}) "
                        f"FROM memory.main.{table}"
                    ).fetchall()
            # Ends a query that would run for hours; its own cursor, so no other query.
            timer = Timer(SECONDS, cursor.interrupt)
            timer.start()
            try:
                check_syntax(cursor, query)
                check_reads_only(cursor, query)
                relation = cursor.sql(query).limit(limit + 1)
                columns, found = relation.columns, relation.fetchall()
            except RefusedQueryError as error:
                raise ToolError(f"run_sql {error.reason}") from None
            except Exception as error:
                raise ToolError(self._why(error)) from None
            finally:
                timer.cancel()
            head, *rows = (sql_row(each, self._texts) for each in (columns, *found[:limit]))
            shown = fitting(rows, beside=head)
            facts = [*self._age(), f"{amount(len(shown), 'row')}.", *_shortened(shown, rows)]
            if len(found) > limit:
                more = "a larger limit" if limit < MOST_ROWS else "OFFSET"
                facts.append(f"There are more rows; {more} or a narrower query shows them.")
            if not self.shows_emails:
                facts.append(HIDDEN_COLUMNS)
            return answer(facts, [head, *rows[: shown.stop]])

    def _why(self, error: Exception) -> str:
        """What DuckDB says of a query; its text may quote values of the tables."""
        if "interrupted" in str(error).lower():
            return f"the query was ended after {SECONDS:.0f} seconds; make it narrower"
        said = self._texts.short(str(error), LONGEST_BODY)
        return f"the query failed.\n{fenced(said or type(error).__name__)}"

    def _age(self) -> list[str]:
        """How old the data is and what is proved, for the head of each answer."""
        summary = summarize(self._folder, self._reader)
        if summary.problem is not None:
            raise MirrorError(summary.problem)
        if (run := summary.run) is None:
            if summary.has_no_rows:
                return ["The mirror has no rows: no sync has read anything yet."]
            return ["The mirror has rows of given users only; no sync has read all users."]
        age = ago((datetime.now(UTC) - run.at).total_seconds())
        facts = [
            f"Data as of {moment(run.at.replace(microsecond=0))} ({age}; run {run.run_id}).",
            f"List of users: {run.certificate}. Message lists: {counts(summary.lists) or 'none'}.",
        ]
        if run.state == "partial":
            facts.append("That run is partial: some lists are not read yet.")
        return facts


def check_syntax(cursor: DuckDBPyConnection, query: str) -> None:
    """Refuses a query that is too long or too deeply nested; ValueError if it is not SQL."""
    if len(query) > LONGEST_QUERY:
        raise RefusedQueryError(f"takes at most {LONGEST_QUERY:,} characters, not {len(query):,}")
    depth = 0
    for sign in query:
        depth = max(depth + (sign in "([{") - (sign in ")]}"), 0)
        if depth > DEEPEST_QUERY:
            raise RefusedQueryError(f"takes brackets nested at most {DEEPEST_QUERY} deep")
    # DuckDB's own parse in Python holds the lock of the interpreter, which would stop the server
    # for as long as a syntax error takes.
    [(text,)] = cursor.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
    error = json.loads(text) if text.startswith('{"error":true') else {}
    if error.get("error_type") == "parser":
        place = f" (byte {error['position']})" if "position" in error else ""
        raise ValueError(f"Parser Error: {error['error_message']}{place}")


def _shortened(shown: range, rows: Sequence[Row]) -> list[str]:
    return [SHORTENED] if len(shown) < len(rows) else []


@contextmanager
def told_errors() -> Iterator[None]:
    """Errors that a caller can understand and avoid, as a tool's error."""
    try:
        yield
    except (BackreadError, ValueError, TypeError) as error:
        raise ToolError(str(error)) from error
