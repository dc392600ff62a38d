"""Removes rows for good: from the tables, the database's free blocks, and every published file.

A deletion only marks rows in DuckDB's file, and earlier snapshots keep them. So the transaction
that deletes rows also sets a flag; as long as it is set, whoever opens the tables for writing first
publishes without keeping earlier snapshots, and then replaces the database by a copy of its rows.
The copy does not have the flag, so its rename ends the removal. The file ``removal.pending`` says
the same to those who do not open the database.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backread._files.unfinished import Unfinished, remove_leftovers
from backread.errors import MirrorError
from backread.mirror.published.layout import current_name
from backread.mirror.published.manifest import remove_unneeded
from backread.mirror.published.publish import publish
from backread.mirror.published.views_database import clear_views_database
from backread.mirror.store.database import database_bytes, open_database, rewrite_database
from backread.mirror.store.engine import timestamp
from backread.mirror.store.folder import PUBLISHED, REMOVAL_NAME
from backread.mirror.store.schema import (
    ALL_USERS,
    CONTENT_TABLES,
    MESSAGES,
    PURGE_PENDING,
    USERS,
    Table,
)
from backread.mirror.store.store import Store

__all__ = [
    "check_removal",
    "delete_rows",
    "delete_users",
    "open_store",
    "removal",
    "removal_is_pending",
    "remove_expired",
]

MARK = b"A removal of rows is not complete: run `backread sync` or `backread forget` again.\n"

SPARE = 16 * 2**20
"""Bytes for the log and the smaller files that a removal writes."""


LONGEST_RETENTION = 1000 * 365 * 86_400
"""Seconds; longer than any row exists, and within the range of `timedelta`."""

MOST_APART = timedelta(days=1)
"""How far the service's clock may be from this machine's; rows expire by the earlier one."""

CLOCK_STEP = timedelta(minutes=1)
"""How far a clock is set back in normal use, by NTP."""

MINUTE = "%Y-%m-%d %H:%M UTC"

# A reject has no mark: it is gone if a complete read of its list, begun after it was last seen, did
# not find it.
GONE_REJECT = f"""
CASE resource
    WHEN 'users' THEN last_seen_at < (
        SELECT max(started_at) FROM runs
        WHERE {ALL_USERS} AND users_swept_at IS NOT NULL AND certificate <> 'uncertified')
    ELSE EXISTS (
        SELECT 1 FROM lists WHERE lists.user_id = rejects.user_id AND kind = 'whole'
        AND certificate <> 'uncertified' AND checked_at > last_seen_at)
