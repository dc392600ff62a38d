"""The stored state, and the given users, that are passed to the core at the start of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backread.errors import MirrorError
from backread.mirror.store.engine import named_errors, rows_of, stream_of

if TYPE_CHECKING:
    from backread.mirror.store.store import Store

__all__ = ["Known", "StoredRows", "given_users"]


class StoredRows:
    """The rows of a query over the tables, as an Arrow stream; each call runs the query again."""

    __slots__ = ("_query", "_store")

    def __init__(self, store: Store, query: str) -> None:
        self._store = store
        self._query = query

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        # The core calls this, so the errors are DuckDB's own here.
        with named_errors(self._store.folder):
            # An unfinished stream blocks its connection, so it gets a separate one.
            cursor = self._store.connection.cursor()
            # It has the settings of a new connection.
            rows_of(cursor, "USE mirror")
            return stream_of(cursor, self._query, requested_schema)


@dataclass(frozen=True, slots=True)
class Known:
    """The state of the mirror that the core needs; None for what is empty.

    - ``lists``: the newest row of `schema.LISTS` of each user that this run or the one before it
      has read: ``user_id``, ``kind``, ``state`` and ``of_this_run``.
    - ``users_state``: where to continue the list of users, if it is half-read.
    - ``held``: the ids in half-read lists that this run has committed (``user_id``, null for
      users, and ``id``).
    - ``users``: the users read by this run, with ``updated_at`` and ``online_at``, if the sweep
      over them is finished.
    - ``profile``: the stored service profile; of a newer backread it may hold other keys.
    - ``forgotten``: the users (``user_id``) whose rows must not come back.
    """

    lists: StoredRows | None = None
    users_state: str | None = None
    held: StoredRows | None = None
    users: StoredRows | None = None
    profile: dict[str, Any] | None = None
    forgotten: StoredRows | None = None


def given_users(store: Store, user_ids: Sequence[int]) -> StoredRows:
    """The users as rows; raises `MirrorError` if one of them was forgotten."""
    values = ", ".join(f"({user_id})" for user_id in sorted({*user_ids}))
    query = f"SELECT CAST(user_id AS BIGINT) AS user_id FROM (VALUES {values}) AS given(user_id)"
    forgotten = store.rows(f"SELECT user_id FROM forgotten SEMI JOIN ({query}) USING (user_id)")
    if forgotten:
        raise MirrorError(
            f"user {forgotten[0][0]} was forgotten in this mirror and is not read again; leave the "
            "user out"
        )
    return StoredRows(store, query)
