"""Counts the figures of all conversations once per snapshot, into tables in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Condition, Thread
from time import monotonic
from typing import TYPE_CHECKING

from backread.errors import MirrorError
from backread.mirror.published.folding import fold
from backread.mirror.published.layout import snapshot_name

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from backread.mirror.published.manifest import Manifest
    from backread.mirror.published.snapshot_reader import OpenSnapshot, SnapshotReader

__all__ = [
    "COUNTED",
    "FOLDED",
    "KNOWN",
    "LAST_BODIES",
    "OPERATORS",
    "CountedPeople",
    "PeopleTables",
]

KNOWN = "people_known"
"""The table of people without the figures that take seconds to count."""

FOLDED = "people_folded"
"""The names, addresses and references as `fold` makes them; the table of words to search."""

COUNTED = "people_counted"
OPERATORS = "people_operators"
LAST_BODIES = "people_last_bodies"

FOLDED_AT_ONCE = 20_000
"""The number of rows that are folded in one go."""

SECONDS_TO_END = 10.0
"""How long `PeopleTables.close` waits, on a machine that is very busy."""

PREVIEW = 140
"""The number of characters of a last message."""

TEXT = "concat_ws(chr(10), name, email, reference)"
ASCII = f"strlen({TEXT}) = length({TEXT})"
SPOKEN = "deleted_at IS NULL"
ANSWERS = f"{SPOKEN} AND sender_type = 'operator' AND NOT coalesce(auto_invitation, false)"

QUERIES = {
    KNOWN: f"""
        SELECT users.id AS user_id, name, email, reference,
            coalesce(said.messages, 0) AS messages, said.last_message_at,
            CAST(NULL AS TIMESTAMPTZ) AS first_message_at,
            CAST(NULL AS VARCHAR) AS last_sender_type,
            CAST(NULL AS BIGINT) AS user_messages, CAST(NULL AS BIGINT) AS operator_messages,
            CAST(NULL AS BIGINT) AS auto_invitations, CAST(NULL AS BIGINT) AS files,
            CAST(NULL AS BIGINT) AS unread_by_user, CAST(NULL AS BIGINT) AS unread_by_operator
        FROM users LEFT JOIN (
            SELECT user_id, count(*) AS messages, max(created_at) AS last_message_at
            FROM messages WHERE {SPOKEN} GROUP BY user_id
        ) AS said ON said.user_id = users.id
        WHERE {SPOKEN}
    """,
    FOLDED: f"SELECT user_id, lower({TEXT}) AS text FROM {KNOWN} WHERE {ASCII}",
    OPERATORS: f"""
        SELECT sender_id AS id, count(*) AS messages, count(DISTINCT user_id) AS conversations,
            coalesce(arg_max(
                nullif(concat_ws(' ', sender_forename, sender_surname), ''),
                coalesce(created_at, TIMESTAMPTZ 'epoch')
            ), '') AS name
        FROM messages WHERE {ANSWERS} AND sender_id IS NOT NULL GROUP BY sender_id
    """,
    COUNTED: f"""
        SELECT conversations.* EXCLUDE (first_response_seconds, complete), users.reference,
            answered.operator_ids
        FROM conversations JOIN users ON users.id = conversations.user_id
        LEFT JOIN (
            SELECT user_id, list(DISTINCT sender_id) AS operator_ids
            FROM messages WHERE {ANSWERS} GROUP BY user_id
        ) AS answered ON answered.user_id = conversations.user_id
    """,
    LAST_BODIES: f"""
        SELECT user_id, left(body, {PREVIEW}) AS body FROM messages SEMI JOIN (
            SELECT user_id, arg_max(id, (created_at, id)) AS id
            FROM messages WHERE {SPOKEN} GROUP BY user_id
        ) USING (user_id, id)
    """,
}
"""In the order in which they are made."""


@dataclass(frozen=True, slots=True)
class CountedPeople:
    """The tables of a snapshot, as far as they are made."""

    manifest: Manifest
    cursor: DuckDBPyConnection
    ready: frozenset[str] = frozenset()

    @property
    def people(self) -> str:
        """The table of people."""
        return COUNTED if COUNTED in self.ready else KNOWN

    @property
    def whole(self) -> bool:
        """Whether all tables are made."""
        return self.ready >= QUERIES.keys()


class PeopleTables:
    """Makes the tables of the newest snapshot in a thread, in the database of its views."""

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader
        self._changed = Condition()
        self._made: CountedPeople | None = None
        """The newest tables that can be used: those of the snapshot, or of the one before it."""
        self._counting: CountedPeople | None = None
        self._thread: Thread | None = None
        self._error: tuple[Manifest, str] | None = None
        """Why the tables of a snapshot could not be made."""
        self._closed = False
        self._all_wanted = False

    def get(self, *needed: str, newest: bool = False) -> CountedPeople:
        """The tables of the newest snapshot, or an earlier one; waits for the ``needed`` ones.

        With ``newest``, never those of an earlier one.
        """
        opened = self._reader.snapshot()
        with self._changed:
            self._begin(opened)
            self._want_all()
            while True:
                if self._closed:
                    raise MirrorError("counting was stopped")
                self._drop_removed(opened)
                made = self._made
                if (
                    made is not None
                    and made.ready.issuperset(needed)
                    and (not newest or made.manifest == opened.manifest)
                ):
                    return made
                if self._counting is None:
                    if self._error is not None and self._error[0] == opened.manifest:
                        raise MirrorError(self._error[1])
                    # The count that ended was of another snapshot, perhaps of a newer one.
                    opened = self._reader.snapshot()
                    self._begin(opened)
                else:
                    self._changed.wait()

    def _drop_removed(self, opened: OpenSnapshot) -> None:
        """Drops the tables of an earlier snapshot whose files are removed, as by a ``forget``."""
        made = self._made
        if made is None or made.manifest.sequence >= opened.manifest.sequence:
            return
        stays = (
            snapshot_name(made.manifest.sequence) in opened.manifest.retired
            and made.manifest.folder(opened.mirror).exists()
        )
        if not stays:
            self._made = None

    def prepare(self) -> None:
        """Begins with the table of people; the others follow when anything is asked for."""
        opened = self._reader.snapshot()
        with self._changed:
            self._begin(opened)

    def are_counted(self) -> bool:
        """Whether the tables of the newest snapshot are all made; begins to make them if not."""
        opened = self._reader.snapshot()
        with self._changed:
            self._begin(opened)
            self._want_all()
            made = self._made
            return made is not None and made.whole and made.manifest == opened.manifest

    def _want_all(self) -> None:
        self._all_wanted = True
        self._changed.notify_all()

    def close(self) -> None:
        """Ends the thread, and gives up the tables."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            counting, thread = self._counting, self._thread
            self._made = None
        if counting is None or thread is None:
            return
        ends = monotonic() + SECONDS_TO_END
        while thread.is_alive() and monotonic() < ends:
            # Each time the query that is running; it may be between two.
            counting.cursor.interrupt()
            thread.join(0.02)

    def _begin(self, opened: OpenSnapshot) -> None:
        """Starts a thread unless these tables are made, or others are being made."""
        if self._counting is not None or self._closed:
            return
        if self._made is not None and self._made.manifest == opened.manifest and self._made.whole:
            return
        self._error = None
        self._counting = CountedPeople(opened.manifest, opened.cursor)
        self._thread = Thread(target=self._count, name="backread-people", daemon=True)
        self._thread.start()

    def _count(self) -> None:
        counting = self._counting
        assert counting is not None
        try:
            for name, query in QUERIES.items():
                self._reader.rows(counting.cursor, f"CREATE OR REPLACE TABLE {name} AS {query}", [])
                if name == FOLDED:
                    self._fold(counting.cursor)
                if self._closed:
                    break
                counting = replace(counting, ready=counting.ready | {name})
                with self._changed:
                    # Earlier figures are worth more than none.
                    if COUNTED in counting.ready or not (self._made and self._made.whole):
                        self._made = counting
                    self._changed.notify_all()
                    while not self._all_wanted and not self._closed:
                        self._changed.wait()
        except BaseException as error:
            # Raised where somebody waits; the next request begins anew.
            with self._changed:
                said = "counting was stopped" if self._closed else str(error)
                self._error = counting.manifest, said
        finally:
            with self._changed:
                self._counting = None
                self._changed.notify_all()

    def _fold(self, cursor: DuckDBPyConnection) -> None:
        """Adds the texts that are not ASCII, which SQL cannot fold."""
        [(count,)] = self._reader.rows(cursor, f"SELECT count(*) FROM {KNOWN}", [])
        for first in range(0, count, FOLDED_AT_ONCE):
            rows = self._reader.rows(
                cursor,
                f"SELECT user_id, {TEXT} FROM {KNOWN} WHERE NOT ({ASCII}) "
                f"AND rowid >= {first} AND rowid < {first + FOLDED_AT_ONCE}",
                [],
            )
            self._reader.rows(
                cursor,
                f"INSERT INTO {FOLDED} SELECT unnest(?::BIGINT[]), unnest(?::VARCHAR[])",
                [[user_id for user_id, _ in rows], [fold(text) for _, text in rows]],
            )
