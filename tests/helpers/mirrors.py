"""What the tests of the mirror share: syncs in one line, and a service without a socket.

``BatchSource`` stands in for a client where a test needs to say which rows come in which commit,
what is certified, or where the service is; ``batch`` makes what it gives, in the core's columns.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest

from backread import Client
from backread._backread import empty_table
from backread.mirror import Mirror, SyncReport
from backread.mirror.store.database import open_database
from backread.mirror.store.engine import rows_of
from backread.mirror.sync.known import Known, StoredRows
from backread.mirror.sync.report import Mode
from backread.mirror.sync.synchronize import Options, synchronize
from backread.testing import MockServer, World
from helpers.scripted_server import ScriptedServer

pytest.importorskip("pyarrow")

import pyarrow as pa

Row = dict[str, Any]
Certificate = Literal["snapshot", "counted", "linked", "uncertified"]
TableName = Literal["users", "messages", "lists", "rejects", "gone"]


def sync(mirror: Mirror, server: MockServer | ScriptedServer, **options: Any) -> SyncReport:
    """One sync from a server."""
    with Client(server.url, server.secret, server.vendor) as client:
        return mirror.sync(client, **options)


def rows(mirror: Mirror, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query over what is published."""
    return mirror.sql(query).fetchall()


def leave_torn_log(folder: Path) -> None:
    """Leaves the log of a commit, with zeros at its end."""
    database, log = folder / "mirror.duckdb", folder / "mirror.duckdb.wal"
    with open_database(folder) as connection:
        rows_of(connection, "INSERT INTO meta SELECT 'key ' || range, range FROM range(1000)")
        kept, torn = database.read_bytes(), log.read_bytes()[:-100] + bytes(100)
    # Closing it has written the commit into the database, and removed the log.
    database.write_bytes(kept)
    log.write_bytes(torn)


def data_files(mirror: Mirror, table: str) -> set[int]:
    """What tells the files of a table in the published snapshot from others, whatever their names.

    An unchanged file is the same in the next snapshot.
    """
    snapshot = mirror.folder / "published" / "current"
    manifest = json.loads((snapshot / "snapshot.json").read_bytes())
    files = manifest["tables"][table]
    return {(snapshot / table / file["name"]).stat().st_ino for file in files if file["rows"]}


def marked(mirror: Mirror) -> tuple[list[Any], list[Any]]:
    """The ids of the users and of the messages that are marked as gone."""
    users = rows(mirror, "SELECT id FROM users WHERE deleted_at IS NOT NULL ORDER BY 1")
    messages = rows(mirror, "SELECT id FROM messages WHERE deleted_at IS NOT NULL ORDER BY 1")
    return [each for (each,) in users], [each for (each,) in messages]


def missed(mirror: Mirror, world: World) -> list[str]:
    """What a world has and the published snapshot has not, or has otherwise."""
    users = {
        each: world.user(each) | {"messages": world.message_ids(each)} for each in world.user_ids()
    }
    held_users = dict(rows(mirror, "SELECT id, (name, email, last_url) FROM users"))
    wrong = [
        f"user {user_id}"
        for user_id, user in users.items()
        if held_users.get(user_id) != (user["name"], user["email"], user["last_url"])
    ]
    held = {
        (user_id, message_id): fields
        for user_id, message_id, *fields in rows(
            mirror, "SELECT user_id, id, body, read_by_user, read_by_operator FROM messages"
        )
    }
    for user_id, user in users.items():
        for message_id in user["messages"]:
            message = world.message(user_id, message_id)
            served = [message["body"], message["read_by_user"], message["read_by_operator"]]
            if held.get((user_id, message_id)) != served:
                wrong.append(f"message {message_id} of user {user_id}")
    return wrong


@dataclass
class Report:
    """What the mirror keeps of the sweep over the users."""

    certificate: str
    reason: str | None = None
    requests: int = 1


@dataclass
class Batch:
    """One commit's worth, as the core gives it."""

    users: pa.Table | None = None
    messages: pa.Table | None = None
    lists: pa.Table | None = None
    rejects: pa.Table | None = None
    gone: pa.Table | None = None
    users_report: Report | None = None
    users_state: str | None = None
    audit: tuple[str, int, int] | None = None


@dataclass
class Progress:
    """How far a reading has come, as the core says."""

    requests: int = 0
    users_total: int | None = None
    lists_total: int | None = None
    lists_done: int = 0
    outage_seconds: float = 0.0


def table(name: TableName, given: Sequence[Row]) -> pa.Table:
    """Rows in the core's columns; a field that is not given is null."""
    schema = pa.table(empty_table(name)).schema
    return pa.Table.from_pylist(list(given), schema=schema)


def ended(user_id: int, certificate: Certificate = "snapshot", **fields: Any) -> Row:
    """The row of a list that was swept whole and has ended now."""
    return {
        "user_id": user_id,
        "rows": 0,
        "certificate": certificate,
        "kind": "whole",
        "checked_at": datetime.now(UTC),
        "swept_at": datetime.now(UTC),
        "state": "{}",
        "rows_differ": False,
        "audited": False,
    } | fields


