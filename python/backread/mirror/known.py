"""What the core is told at the start of a run: the state it left in the mirror, handed back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Known", "StoredRows"]


class StoredRows:
    """The rows of a query over the tables, as an Arrow stream; each call runs the query anew."""

    __slots__ = ("_connection", "_query")

    def __init__(self, connection: DuckDBPyConnection, query: str) -> None:
        self._connection = connection
        self._query = query

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        # A stream that is not at its end blocks its connection, hence one of its own.
        relation = self._connection.cursor().sql(self._query)
        return relation.__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, slots=True)
class Known:
    """The state of the mirror as the core needs it; what there is nothing of is None.

    - ``lists``: the newest row of `schema.LISTS` of each user whose list this run has yet to read.
    - ``done``: the users (``user_id``) whose list this run has read to its end.
    - ``cursors``: where half-read lists go on; ``held``: the ids that this run has committed of
      them (``user_id``, null for users, and ``id``).
    - ``users``: those that this run has read, with ``updated_at`` and ``online_at``, if their
      sweep is finished.
    - ``profile``: the service's profile, as JSON.
    """

    lists: StoredRows | None = None
    done: StoredRows | None = None
    cursors: StoredRows | None = None
    held: StoredRows | None = None
    users: StoredRows | None = None
    profile: str | None = None
