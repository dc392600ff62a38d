"""Parses the arguments of an export into one query per table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from backread._client.arguments import LARGEST, whole
from backread._client.columns import KEYS
from backread.errors import MirrorError
from backread.mirror.export.job import TableQuery
from backread.mirror.published.period import ALWAYS, Moment, Period
from backread.mirror.published.table import TableName, unknown_table
from backread.mirror.store.engine import Rows
from backread.mirror.store.schema import MESSAGES

DEFAULT_TABLES: tuple[TableName, ...] = ("users", "messages", "conversations")

WITHOUT_USERS = ("runs",)
"""The tables with no column of users' ids."""

TABLE_KEYS: dict[TableName, tuple[str, ...]] = {
    "users": KEYS["users"],
    "messages": KEYS["messages"],
    "conversations": ("user_id",),
    "lists": ("user_id",),
    "runs": ("run_id",),
}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows of which tables are exported."""

    tables: tuple[TableName, ...] = DEFAULT_TABLES
    period: Period = ALWAYS
    users: tuple[int, ...] | None = None
    deleted: bool = False

    @classmethod
    def parse(
        cls,
        tables: Iterable[str] | None,
        since: Moment | None,
        until: Moment | None,
        users: int | Iterable[int] | None,
        deleted: bool,
    ) -> Selection:
        """The selection; raises ValueError or TypeError for arguments that make no sense."""
        if isinstance(tables, str):
            tables = (tables,)
        chosen = _tables(DEFAULT_TABLES if tables is None else tuple(tables))
        period = Period.parse(since, until)
        user_ids = None if users is None else _user_ids(users)
        for name in chosen:
            if period != ALWAYS and name not in DEFAULT_TABLES:
                raise ValueError(f"since and until select no rows of the table {name}")
            if users is not None and name in WITHOUT_USERS:
                raise ValueError(f"users select no rows of the table {name}")
        return cls(chosen, period, user_ids, deleted)

    @property
    def person(self) -> int:
        """The one user about whom everything is exported."""
        (user_id,) = self.users or (-1,)
        return user_id

    def condition(self, table: TableName) -> str:
        """The WHERE clause for the rows of a table, or nothing."""
        parts = []
        user_id = "id" if table == "users" else "user_id"
        if table in ("users", "messages") and not self.deleted:
            parts.append("deleted_at IS NULL")
        if self.users is not None:
            parts.append(f"{user_id} IN ({', '.join(map(str, self.users))})")
        period = self.period.conditions("created_at")
        if period and table == "messages":
            parts += period
        elif period:
            wrote = f"SELECT user_id FROM messages{self.condition('messages')}"
            parts.append(f"{user_id} IN ({wrote})")
        return f" WHERE {' AND '.join(parts)}" if parts else ""


def queries(rows: Rows, selection: Selection) -> list[TableQuery]:
    """The tables of the export with their queries; counts their rows.

    Raises `MirrorError` for a user who has no rows to export.
    """
    _check_users(rows, selection)
    found = []
    for name in selection.tables:
        key = TABLE_KEYS.get(name, ())
        source = f"FROM {name}{selection.condition(name)}"
        order = MESSAGES.order if name == "messages" else ", ".join(key) or "ALL"
        if name == "messages" and selection.users is None:
            # Sorting all messages would take their size in memory, or on disk.
            order = ""
        found.append(TableQuery.over(rows, name, source, order, key))
    return found


def _check_users(rows: Rows, selection: Selection) -> None:
    if not selection.users:
        return
    listed = ", ".join(map(str, selection.users))
    held: dict[int, bool] = dict(
        rows(f"SELECT id, deleted_at IS NOT NULL FROM users WHERE id IN ({listed})")
    )
    for user_id in selection.users:
        if user_id not in held:
            raise MirrorError(
                f"the published snapshot has no user {user_id}; sync again if the user is new"
            )
        if held[user_id] and not selection.deleted:
            raise MirrorError(
                f"user {user_id} is marked as deleted; export with deleted=True (--deleted)"
            )


def _tables(names: Sequence[str]) -> tuple[TableName, ...]:
    known = get_args(TableName)
    for name in names:
        if name not in known:
            raise unknown_table(name)
    if not names:
        raise ValueError("tables must name at least one table")
    return cast("tuple[TableName, ...]", tuple(dict.fromkeys(names)))


def _user_ids(users: int | Iterable[int]) -> tuple[int, ...]:
    given = users if isinstance(users, Iterable) else (users,)
    user_ids = tuple(dict.fromkeys(whole("users", each, 0, LARGEST, then="") for each in given))
    if not user_ids:
        raise ValueError("users must name at least one user")
    return user_ids
