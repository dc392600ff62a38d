"""`Changes`: the rows of a snapshot that changed since an earlier one, as an Arrow stream."""

from __future__ import annotations

import operator
import os
import re
import zlib
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn, SupportsIndex, get_args

from backread._client.arguments import LARGEST
from backread._client.columns import Resource
from backread._files.paths import shown
from backread.errors import MirrorError
from backread.mirror.published.row_stream import RowStream
from backread.mirror.store.engine import from_microseconds, timestamp
from backread.mirror.store.schema import CONTENT_TABLES, TECHNICAL, Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from backread.mirror.published.snapshot_reader import SnapshotReader

AGAIN = "start again with since=None, which gives every row"

CURSOR = re.compile(r"(\w+)\.([0-9a-f]{1,16})\.([0-9a-f]{1,16})\.([0-9a-f]{8})", re.ASCII)
"""The mirror's id, the newest `ENDED` commit and the newest of all, and a checksum of these."""

COMMITS = """
SELECT epoch_us(greatest(ended_at, committed_at)) AS moment,
    state = 'finished' OR scope IS NOT NULL AS ended
FROM runs UNION ALL SELECT epoch_us(forgotten_at), true FROM forgotten
"""
"""The newest commit of each run, in microseconds, and whether it stays that: a partial run commits
again once it is resumed. A database from a backup lacks those after it."""

NEWEST = f"""
SELECT coalesce(max(moment) FILTER (ended), 0), coalesce(max(moment), 0) FROM ({COMMITS})
"""

END_OF_RUN = """
SELECT epoch_us(CASE WHEN resumptions > 0 THEN started_at ELSE ended_at END)
FROM runs WHERE run_id = ? AND ended_at IS NOT NULL
"""
"""When a run ended. One that was resumed may have been read when it was partial, so it counts from
its start: its own rows come again, but none is left out."""


class Changes(RowStream):
    """The rows of users and messages that changed, as an Arrow stream; see `Mirror.changes`.

    Arrow libraries accept it directly: ``polars.DataFrame(changes)``, ``pyarrow.table(changes)``,
    ``pandas.DataFrame.from_arrow(changes)``, and DuckDB, arro3 and deltalake. Every read gives the
    rows of the snapshot that was newest when the object was made. That snapshot's files remain for
    at least 15 minutes after a sync replaces it; begin to read within that time. A later read
    raises `MirrorError`; then make a new object with the same ``since``.
    """

    _caption = "changes"

    def __init__(
        self,
        reader: SnapshotReader,
        since: SupportsIndex | str | None,
        table: Resource | None,
    ) -> None:
        if table is not None and table not in get_args(Resource):
            raise ValueError(f"table must be 'users' or 'messages', not {table!r}")
        if isinstance(since, SupportsIndex) and not isinstance(since, bool):
            # Also the integers of numpy, in which pandas gives run_ids.
            since = operator.index(since)
        elif since is not None and not isinstance(since, str):
            raise TypeError(
                "since must be a run_id, the cursor of an earlier read, or None, not "
                f"{type(since).__name__}"
            )
        self._reader = reader
        self._since = since
        self._table = table
        self._pid = os.getpid()
        self._snapshot = reader.snapshot()
        mirror_id = self._snapshot.manifest.mirror_id
        [(ended, newest)] = self._snapshot.rows(NEWEST)
        self._cursor = _cursor_of(mirror_id, ended, newest)
        if since is None:
            moment = None
        elif isinstance(since, int):
            moment = self._end_of(since)
        else:
            moment = self._moment_of(since, mirror_id, newest)
        self._query = _query(moment, table)

    @property
    def cursor(self) -> str:
        """What to pass as ``since`` to get the changes after these; a short text.

        Store it once all rows are applied.
        """
        return self._cursor

    def _end_of(self, run_id: int) -> datetime:
        found = []
        # Any other number is no BIGINT.
        if 0 <= run_id <= LARGEST:
            found = self._snapshot.rows(END_OF_RUN, [run_id])
        if not found:
            raise MirrorError(
                f"the snapshot in {self._folder} has no finished run {run_id}; {AGAIN}, or pass a "
                "run_id of its table runs"
            )
        return from_microseconds(int(found[0][0]))

    def _moment_of(self, cursor: str, mirror_id: str, newest: int) -> datetime:
        parts = CURSOR.fullmatch(cursor)
        ended, moment = (int(parts[2], 16), int(parts[3], 16)) if parts else (0, 0)
        if parts is None or _cursor_of(parts[1], ended, moment) != cursor:
            raise MirrorError(f"the cursor {cursor!r:.80} is damaged or none at all; {AGAIN}")
        if parts[1] != mirror_id:
            raise MirrorError(
                f"the cursor {cursor!r} is of another mirror than the one in {self._folder}; "
                f"{AGAIN}"
            )
        known = f"SELECT 1 FROM ({COMMITS}) WHERE ended AND moment = ? LIMIT 1"
        is_known = ended == 0 or self._snapshot.rows(known, [ended])
        if moment > newest or not is_known:
            raise MirrorError(
                f"the cursor {cursor!r} is of no snapshot in {self._folder}, as if the mirror had "
                f"been restored from a backup; {AGAIN}"
            )
        return from_microseconds(moment)

    def _opened(self) -> tuple[DuckDBPyConnection, str]:
        if self._pid != os.getpid():
            # DuckDB's threads do not survive a fork.
            raise MirrorError(
                "changes cannot be read in a forked process; call Mirror.changes there"
            )
        return self._snapshot.cursor.cursor(), self._query

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "Changes cannot be iterated; use x.to_arrow(), x.to_polars() or x.to_pandas(), or for "
            "dicts x.to_arrow().to_pylist()"
        )

    def __repr__(self) -> str:
        table = "" if self._table is None else f", table={self._table!r}"
        return f"Mirror({shown(self._folder)!r}).changes(since={self._since!r}{table})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "Changes cannot be pickled, because they read a snapshot that is open in this process; "
            "pass on the mirror and since instead"
        )


