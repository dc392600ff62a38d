"""The tables of the mirror, as declared for the writer, the publication and the views."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from backread._client.columns import ATTRIBUTE, COLUMNS, KEYS
from backread.errors import MirrorError

FORMAT = 8
"""Incremented whenever the tables or the manifest change; mirrors of another format are refused."""

Column = tuple[str, str]
"""Name and SQL type."""

SQL_TYPES = {
    "int": "BIGINT",
    "bool": "BOOLEAN",
    "str": "VARCHAR",
    "datetime": "TIMESTAMPTZ",
    "dict": "VARCHAR",
    "tuple": "STRUCT(" + ", ".join(f'"{each.name}" VARCHAR' for each in ATTRIBUTE) + ")[]",
}
"""By kind of `backread._client.columns.Column`: dict is stored as JSON text."""


@dataclass(frozen=True, slots=True)
class Table:
    """The table of users or of messages, and the order of its rows in a published file."""

    name: Literal["users", "messages"]
    order: str

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a record, without the technical ones."""
        return tuple((each.name, SQL_TYPES[each.kind]) for each in COLUMNS[self.name])

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return KEYS[self.name]

    @property
    def user_column(self) -> str:
        """The column with the id of the user, by which rows are split into files."""
        return self.key[0]

    @property
    def unpublished(self) -> str:
        """The table of keys of rows changed since the last publication."""
        return f"unpublished_{self.name}"

    @property
    def matters(self) -> tuple[str, ...]:
        """What of a message counts as a change of its list, as SQL expressions over ``{0}``."""
        if self.name == "users":
            return ()
        # Signed links differ in each answer.
        return (
            *('{0}."body"', "{0}.created_at", "{0}.sender_type", "{0}.sender_id"),
            "split_part({0}.file_url, '?', 1)",
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order, without the technical ones."""
        return tuple(name for name, _ in self.columns)

    def text_bytes(self, source: str) -> str:
        """The SQL expression for `TEXT_BYTES` of a row of this source, approximately."""
        terms = []
        for name, kind in self.columns:
            if kind == "VARCHAR":
                terms.append(f'coalesce(strlen({source}."{name}"), 0)')
            elif kind.endswith("]"):
                terms.append(f'coalesce(strlen(CAST({source}."{name}" AS VARCHAR)), 0)')
        return " + ".join(terms)


# Nullable in SQL, but first_seen_at is always set. A null last_seen_at means the newest finished
# run, so that a run need not rewrite rows it saw unchanged.
TECHNICAL: tuple[Column, ...] = (
    ("first_seen_at", "TIMESTAMPTZ"),
    ("last_seen_at", "TIMESTAMPTZ"),
    ("deleted_at", "TIMESTAMPTZ"),
    # The commit of the last change to any column but last_seen_at, and its run.
    ("changed_at", "TIMESTAMPTZ"),
    ("changed_in_run", "BIGINT"),
)

TEXT_BYTES: Column = ("text_bytes", "BIGINT")
"""The bytes of a row's texts, so that a publication need not read the texts to know them.

Not published.
"""

CHANGED = "changed_at = ?, changed_in_run = ?"
"""Assignments for a changed row; their values are `Store.now` and the run's id."""

USERS = Table(name="users", order="id")
MESSAGES = Table(name="messages", order="user_id, created_at, id")

CONTENT_TABLES = (USERS, MESSAGES)

WIDE_COLUMN = ("messages", "body")
WIDE = " USING COMPRESSION zstd"
"""What DuckDB chooses itself for texts takes up to 14 times the CPU with bodies of 10 KB."""

LISTS: tuple[Column, ...] = (
    ("user_id", "BIGINT"),
    # The run that read it last; the newest row of a user counts.
    ("run_id", "BIGINT"),
    ("rows", "BIGINT"),
    ("total", "BIGINT"),
    ("certificate", "VARCHAR"),
    ("kind", "VARCHAR"),
    ("reason", "VARCHAR"),
    # When its last reading began.
    ("checked_at", "TIMESTAMPTZ"),
    # When it was last read in full.
    ("swept_at", "TIMESTAMPTZ"),
    # What the core needs to know next time, as JSON; null if the whole list must be read.
    ("state", "VARCHAR"),
)

LIST_NAMES = tuple(name for name, _ in LISTS if name != "run_id")
"""The columns of `LISTS` that the core fills."""

STATES = (("lists", "state"), ("runs", "users_state"), ("runs", "audit_state"))
"""What only the core reads, and is not published: by table and column."""

GONE_NAMES = ("resource", "user_id", "id")
"""The key of a row that was fetched by id; for a user both ids are the user's."""

REJECTS: tuple[Column, ...] = (
    ("resource", "VARCHAR"),
    ("user_id", "BIGINT"),
    # Null if the record has no integer id, so it may be any row of its list.
    ("id", "BIGINT"),
    ("json", "VARCHAR"),
    ("reason", "VARCHAR"),
    ("run_id", "BIGINT"),
    ("first_seen_at", "TIMESTAMPTZ"),
    ("last_seen_at", "TIMESTAMPTZ"),
)

REJECT_KEY = ("resource", "user_id", "id", "json", "reason")
"""A record rejected repeatedly for the same reason is stored once."""

REJECTED_ID = (
    "CASE WHEN json_valid(json) "
    "THEN regexp_replace(trim(json_extract_string(json, '$.id')), '[.]0+$', '') END"
)
"""The id in a reject's JSON as text; it may be text there, or a number such as 42.0."""

REJECT_NAMES = (*REJECT_KEY, "seen_at")
"""The core's columns of a reject; the mirror stores the first and the last ``seen_at``."""

RUNS: tuple[Column, ...] = (
    ("run_id", "BIGINT"),
    ("mode", "VARCHAR"),
    ("state", "VARCHAR"),
    ("resumptions", "BIGINT"),
    ("started_at", "TIMESTAMPTZ"),
    ("ended_at", "TIMESTAMPTZ"),
    ("seconds", "DOUBLE"),
    ("requests", "BIGINT"),
    ("users", "BIGINT"),
    ("messages", "BIGINT"),
    ("users_added", "BIGINT"),
    ("users_updated", "BIGINT"),
    ("messages_added", "BIGINT"),
    ("messages_updated", "BIGINT"),
    ("deleted", "BIGINT"),
    ("rejects", "BIGINT"),
    ("certificate", "VARCHAR"),
    ("certificate_reason", "VARCHAR"),
    ("lists_by_certificate", "MAP(VARCHAR, BIGINT)"),
    ("error", "VARCHAR"),
    ("lists_by_kind", "MAP(VARCHAR, BIGINT)"),
    ("rows_asked", "BIGINT"),
    # When the sweep over the users was committed; a resumed run does not repeat it.
    ("users_swept_at", "TIMESTAMPTZ"),
    ("outage_seconds", "DOUBLE"),
    # "users" for a run that read only given users, null otherwise.
    ("scope", "VARCHAR"),
    # How often the list of users was swept, and the requests that took.
    ("sweeps", "BIGINT"),
    ("sweep_requests", "BIGINT"),
    # For a partial run; null if unknown, since the list of users is not read to its end.
    ("lists_done", "BIGINT"),
    ("lists_left", "BIGINT"),
    ("lists_never_read", "BIGINT"),
    ("oldest_list_at", "TIMESTAMPTZ"),
    # The newest commit of the run.
    ("committed_at", "TIMESTAMPTZ"),
    # Where to resume the list of users, as JSON; null unless it is half-read.
    ("users_state", "VARCHAR"),
    # Of a quick run: the lists it skipped, and if its audit ended without a miss, trusted; those
    # that it drew for the audit, and has read of them; and the core's sample, as JSON.
    ("lists_skipped", "BIGINT"),
    ("lists_trusted", "BIGINT"),
    ("lists_to_audit", "BIGINT"),
    ("lists_audited", "BIGINT"),
    ("audit_state", "VARCHAR"),
    # Changed lists whose user's hints had not moved, and the first of these users.
    ("audit_misses", "BIGINT"),
    ("missed_user", "BIGINT"),
    # Changed lists of which it is not known yet whether their users' hints have moved by now.
    ("lists_unverified", "BIGINT"),
    # Users whose list was certified at both readings, those of them whose hints moved, and those
    # of these whose list had changed; and in how many of them only operators wrote.
    ("hints_compared", "BIGINT"),
    ("hints_moved", "BIGINT"),
    ("changes_announced", "BIGINT"),
    ("changes_by_operators", "BIGINT"),
    # The sync was told that the service moved.
    ("moved", "BOOLEAN"),
    # In seconds.
    ("max_staleness", "DOUBLE"),
    ("repaired_text", "BIGINT"),
)

ALL_USERS = "scope IS NULL"
"""The condition for runs over all users."""

READ_ALL = f"state = 'finished' AND {ALL_USERS} AND mode <> 'quick'"
"""The condition for runs that have ended and skipped no list."""

LAST_FINISHED = f"(SELECT coalesce(max(run_id), 0) FROM runs WHERE {READ_ALL})"
"""The id of the newest such run, 0 before the first, as an SQL expression."""

FORGOTTEN: tuple[Column, ...] = (("user_id", "BIGINT"), ("forgotten_at", "TIMESTAMPTZ"))
"""The users that `Mirror.forget` removed, who must not come back."""

FILES: tuple[Column, ...] = (
    ("user_id", "BIGINT"),
    ("message_id", "BIGINT"),
    # As of the last attempt.
    ("file_url", "VARCHAR"),
    # Of the link, made safe for file systems.
    ("name", "VARCHAR"),
    # In hexadecimal; null unless the file is stored.
    ("sha256", "VARCHAR"),
    ("bytes", "BIGINT"),
    # As the file's server stated it.
    ("media_type", "VARCHAR"),
    # Why it is not stored.
    ("reason", "VARCHAR"),
    ("attempts", "BIGINT"),
    ("tried_at", "TIMESTAMPTZ"),
)
"""The attachments that `Mirror.fetch_files` tried to fetch."""

SIDE_TABLES: dict[str, tuple[Column, ...]] = {
    "lists": LISTS,
    "rejects": REJECTS,
    "runs": RUNS,
    "forgotten": FORGOTTEN,
    "files": FILES,
}
"""Small tables that are always published in full."""

META: tuple[Column, ...] = (("key", "VARCHAR"), ("value", "VARCHAR"))

PURGE_PENDING = "purge_pending"
"""The key in ``meta`` that is set while traces of deleted rows may be left."""

PROFILE = "profile"
"""The key in ``meta`` of the service's profile as JSON; in a snapshot it is a table of one row."""

PRIVACY = "privacy"
"""The key in ``meta`` of how the rows were made private, as JSON; missing if they are as sent."""

SECRET_MARK = "secret_mark"
"""The key in ``meta`` of what tells that a sync has another secret, see `Service`."""


def tables() -> dict[str, tuple[Column, ...]]:
    """The columns of each table of the database. No keys or indexes: MERGE prevents duplicates."""
    found = {"meta": META, **SIDE_TABLES}
    for table in CONTENT_TABLES:
        key = tuple(column for column in table.columns if column[0] in table.key)
        found |= {
            table.name: (*table.columns, *TECHNICAL, TEXT_BYTES),
            f"seen_{table.name}": key,
            table.unpublished: key,
        }
    return found


def create_statements(mirror_id: str) -> list[str]:
    """The statements that create an empty mirror."""
    return [
        *(_create_table(name, columns) for name, columns in tables().items()),
        f"INSERT INTO meta VALUES ('schema_version', '{FORMAT}')",
        f"INSERT INTO meta VALUES ('mirror_id', '{mirror_id}')",
    ]


def _create_table(name: str, columns: tuple[Column, ...]) -> str:
    stored = ", ".join(
        f"{column} {kind}{WIDE if (name, column) == WIDE_COLUMN else ''}"
        for column, kind in columns
    )
    return f"CREATE TABLE {name} ({stored})"


def other_format(folder: Path, found: object) -> MirrorError:
    """The error for a mirror of another format than `FORMAT`."""
    return MirrorError(
        f"the mirror in {folder} has format {found!s:.20}, and this backread reads only format "
        f"{FORMAT}; sync into a new folder"
    )