def half_read(user_id: int | None, state: str) -> Row:
    """A list that is read on from this state; ``None`` is the list of users."""
    return ended(0, "uncertified", kind="partial", state=state) | {"user_id": user_id}


def batch(
    users: Sequence[Row] = (),
    messages: Sequence[Row] = (),
    rejects: Sequence[Row] = (),
    *,
    swept: Certificate | None = None,
    lists: dict[int, Certificate] | Sequence[Row] = (),
    half_read: Sequence[Row] = (),
    gone: Sequence[Row] = (),
) -> Batch:
    """A batch; ``swept`` ends the users with this certificate, ``lists`` those users' lists."""
    now = datetime.now(UTC)
    if isinstance(lists, dict):
        lists = [ended(*each) for each in lists.items()]
    lists = [*(each for each in half_read if each["user_id"] is not None), *lists]
    users_states = [each["state"] for each in half_read if each["user_id"] is None]
    rejected = [{"json": "{}", "reason": "does not fit", "seen_at": now} | each for each in rejects]
    return Batch(
        table("users", users) if users else None,
        table("messages", messages) if messages else None,
        table("lists", lists) if lists else None,
        table("rejects", rejected) if rejected else None,
        table("gone", gone) if gone else None,
        Report(swept) if swept else None,
        users_states[0] if users_states else None,
    )


class BatchReading:
    """These batches in turn; breaks off where one of them is an exception.

    Each costs a request, and so does finding that there is no more.
    """

    def __init__(
        self, batches: Sequence[Batch | BaseException], *, ended_early: bool = False
    ) -> None:
        self._batches = iter(batches)
        self.ended_early = ended_early
        self._progress = Progress()
        self.stopped = False
        self.stopped_by: BaseException | None = None
        self.service_date: datetime | None = None
        self.repaired_text = 0

    def progress(self) -> Progress:
        return replace(self._progress)

    def next_batch(self) -> Batch | None:
        following = next(self._batches, None)
        self._progress.requests += 1
        if isinstance(following, BaseException):
            raise following
        return following

    def stop(self) -> None:
        self.stopped = True


class BatchSource:
    """A service that gives these batches, and ``answers`` to what is asked for by id.

    What the mirror said it knows is kept, as rows by table: empty if it said nothing of it.
    """

    def __init__(
        self,
        *batches: Batch | BaseException,
        answers: Sequence[Batch | BaseException] = (),
        ended_early: bool = False,
        base_url: str = "https://chat.example.com",
        vendor: str = "example",
        secret_mark: str = "cafe",
    ) -> None:
        self.base_url = base_url
        self.vendor = vendor
        self._mark = secret_mark
        self.known: dict[str, list[Row]] | None = None
        self.profile: dict[str, Any] | None = None
        self.mode: str | None = None
        self.max_staleness: float | None = None
        self.asked: list[Row] = []
        self.users: list[int] = []
        self.budgets: list[tuple[int | None, float | None]] = []
        self._ended_early = ended_early
        self._batches = batches
        self._answers = answers

    @property
    def done(self) -> list[int] | None:
        """The users whose list need not be read, None if the mirror was never asked."""
        return (
            None if self.known is None else sorted(each["user_id"] for each in self.known["done"])
        )

    def _secret_mark(self, key: bytes) -> str:
        return self._mark

    def _sync_run(
        self,
        known: Known,
        *,
        mode: Mode,
        max_staleness: float | None,
        max_requests: int | None = None,
        max_seconds: float | None = None,
        users: StoredRows | None = None,
        privacy: object = None,
    ) -> BatchReading:
        self.budgets.append((max_requests, max_seconds))
        self.users = [each["user_id"] for each in arrow_rows(users)]
        lists = arrow_rows(known.lists)
        read = [each for each in lists if each.pop("of_this_run")]
        self.known = {
            "lists": [each for each in lists if each not in read or each["kind"] == "unread"],
            "done": [each for each in read if each["kind"] not in ("unread", "partial")],
            "half_read": [each for each in read if each["kind"] == "partial"],
            "held": arrow_rows(known.held),
            "users": arrow_rows(known.users),
        }
        if known.users_state is not None:
            self.known["half_read"].insert(0, {"user_id": None, "state": known.users_state})
        self.profile, self.mode, self.max_staleness = known.profile, mode, max_staleness
        return BatchReading(self._batches, ended_early=self._ended_early)

    def _ask_rows(
        self,
        candidates: StoredRows,
        *,
        max_requests: int | None = None,
        max_seconds: float | None = None,
        privacy: object = None,
    ) -> BatchReading:
        self.budgets.append((max_requests, max_seconds))
        self.asked = arrow_rows(candidates)
        return BatchReading(self._answers)

    def sync_into(
        self, folder: Path, mode: Mode = "incremental", moved: bool = False, **options: Any
    ) -> SyncReport:
        """One sync from here."""
        return synchronize(folder, self, Options(mode=mode, moved=moved, **options))


def arrow_rows(stream: StoredRows | None) -> list[Row]:
    """The rows of an Arrow stream, none if there is none."""
    rows: list[Row] = [] if stream is None else pa.table(stream).to_pylist()
    return rows
