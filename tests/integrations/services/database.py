"""PostgreSQL from Debian in a temporary folder, and users in it as a store of the ASGI app.

with postgresql() as database:
    users = Table(database, newest_first(3_000), "created_at desc")
    with Origin(App(users)) as origin: ...

The server listens on a Unix socket alone, as a user who is not root, without fsync.
"""

import asyncio
import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
from origin import Row, timestamp, user
from processes import running

COLUMNS = ("id", "name", "reference", "created_at", "updated_at")
NUMBERS = itertools.count(1)


def programs() -> Path:
    """The folder of PostgreSQL's programs, of the newest version installed."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name)
    )
    assert found, "PostgreSQL is missing; run: make test-services"
    return found[-1]


@contextlib.contextmanager
def postgresql() -> Iterator[Path]:
    """The folder of the socket of a server that runs."""
    folder = Path(tempfile.mkdtemp(prefix="backread-pg-"))
    options: dict[str, Any] = {}
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root; Debian's package brings this user.
        owner = pwd.getpwnam("postgres")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        options = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    data, socket, log = folder / "data", folder / ".s.PGSQL.5432", folder / "log"
    try:
        subprocess.run(
            [programs() / "initdb", "--no-sync", "-A", "trust", "-U", "backread", "-D", data],
            check=True,
            capture_output=True,
            cwd=folder,
            **options,
        )
        command = [programs() / "postgres", "-D", data, "-k", folder, "-h", "", "-F"]
        # SIGTERM would wait for connections to end.
        with running(command, log, socket.exists, signal.SIGINT, cwd=folder, **options):
            yield folder
    finally:
        shutil.rmtree(folder)


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

    def later(self, statement: str, *arguments: object) -> Callable[[], Awaitable[None]]:
        """`execute`, to be called by the app."""
        return lambda: self.execute(statement, *arguments)

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
