"""What a mirror remembers, in memory: the core's side of a sync without a database."""

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from backread import Client
from backread._backread import empty_table
from backread.testing import World

pytest.importorskip("pyarrow")

import pyarrow as pa

Row = dict[str, Any]
Table = Literal["users", "messages", "lists", "rejects", "gone"]

HELD = pa.schema([("user_id", pa.int64()), ("id", pa.int64())])
LISTS = pa.schema(
    [
        ("user_id", pa.int64()),
        ("kind", pa.string()),
        ("checked_at", pa.timestamp("us", "UTC")),
        ("swept_at", pa.timestamp("us", "UTC")),
        ("state", pa.string()),
        ("of_this_run", pa.bool_()),
    ]
)
USERS = ["id", "updated_at", "online_at"]


def rows_of(table: Any) -> list[Row]:
    """The rows of a table of a batch; none if it is None."""
    return [] if table is None else pa.table(table).to_pylist()


def as_table(name: Table, rows: list[Row]) -> Any:
    return pa.Table.from_pylist(rows, schema=pa.table(empty_table(name)).schema)


def ids(user_ids: Iterable[int]) -> Any:
    """A table of users by their ids, in this order."""
    return pa.table({"user_id": pa.array(user_ids, pa.int64())})


class InMemoryMirror:
    """The tables of a mirror, and how far a run has come, as the core hands them over."""

    def __init__(self) -> None:
        self.users: dict[int, Row] = {}
        self.messages: dict[tuple[int, int], Row] = {}
        self.lists: dict[int, Row] = {}
        self.gone: list[Row] = []
        self.forgotten: set[int] = set()
        self.requests = 0
        self.batches = 0
        self.begin()

    def begin(self) -> None:
        """A run begins: what the one before had half read is forgotten."""
        self.half_read: set[int] = set()
        self.users_state: str | None = None
        self.done: set[int] = set()
        self.seen: set[tuple[int | None, int]] = set()
        self.swept: Any = None
        self.before = dict(self.lists)
        self.read_lists: dict[int, Row] = {}

    def known(self) -> Any:
        half_read = [
            {"user_id": user_id, "id": row_id}
            for user_id, row_id in sorted(self.seen, key=str)
            if user_id in self.half_read or (user_id is None and self.users_state is not None)
        ]
        listed = [{name: row[name] for name in USERS} for row in self.users.values()]
        listed = [row for row in listed if (None, row["id"]) in self.seen]
        lists = [
            {
                "user_id": user_id,
                "kind": row["kind"],
                "checked_at": row.get("checked_at"),
                "swept_at": row.get("swept_at"),
                "state": row["state"],
                "of_this_run": user_id in self.done or user_id in self.half_read,
            }
            for user_id, row in {**self.before, **self.read_lists}.items()
        ]
        lists += [
            {"user_id": user_id, "kind": "whole", "of_this_run": True}
            for user_id in sorted(self.done - self.read_lists.keys())
        ]
        return SimpleNamespace(
            lists=pa.Table.from_pylist(lists, schema=LISTS),
            users_state=self.users_state,
            held=pa.Table.from_pylist(half_read, schema=HELD),
            users=as_table("users", listed) if self.swept else None,
            forgotten=ids(sorted(self.forgotten)),
            profile=None,
            audit=None,
        )

    def commit(self, batch: Any) -> None:
        """What a batch brings, by the rules of the contract."""
        self.batches += 1
        for row in rows_of(batch.users):
            self.users[row["id"]] = row
            self.seen.add((None, row["id"]))
        for row in rows_of(batch.messages):
            self.messages[row["user_id"], row["id"]] = row
            self.seen.add((row["user_id"], row["id"]))
        for row in rows_of(batch.lists):
            user_id = row["user_id"]
            assert user_id not in self.done, "a list was read twice in one run"
            self.lists[user_id] = self.read_lists[user_id] = row
            if row["kind"] in ("partial", "unread"):
                self.half_read.add(user_id)
            else:
                self.half_read.discard(user_id)
                self.done.add(user_id)
        self.users_state = batch.users_state or self.users_state
        if batch.users_report is not None:
            self.swept = batch.users_report
            self.users_state = None
        self.gone += rows_of(batch.gone)

    def read(
        self,
        client: Client,
        *,
        mode: Literal["incremental", "full"] = "incremental",
        max_staleness: float | None = None,
        batches: int | None = None,
        **limits: Any,
    ) -> bool:
        """Reads on, for so many batches or within limits; True at the end of the run."""
        run = client._sync_run(self.known(), mode=mode, max_staleness=max_staleness, **limits)
        try:
            for number, batch in enumerate(given(run)):
                if number == batches:
                    return False
                self.commit(batch)
            return not run.ended_early
        finally:
            run.stop()
            self.requests += run.requests

    def run(self, client: Client, **options: Any) -> int:
        """One whole run; the requests it took."""
        self.begin()
        before = self.requests
        assert self.read(client, **options)
        return self.requests - before

    def ask(self, client: Client, candidates: list[Row]) -> int:
        """Asks for rows by their ids; the requests it took."""
        run = client._ask_rows(as_table("gone", candidates))
        for batch in given(run):
            self.commit(batch)
        return run.requests

    def kinds(self) -> dict[str, int]:
        """Lists of this run by kind."""
        kinds = [self.lists[user_id]["kind"] for user_id in self.done]
        return {kind: kinds.count(kind) for kind in sorted(set(kinds))}

    def differs(self, world: World) -> list[str]:
        """What this run's users lack of the world, or hold otherwise; what is gone is not asked."""
        wrong = []
        for user_id in world.user_ids():
            if user_id not in self.users:
                wrong.append(f"user {user_id} is missing")
            for message_id in world.message_ids(user_id):
                held = self.messages.get((user_id, message_id))
                if held is None:
                    wrong.append(f"message {message_id} of {user_id} is missing")
                    continue
                there = world.message(user_id, message_id)
                for name in ("body", "read_by_user", "read_by_operator"):
                    if held[name] != there[name]:  # type: ignore[literal-required]
                        wrong.append(f"message {message_id} of {user_id}: {name} is {held[name]}")
        return wrong


def given(run: Any) -> Iterator[Any]:
    """The batches of a run, to its end."""
    while (batch := run.next_batch()) is not None:
        yield batch