def _cursor_of(mirror_id: str, ended: int, newest: int) -> str:
    text = f"{mirror_id}.{ended:x}.{newest:x}"
    return f"{text}.{zlib.crc32(text.encode()):08x}"


def _query(since: datetime | None, table: Resource | None) -> str:
    tables = [each for each in CONTENT_TABLES if table in (None, each.name)]
    names = dict.fromkeys(("table", "change", "user_id", "id"))
    for each in tables:
        names |= dict.fromkeys(each.names)
    names |= dict.fromkeys(name for name, _ in TECHNICAL)
    parts = [part for each in tables for part in _parts(each, since)]
    return f"SELECT {', '.join(map(_name, names))} FROM ({' UNION ALL BY NAME '.join(parts)})"


def _parts(table: Table, since: datetime | None) -> Iterator[str]:
    """The queries for the changed rows of a table, and for its forgotten users."""
    later = "" if since is None else f"> {timestamp(since)}"
    added = f"first_seen_at {later}" if later else "true"
    user = "id AS user_id, " if "user_id" not in table.names else ""
    columns = ", ".join(map(_name, (*table.names, *(name for name, _ in TECHNICAL))))
    yield (
        f"SELECT '{table.name}' AS \"table\", CASE WHEN deleted_at IS NOT NULL THEN 'deleted' "
        f"WHEN {added} THEN 'added' ELSE 'changed' END AS change, {user}{columns} "
        f"FROM {table.name}{f' WHERE changed_at {later}' if later else ''}"
    )
    yield (
        f"SELECT '{table.name}' AS \"table\", 'forgotten' AS change, user_id, "
        f"{'user_id AS id, ' if user else ''}forgotten_at AS changed_at "
        f"FROM forgotten{f' WHERE forgotten_at {later}' if later else ''}"
    )


def _name(column: str) -> str:
    return f'"{column}"'
