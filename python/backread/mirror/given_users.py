"""The users of `Mirror.sync`'s argument ``users``, as the core takes them."""

from __future__ import annotations

from collections.abc import Sequence

from backread.errors import MirrorError
from backread.mirror.known import StoredRows
from backread.mirror.store import Store

__all__ = ["given_users"]


def given_users(store: Store, user_ids: Sequence[int]) -> StoredRows:
    """The users as rows; raises `MirrorError` if one of them was forgotten."""
    values = ", ".join(f"({user_id})" for user_id in sorted({*user_ids}))
    query = f"SELECT CAST(user_id AS BIGINT) AS user_id FROM (VALUES {values}) AS given(user_id)"
    forgotten = store.rows(f"SELECT user_id FROM forgotten SEMI JOIN ({query}) USING (user_id)")
    if forgotten:
        raise MirrorError(
            f"user {forgotten[0][0]} was forgotten in this mirror and is not read again; leave the "
            "user out"
        )
    return StoredRows(store, query)
