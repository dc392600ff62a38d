"""Users in a table of PostgreSQL as a store of the ASGI app.

with postgresql() as database:
    users = Table(database, newest_first(3_000), "created_at desc")
    with Origin(App(users)) as origin: ...
"""

import asyncio
import contextlib
import itertools
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
from origin import Row, timestamp, user

COLUMNS = ("id", "name", "reference", "created_at", "updated_at")
NUMBERS = itertools.count(1)


class Table:
    """Users in a table of their own, shown in ``order``, SQL after ORDER BY, or in none."""

    def __init__(self, database: Path, rows: Sequence[Row], order: str | None) -> None:
        self.name = f"users_{next(NUMBERS)}"
        self._database = database
        self._order = "" if order is None else f"ORDER BY {order}"
        self._pool: asyncpg.Pool[Any] | None = None
        asyncio.run(self._fill(rows))

    async def _fill(self, rows: Sequence[Row]) -> None:
        connection = await self._connect()
        await connection.execute(
            f"CREATE TABLE {self.name} (id bigint PRIMARY KEY, name text, reference text,"
            " created_at timestamptz, updated_at timestamptz)"
        )
        await self.add(rows, connection)
        await connection.execute(f"ANALYZE {self.name}")
        await connection.close()

    async def _connect(self) -> Any:
        # The first connections may come while the server still starts.
        for _ in range(500):
            with contextlib.suppress(OSError, asyncpg.CannotConnectNowError):
                return await asyncpg.connect(**self._where())
            await asyncio.sleep(0.01)
        return await asyncpg.connect(**self._where())

    def _where(self) -> dict[str, Any]:
        return {"host": str(self._database), "user": "backread", "database": "postgres"}

    async def open(self) -> None:
        self._pool = await asyncpg.create_pool(**self._where(), min_size=1, max_size=8)

    async def add(self, rows: Sequence[Row], connection: Any = None) -> None:
        """Adds rows, in one statement."""
        records = [
            tuple(
                datetime.fromisoformat(row[name]) if name.endswith("_at") else row[name]
                for name in COLUMNS
            )
            for row in rows
        ]
        target = connection or self._pool
        assert target is not None
        await target.copy_records_to_table(self.name, records=records, columns=COLUMNS)

    async def execute(self, statement: str, *arguments: object) -> None:
        """Runs SQL, with the name of the table for ``{users}``."""
        assert self._pool is not None
        await self._pool.execute(statement.format(users=self.name), *arguments)

    async def page(self, offset: int, limit: int) -> tuple[Sequence[Row], int | None]:
        assert self._pool is not None
        # Rows and total of one instant.
        async with (
            self._pool.acquire() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            total = await connection.fetchval(f"SELECT count(*) FROM {self.name}")
            rows = await connection.fetch(
                f"SELECT * FROM {self.name} {self._order} LIMIT $1 OFFSET $2", limit, offset
            )
        return [_shown(row) for row in rows], total

    async def get(self, identifier: int) -> Row | None:
        assert self._pool is not None
        row = await self._pool.fetchrow(f"SELECT * FROM {self.name} WHERE id = $1", identifier)
        return None if row is None else _shown(row)

    async def close(self) -> None:
        if self._pool is not None:
            self._pool.terminate()
            self._pool = None


def _shown(row: Any) -> Row:
    return user(
        row["id"],
        name=row["name"],
        reference=row["reference"],
        created_at=timestamp(row["created_at"]),
        updated_at=timestamp(row["updated_at"]),
    )
