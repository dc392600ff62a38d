"""The writer's database: what is held, and where the run stands, in the same transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backread.mirror.engine import from_microseconds, rows_of
from backread.mirror.merge import merge_rows, note_rejected, stage, update_where
from backread.mirror.report import Mode, SyncReport
from backread.mirror.schema import (
    CONTENT_TABLES,
    LIST_NAMES,
    MESSAGES,
    REJECT_KEY,
    REJECT_NAMES,
    USERS,
    Table,
)
from backread.mirror.service import Service

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from backread.mirror.source import ArrowTable, Batch

__all__ = ["RESUME_WITHIN", "Run", "Store"]

# The fields of a report that are not columns of `runs`, or not in the shape they have there.
DERIVED = {"resumed", "lists_by_certificate", "uncertified_users", "started_at", "ended_at"}

RESUME_WITHIN = timedelta(hours=24)
"""A resumed run reads a list again that it finished longer ago than this."""


@dataclass(slots=True)
class Run:
    """One run as it stands in the table ``runs``; the counters are those of committed work."""

    run_id: int
    mode: Mode
    resumed: bool
    started_at: datetime
    done: list[int]
    seconds: float = 0.0
    requests: int = 0
    users: int = 0
    messages: int = 0


class Store:
    """The tables, opened for writing. Its methods commit or leave everything as it was."""

    def __init__(self, folder: Path, connection: DuckDBPyConnection) -> None:
        self.folder = folder
        self.connection = connection

    def rows(self, statement: str, values: list[Any] | None = None) -> list[tuple[Any, ...]]:
        """Runs one statement and gives its rows."""
        return rows_of(self.connection, statement, values)

    def meta(self, key: str) -> str | None:
        """A value of the table ``meta``."""
        found = self.rows("SELECT value FROM meta WHERE key = ?", [key])
        return found[0][0] if found else None

    def service(self) -> Service | None:
        """The service that the mirror holds, None before anything came from one."""
        base_url, vendor = self.meta("base_url"), self.meta("vendor")
        return None if base_url is None or vendor is None else Service(base_url, vendor)

    def _keep_service(self, service: Service) -> None:
        kept = {"base_url": service.base_url, "vendor": service.vendor}
        for key, value in kept.items():
            self.rows("DELETE FROM meta WHERE key = ?", [key])
            self.rows("INSERT INTO meta VALUES (?, ?)", [key, value])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits the block as one, or rolls it back, on Ctrl-C too."""
        self.rows("BEGIN TRANSACTION")
        try:
            yield
            self.rows("COMMIT")
        except BaseException:
            # A failed COMMIT has rolled back by itself.
            with suppress(Exception):
                self.rows("ROLLBACK")
            raise

    def begin_run(self, mode: Mode) -> Run:
        """A new run, or the unfinished one, which becomes ``full`` if either asks for it."""
        now = datetime.now(UTC)
        unfinished = self.rows(
            "SELECT run_id, mode, epoch_us(started_at), seconds, requests, users, messages "
            "FROM runs WHERE state = 'unfinished' ORDER BY run_id DESC LIMIT 1"
        )
        with self.transaction():
            if not unfinished:
                [(run_id,)] = self.rows("SELECT coalesce(max(run_id), 0) + 1 FROM runs")
                self._insert_run(run_id, mode, now)
                return Run(run_id, mode, resumed=False, started_at=now, done=[])
            [(run_id, held_mode, started, seconds, requests, users, messages)] = unfinished
            if held_mode == "full":
                mode = "full"
            done = self._resume(run_id, mode, now)
        began = from_microseconds(started) or now
        return Run(run_id, mode, True, began, done, seconds, requests, users, messages)

    def _insert_run(self, run_id: int, mode: Mode, now: datetime) -> None:
        # Whatever an earlier run left; a finished run leaves nothing.
        for table in CONTENT_TABLES:
            self.rows(f"DELETE FROM seen_{table.name}")
        self.rows(
            "INSERT INTO runs (run_id, mode, state, started_at, resumptions, seconds, requests, "
            "users, messages, users_added, users_updated, messages_added, messages_updated, "
            "deleted, rejects) VALUES (?, ?, 'unfinished', ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)",
            [run_id, mode, now],
        )

    def _resume(self, run_id: int, mode: Mode, now: datetime) -> list[int]:
        # What follows is read again from its start: the users, and each list without an end.
        self.rows(
            "DELETE FROM lists WHERE run_id = ? AND ended_at < ?", [run_id, now - RESUME_WITHIN]
        )
        self.rows("DELETE FROM seen_users")
        self.rows(
            "DELETE FROM seen_messages WHERE user_id NOT IN "
            "(SELECT user_id FROM lists WHERE run_id = ?)",
            [run_id],
        )
        self.rows(
            "UPDATE runs SET mode = ?, resumptions = resumptions + 1, certificate = NULL, "
            "certificate_reason = NULL WHERE run_id = ?",
            [mode, run_id],
        )
        done = self.rows(
            "SELECT DISTINCT user_id FROM lists WHERE run_id = ? ORDER BY user_id", [run_id]
        )
        return [user_id for (user_id,) in done]

    def commit(
        self, run: Run, batch: Batch, service: Service, requests: int, seconds: float
    ) -> None:
        """One batch in one transaction: its rows, its finished lists, its rejects, the counters.

        ``service`` is where it came from, ``requests`` and ``seconds`` are what was spent since the
        commit before.
        """
        now = datetime.now(UTC)
        names = ("users_added", "users_updated", "messages_added", "messages_updated")
        counts: dict[str, int] = dict.fromkeys(names, 0)
        read = {"users": 0, "messages": 0}
        with self.transaction():
            # Kept with the first rows that came from there, so that a mistyped address is not.
            if self.service() != service:
                self._keep_service(service)
            for table, rows in ((USERS, batch.users), (MESSAGES, batch.messages)):
                if rows is not None and rows.num_rows:
                    read[table.name] = rows.num_rows
                    added, updated = merge_rows(self.connection, table, rows, now)
                    counts[f"{table.name}_added"] = added
                    counts[f"{table.name}_updated"] = updated
            if batch.lists is not None and batch.lists.num_rows:
                self._append_lists(run, batch.lists)
            if batch.rejects is not None and batch.rejects.num_rows:
                for table, back in self._merge_rejects(run, batch.rejects):
                    counts[f"{table.name}_updated"] += back
            if batch.users_report is not None:
                self.rows(
                    "UPDATE runs SET certificate = ?, certificate_reason = ? WHERE run_id = ?",
                    [batch.users_report.certificate, batch.users_report.reason, run.run_id],
                )
            increments = counts | read | {"requests": requests}
            self.rows(
                f"UPDATE runs SET {', '.join(f'{name} = {name} + ?' for name in increments)}, "
                "seconds = seconds + ? WHERE run_id = ?",
                [*increments.values(), seconds, run.run_id],
            )
        run.users += read["users"]
        run.messages += read["messages"]
        run.requests += requests
        run.seconds += seconds

    def _append_lists(self, run: Run, rows: ArrowTable) -> None:
        stage(self.connection, rows, LIST_NAMES)
        columns = ", ".join(LIST_NAMES)
        self.rows(
            f"INSERT INTO lists (run_id, {columns}) SELECT ?, {columns} FROM staged", [run.run_id]
        )

    def _merge_rejects(self, run: Run, rows: ArrowTable) -> list[tuple[Table, int]]:
        """Keeps the rejects; gives for each table how many of its rows came back as one."""
        stage(self.connection, rows, REJECT_NAMES)
        key = ", ".join(REJECT_KEY)
        # Null ids are equal here.
        same = " AND ".join(f"held.{name} IS NOT DISTINCT FROM seen.{name}" for name in REJECT_KEY)
        self.rows(
            f"""
            MERGE INTO rejects AS held USING (
                SELECT {key}, min(seen_at) AS first, max(seen_at) AS last FROM staged GROUP BY ALL
            ) AS seen ON {same}
            WHEN MATCHED THEN UPDATE SET run_id = ?, last_seen_at = seen.last
            WHEN NOT MATCHED THEN INSERT ({key}, run_id, first_seen_at, last_seen_at)
                VALUES ({", ".join(f"seen.{name}" for name in REJECT_KEY)}, ?,
                        seen.first, seen.last)
            """,
            [run.run_id, run.run_id],
        )
        return [(table, note_rejected(self.connection, table)) for table in CONTENT_TABLES]

    def record_error(self, run: Run, error: BaseException) -> None:
        """Keeps in the run what stopped it, for whoever looks at the mirror later."""
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        with self.transaction():
            self.rows("UPDATE runs SET error = ? WHERE run_id = ?", [text, run.run_id])

    def finish(self, run: Run, requests: int, seconds: float) -> SyncReport:
        """Closes the run in one transaction: notes what it did not see, marks what is gone."""
        now = datetime.now(UTC)
        with self.transaction():
            self._note_unseen()
            deleted = self._mark_deleted(run, now) if run.mode == "full" else 0
            self.rows(
                "DELETE FROM lists WHERE run_id <> ? AND user_id IN "
                "(SELECT user_id FROM lists WHERE run_id = ?)",
                [run.run_id, run.run_id],
            )
            for table in CONTENT_TABLES:
                self.rows(f"DELETE FROM seen_{table.name}")
            self.rows(
                """
                UPDATE runs SET state = 'finished', ended_at = ?, requests = requests + ?,
                    seconds = seconds + ?, deleted = ?, error = NULL,
                    certificate = coalesce(certificate, 'uncertified'),
                    rejects = (SELECT count(*) FROM rejects WHERE run_id = $run),
                    lists_by_certificate = (
                        SELECT map_from_entries(list((certificate, rows) ORDER BY certificate))
                        FROM (SELECT certificate, count(*) AS rows FROM lists
                              WHERE run_id = $run GROUP BY certificate))
                WHERE run_id = $run
                """.replace("$run", str(run.run_id)),
                [now, requests, seconds, deleted],
            )
        return self.report(run.run_id)

    def _note_unseen(self) -> None:
        # A row without last_seen_at was seen by the run before this one, or came in this one.
        [(before,)] = self.rows("SELECT max(ended_at)::VARCHAR FROM runs WHERE state = 'finished'")
        for table in CONTENT_TABLES:
            same = " AND ".join(f"seen.{name} = {table.name}.{name}" for name in table.key)
            update_where(
                self.connection,
                table,
                f"last_seen_at IS NULL AND NOT EXISTS "
                f"(SELECT 1 FROM seen_{table.name} AS seen WHERE {same})",
                "last_seen_at = greatest(first_seen_at, CAST(? AS TIMESTAMPTZ))",
                [before],
            )

    def _mark_deleted(self, run: Run, now: datetime) -> int:
        # After _note_unseen, a row with last_seen_at is one that this run did not show.
        unseen = "deleted_at IS NULL AND last_seen_at IS NOT NULL"
        # A reject without an id could be any row of its list.
        nameless = f"FROM rejects WHERE run_id = {run.run_id} AND id IS NULL AND resource ="
        [(proved,)] = self.rows(
            "SELECT coalesce(certificate <> 'uncertified', false) AND "
            f"NOT EXISTS (SELECT 1 {nameless} 'users') FROM runs WHERE run_id = ?",
            [run.run_id],
        )
        deleted = 0
        if proved:
            deleted += update_where(self.connection, USERS, unseen, "deleted_at = ?", [now])
        deleted += update_where(
            self.connection,
            MESSAGES,
            f"{unseen} AND user_id IN (SELECT user_id FROM lists WHERE run_id = {run.run_id} "
            f"AND certificate <> 'uncertified' EXCEPT SELECT user_id {nameless} 'messages')",
            "deleted_at = ?",
            [now],
        )
        deleted += update_where(
            self.connection,
            MESSAGES,
            "deleted_at IS NULL AND user_id IN (SELECT id FROM users WHERE deleted_at IS NOT NULL)",
            "deleted_at = ?, last_seen_at = coalesce(messages.last_seen_at, ?)",
            [now, now],
        )
        return deleted

    def report(self, run_id: int) -> SyncReport:
        """The report of a finished run."""
        names = [each.name for each in fields(SyncReport) if each.name not in DERIVED]
        [(*values, resumptions, lists, started, ended)] = self.rows(
            f"SELECT {', '.join(names)}, resumptions, lists_by_certificate, "
            "epoch_us(started_at), epoch_us(ended_at) FROM runs WHERE run_id = ?",
            [run_id],
        )
        uncertified = self.rows(
            "SELECT DISTINCT user_id FROM lists WHERE run_id = ? AND certificate = 'uncertified' "
            "ORDER BY user_id",
            [run_id],
        )
        return SyncReport(
            **dict(zip(names, values, strict=True)),
            resumed=resumptions > 0,
            lists_by_certificate=lists or {},
            uncertified_users=tuple(user_id for (user_id,) in uncertified),
            started_at=from_microseconds(int(started)),
            ended_at=from_microseconds(int(ended)),
        )