END
"""


@contextmanager
def open_store(
    folder: Path,
    memory_limit: int | None = None,
    prepare: Callable[[Store], None] | None = None,
) -> Iterator[Store]:
    """Opens the tables for writing, after completing a removal that was interrupted.

    The caller holds the folder's lock. ``prepare`` is called with the tables first, and may remove
    rows.
    """
    # A killed publication, or many short syncs, may have left gigabytes there.
    remove_unneeded(folder)
    with open_database(folder, memory_limit) as connection:
        store = Store(folder, connection)
        if prepare is not None:
            prepare(store)
        if store.meta(PURGE_PENDING) is None:
            # A kill may have come just before or just after the removal.
            (folder / REMOVAL_NAME).unlink(missing_ok=True)
            yield store
            return
        check_removal(store)
        _publish_what_remains(store)
    rewrite_database(folder, memory_limit)
    (folder / REMOVAL_NAME).unlink(missing_ok=True)
    with open_database(folder, memory_limit) as connection:
        yield Store(folder, connection)


def removal_is_pending(folder: Path) -> bool:
    """Whether files may still have removed rows; also true while a removal goes on."""
    return (folder / REMOVAL_NAME).exists()


def check_removal(store: Store) -> None:
    """Raises `MirrorError` unless a second copy of the database fits on the disk."""
    needed = database_bytes(store.folder) + SPARE
    free = shutil.disk_usage(store.folder).free
    if free < needed:
        raise MirrorError(
            f"the mirror in {store.folder}: removing rows for good writes the database anew, which "
            f"needs {needed:,} bytes of free space, but there are {free:,}; free some space and "
            "try again"
        )


@contextmanager
def removal(store: Store) -> Iterator[None]:
    """A transaction that removes rows; the next `open_store` completes the removal."""
    with Unfinished(store.folder / REMOVAL_NAME) as mark:
        mark.file.write(MARK)
    # It stays if the transaction fails, until the next `open_store`.
    with store.transaction():
        yield
        store.set_meta(PURGE_PENDING, "1")
        store.count_change()


def delete_users(store: Store, source: str) -> dict[str, int]:
    """Deletes all that the tables hold of some users; returns the rows deleted by table.

    ``source`` is a table with their ids in ``user_id``. Inside the caller's transaction.
    """
    leaving = f"SELECT user_id FROM {source}"
    deleted: dict[str, int] = {
        table.name: delete_rows(store, table, f"{table.user_column} IN ({leaving})")
        for table in CONTENT_TABLES
    }
    store.rows(f"DELETE FROM seen_users WHERE id IN ({leaving})")
    for name in ("seen_messages", "lists"):
        store.rows(f"DELETE FROM {name} WHERE user_id IN ({leaving})")
    # It has hashes of their rows. Without it, the list of users is read again.
    store.rows("UPDATE runs SET users_state = NULL WHERE users_state IS NOT NULL")
    [(deleted["rejects"],)] = store.rows(f"DELETE FROM rejects WHERE user_id IN ({leaving})")
    return deleted


def delete_rows(store: Store, table: Table, condition: str) -> int:
    """Deletes rows of users or messages; the next publication rewrites the files that have them."""
    key = ", ".join(table.key)
    store.rows(
        f"INSERT INTO {table.unpublished} BY NAME SELECT {key} FROM {table.name} WHERE {condition}"
    )
    [(count,)] = store.rows(f"DELETE FROM {table.name} WHERE {condition}")
    return int(count)


def _is_published(store: Store) -> bool:
    # A first run that was published in part is unfinished again once a sync has resumed it.
    return current_name(store.folder) is not None or not store.never_finished()


def _publish_what_remains(store: Store) -> None:
    if _is_published(store):
        clear_views_database(store)
        publish(store, keep_retired=False)
    else:
        # Nothing was published yet, but a killed process may have begun to.
        remove_leftovers(store.folder / PUBLISHED)


def remove_expired(store: Store, retention: float, service_date: datetime | None) -> str | None:
    """Removes users, with all that is theirs, and messages marked as deleted that long ago.

    Also rejects that were last seen that long ago and are gone. The next `open_store` completes the
    removal.

    Args:
        store: The mirror's tables.
        retention: In seconds.
        service_date: The time by the service's clock, None if it does not tell.

    Returns:
        Why nothing is removed, if a clock is wrong; otherwise None.
    """
    last_run, now = store.now(), datetime.now(UTC)
    wrong = None
    if last_run - now > CLOCK_STEP:
        wrong = f"is before the mirror's last run ({last_run:{MINUTE}})"
    elif service_date is not None and abs(service_date - now) > MOST_APART:
        wrong = f"differs from the service's ({service_date:{MINUTE}})"
    if wrong is not None:
        return (
            "nothing was removed by retention, because this machine's clock "
            f"({now:{MINUTE}}) {wrong}; set the wrong one, and sync again"
        )
    now = min(now, service_date or now)
    before = now - timedelta(seconds=min(retention, LONGEST_RETENTION))
    expired = f"deleted_at < {timestamp(before)}"
    rejects = f"last_seen_at < {timestamp(before)} AND {GONE_REJECT}"
    tables = {USERS.name: expired, MESSAGES.name: expired, "rejects": rejects}
    if not any(store.rows(f"SELECT 1 FROM {name} WHERE {tables[name]} LIMIT 1") for name in tables):
        return None
    check_removal(store)
    with removal(store):
        store.rows(
            f"CREATE OR REPLACE TEMP TABLE leaving AS SELECT id AS user_id FROM users "
            f"WHERE {expired}"
        )
        store.rows(
            f"DELETE FROM rejects WHERE resource = 'messages' AND (user_id, id) IN "
            f"(SELECT (user_id, id) FROM messages WHERE {expired})"
        )
        store.rows(f"DELETE FROM rejects WHERE {rejects}")
        delete_users(store, "leaving")
        delete_rows(store, MESSAGES, expired)
    return None
