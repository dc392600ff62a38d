"""Removes rows that have been gone from the service for longer than they are to be kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from backread.mirror.engine import timestamp
from backread.mirror.purge import check_removal, delete_rows, delete_users, removal
from backread.mirror.schema import ALL_USERS, MESSAGES, USERS
from backread.mirror.store import Store

__all__ = ["remove_expired"]

LONGEST = 1000 * 365 * 86_400
"""Seconds; longer than any row exists, and within the range of `timedelta`."""

# A reject has no mark: it is gone if a complete read of its list, begun after it was last seen, did
# not find it. A list of messages with a reject in it is always read from the service, never skipped
# as unchanged.
GONE_REJECT = f"""
CASE resource
    WHEN 'users' THEN last_seen_at < (
        SELECT max(started_at) FROM runs
        WHERE {ALL_USERS} AND users_swept_at IS NOT NULL AND certificate <> 'uncertified')
    ELSE EXISTS (
        SELECT 1 FROM lists WHERE lists.user_id = rejects.user_id AND kind = 'whole'
        AND certificate <> 'uncertified' AND started_at > last_seen_at)
END
"""


def remove_expired(store: Store, retention: float) -> None:
    """Removes users, with all that is theirs, and messages marked as deleted that long ago.

    Also rejects that were last seen that long ago and are gone.
    ``retention`` is in seconds. Does nothing if there are none.
    """
    before = datetime.now(UTC) - timedelta(seconds=min(retention, LONGEST))
    expired = f"deleted_at < {timestamp(before)}"
    rejects = f"last_seen_at < {timestamp(before)} AND {GONE_REJECT}"
    tables = {USERS.name: expired, MESSAGES.name: expired, "rejects": rejects}
    if not any(store.rows(f"SELECT 1 FROM {name} WHERE {tables[name]} LIMIT 1") for name in tables):
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
        store.rows(f"DELETE FROM rejects WHERE {rejects}")
        delete_users(store, "leaving")
        delete_rows(store, MESSAGES, expired)
