"""Removes users from the tables and remembers their ids, also if a backup brought them back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from backread.errors import MirrorError
from backread.mirror.published.layout import current_name
from backread.mirror.published.manifest import read_manifest
from backread.mirror.published.publish import PUBLISHED_SEQUENCE
from backread.mirror.rights.purge import check_removal, delete_users, removal
from backread.mirror.store.engine import DAMAGED_FILE, named_errors, scan
from backread.mirror.store.folder import PROGRESS_NAME
from backread.mirror.store.schema import REJECTED_ID
from backread.mirror.store.store import Store

__all__ = ["NAMED_IDS", "forget_again", "forget_users", "remove_rejects"]

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
    published = scan(paths[0].parent, [each.name for each in paths])
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
