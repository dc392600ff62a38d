"""What the tests of the mirror share: syncs in one line, and a service without a socket.

``BatchSource`` stands in for a client where a test needs to say which rows come in which commit,
what is certified, or where the service is; ``batch`` makes what it gives, in the core's columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest

from backread import Client
from backread._backread import empty_table
from backread.mirror import Mirror, SyncReport
from backread.mirror.synchronize import synchronize
from backread.testing import MockServer
from scripted_server import ScriptedServer

pytest.importorskip("pyarrow")

import pyarrow as pa

Row = dict[str, Any]
Certificate = Literal["snapshot", "uncertified"]


def sync(mirror: Mirror, server: MockServer | ScriptedServer, **options: Any) -> SyncReport:
    """One sync from a server."""
    with Client(server.url, server.secret, server.vendor) as client:
        return mirror.sync(client, **options)


def rows(mirror: Mirror, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query over what is published."""
    return mirror.sql(query).fetchall()


def data_files(mirror: Mirror, table: str) -> set[str]:
    """The files that the published snapshot has of a table."""
    manifest = json.loads((mirror.folder / "published" / "manifest.json").read_bytes())
    return set(manifest["files"][table])


def marked(mirror: Mirror) -> tuple[list[Any], list[Any]]:
    """The ids of the users and of the messages that are marked as gone."""
    users = rows(mirror, "SELECT id FROM users WHERE deleted_at IS NOT NULL ORDER BY 1")
    messages = rows(mirror, "SELECT id FROM messages WHERE deleted_at IS NOT NULL ORDER BY 1")
    return [each for (each,) in users], [each for (each,) in messages]


@dataclass
class Report:
    """What the mirror keeps of the sweep over the users."""

    certificate: str
    reason: str | None = None


@dataclass
class Batch:
    """One commit's worth, as the core gives it."""

    users: pa.Table | None = None
    messages: pa.Table | None = None
    lists: pa.Table | None = None
    rejects: pa.Table | None = None
    users_report: Report | None = None


def table(name: Literal["users", "messages", "lists", "rejects"], given: Sequence[Row]) -> pa.Table:
    """Rows in the core's columns; a field that is not given is null."""
    return pa.Table.from_pylist(list(given), schema=pa.table(empty_table(name)).schema)


def batch(
    users: Sequence[Row] = (),
    messages: Sequence[Row] = (),
    rejects: Sequence[Row] = (),
    *,
    swept: Certificate | None = None,
    lists: dict[int, Certificate] | None = None,
    ended_at: datetime | None = None,
) -> Batch:
    """A batch; ``swept`` ends the users with this certificate, ``lists`` those users' lists.

    ``ended_at`` is when the lists ended: now, if it is not given.
    """
    now = datetime.now(UTC)
    ended = [
        {
            "user_id": user_id,
            "rows": 0,
            "requests": 1,
            "certificate": certificate,
            "started_at": ended_at or now,
            "ended_at": ended_at or now,
        }
        for user_id, certificate in (lists or {}).items()
    ]
    rejected = [{"json": "{}", "reason": "does not fit", "seen_at": now} | each for each in rejects]
    return Batch(
        table("users", users) if users else None,
        table("messages", messages) if messages else None,
        table("lists", ended) if ended else None,
        table("rejects", rejected) if rejected else None,
        Report(swept) if swept else None,
    )


class BatchSource:
    """A service that gives these batches, and breaks off where one of them is an exception.

    ``done`` is what the mirror said it need not read, None if it was never asked.
    """

    def __init__(
        self,
        *batches: Batch | BaseException,
        base_url: str = "https://chat.example.com",
        vendor: str = "example",
    ) -> None:
        self.base_url = base_url
        self.vendor = vendor
        self.done: list[int] | None = None
        self.requests = 0
        self.users_total: int | None = None
        self._batches: Iterator[Batch | BaseException] = iter(batches)

    def _sync_run(self, done: Sequence[int]) -> BatchSource:
        self.done = list(done)
        return self

    def next_batch(self, blocking: bool) -> Batch | None:
        following = next(self._batches, None)
        if isinstance(following, BaseException):
            raise following
        self.requests += 1
        return following

    def stop(self) -> None:
        pass

    def sync_into(
        self,
        folder: Path,
        mode: Literal["incremental", "full"] = "incremental",
        moved: bool = False,
    ) -> SyncReport:
        """One sync from here."""
        return synchronize(folder, self, mode, None, moved)
