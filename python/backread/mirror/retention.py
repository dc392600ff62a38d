"""Removes rows that have been gone from the service for longer than they are to be kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from backread.mirror.engine import timestamp
from backread.mirror.purge import check_removal, delete_rows, delete_users, removal
from backread.mirror.schema import MESSAGES, USERS
from backread.mirror.store import Store

__all__ = ["remove_expired"]

LONGEST = 1000 * 365 * 86_400
"""Seconds; longer than any row exists, and within the range of `timedelta`."""


def remove_expired(store: Store, retention: float) -> None:
    """Removes users, with all that is theirs, and messages marked as deleted that long ago.

    ``retention`` is in seconds. Does nothing if there are none.
    """
    before = datetime.now(UTC) - timedelta(seconds=min(retention, LONGEST))
    expired = f"deleted_at < {timestamp(before)}"
    tables = (USERS, MESSAGES)
    if not any(store.rows(f"SELECT 1 FROM {each.name} WHERE {expired} LIMIT 1") for each in tables):
        return
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
        delete_users(store, "leaving")
        delete_rows(store, MESSAGES, expired)
