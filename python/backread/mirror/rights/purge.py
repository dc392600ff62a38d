"""Removes users and rows for good: from the tables, the database's free blocks, published files.

A deletion only marks rows in DuckDB's file, and earlier snapshots keep them. So the transaction
that deletes rows also sets a flag; as long as it is set, whoever opens the tables for writing first
publishes without keeping earlier snapshots, and then replaces the database by a copy of its rows.
The copy does not have the flag, so its rename ends the removal. The file ``removal.pending`` says
the same to those who do not open the database.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backread._files.access import flush_directory
from backread._files.unfinished import Unfinished, remove_leftovers
from backread.errors import MirrorError
from backread.mirror.published.manifest import current_name, read_manifest, remove_unneeded
from backread.mirror.published.publish import PUBLISHED_SEQUENCE, publish
from backread.mirror.published.views import clear_views_database
from backread.mirror.store.database import database_bytes, open_database, rewrite_database
from backread.mirror.store.engine import DAMAGED_FILE, named_errors, scan, timestamp
from backread.mirror.store.folder import FILES, PROGRESS_NAME, PUBLISHED, REMOVAL_NAME
from backread.mirror.store.schema import (
    ALL_USERS,
    CONTENT_TABLES,
    MESSAGES,
    PURGE_PENDING,
    REJECTED_ID,
    USERS,
    Table,
)
from backread.mirror.store.store import Store

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

REMOVED_TEXTS = {
    "error": "the text was removed when a user was forgotten",
    "certificate_reason": "the reason was removed when a user was forgotten",
}
"""What a run has instead of texts that may quote a user's rows."""

NAMED_IDS = r"""
regexp_extract_all(
    -- The id of a message is no user's.
    CASE WHEN resource = 'messages' AND json_valid(json)
        THEN json_merge_patch(json, '{"id": null}')::VARCHAR ELSE json END,
    '(?i)id\\?"\s*:\s*(?:\\?")?\s*([0-9]+)', 1)
"""
"""The ids in a reject's JSON, in any field whose name ends in ``id``, such as ``visitorId``, as
numbers or as texts."""

BLANKED = "its record named a user who was forgotten"


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
        _remove_unused_files(store)
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
        store.rows(
            "DELETE FROM files WHERE (user_id, message_id) NOT IN "
            "(SELECT (user_id, id) FROM messages)"
        )
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
    [(deleted["files"],)] = store.rows(f"DELETE FROM files WHERE user_id IN ({leaving})")
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


def _remove_unused_files(store: Store) -> None:
    """Removes the attachments that no row names."""
    folder = store.folder / FILES
    used = {sha256 for (sha256,) in store.rows("SELECT DISTINCT sha256 FROM files")}
    remove_leftovers(folder)
    for directory in folder.glob("??"):
        for path in directory.iterdir():
            if path.name not in used:
                path.unlink()
        flush_directory(directory)


def _publish_what_remains(store: Store) -> None:
    # A first run that was published in part is unfinished again once a sync has resumed it.
    if current_name(store.folder) is None and store.never_finished():
        # A killed process may have begun to publish.
        remove_leftovers(store.folder / PUBLISHED)
    else:
        clear_views_database(store)
        publish(store, keep_retired=False)


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


def remove_rejects(store: Store, table: str, users: str) -> int:
    """Removes the rejects of users from a table, inside the caller's transaction; returns how many.

    ``users`` is a table with their ids in ``user_id``. Of rejects of others that name one of them,
    only the JSON and the reason are removed: the row may be why no row of a list counts as deleted.
    """
    ids = f"(SELECT list(CAST(user_id AS VARCHAR)) FROM {users})"
    [(own,)] = store.rows(
        f"DELETE FROM {table} WHERE user_id IN (SELECT user_id FROM {users}) "
        f"OR (resource = 'users' AND list_contains({ids}, {REJECTED_ID}))"
    )
    [(naming,)] = store.rows(
        f"UPDATE {table} SET json = NULL, reason = ? WHERE list_has_any({NAMED_IDS}, {ids})",
        [BLANKED],
    )
    return int(own + naming)


def forget_users(store: Store, user_ids: Sequence[int], now: datetime) -> dict[str, int]:
    """Removes all rows of the users and remembers them; returns the rows removed by table.

    The next `open_store` removes what is left of the rows in files.
    """
    # Its error may quote a row of theirs.
    (store.folder / PROGRESS_NAME).unlink(missing_ok=True)
    with removal(store):
        store.rows(
            "CREATE OR REPLACE TEMP TABLE leaving AS SELECT unnest(CAST(? AS BIGINT[])) AS user_id",
            [list(user_ids)],
        )
        rejects = remove_rejects(store, "rejects", "leaving")
        deleted = delete_users(store, "leaving") | {"rejects": rejects}
        for name, text in REMOVED_TEXTS.items():
            store.rows(f"UPDATE runs SET {name} = ? WHERE {name} IS NOT NULL", [text])
        store.rows(
            "INSERT INTO forgotten BY NAME SELECT user_id, ? AS forgotten_at FROM leaving "
            "WHERE user_id NOT IN (SELECT user_id FROM forgotten) ORDER BY user_id",
            [now],
        )
    return deleted


def forget_again(store: Store) -> None:
    """Forgets the users who are forgotten in the published snapshot but not in the database.

    There are some if ``mirror.duckdb`` was restored from a backup, and the snapshot was not.
    """
    name = current_name(store.folder)
    if name is None or store.meta(PUBLISHED_SEQUENCE) == str(int(name)):
        return
    manifest = read_manifest(store.folder)
    if manifest is None or manifest.mirror_id != store.meta("mirror_id"):
        return
    paths = manifest.paths(store.folder)["forgotten"]
    # A damaged file may have been deleted as advised.
    if not all(each.is_file() for each in paths):
        return
    published = scan(paths)
    try:
        with named_errors(store.folder):
            lost = store.rows(
                f"SELECT DISTINCT user_id FROM {published} "
                "WHERE user_id NOT IN (SELECT user_id FROM forgotten) ORDER BY user_id"
            )
    except MirrorError as error:
        if DAMAGED_FILE not in str(error):
            raise
        # The general advice would let them come back.
        files = ", ".join(map(str, paths))
        raise MirrorError(
            f"the mirror in {store.folder}: its database was restored from a backup, and the list "
            f"of those who were forgotten since cannot be read; delete {files}, then forget them "
            "again (backread forget) before the next sync"
        ) from error
    if lost:
        check_removal(store)
        forget_users(store, [user_id for (user_id,) in lost], store.now())
