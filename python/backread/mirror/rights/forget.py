"""Removes users and all that the mirror holds of them, and remembers only their ids."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from backread._display.words import some_ids
from backread._files.dataclass_json import ShortRepr, to_json_value
from backread.errors import MirrorError
from backread.landing.removal import find_users
from backread.landing.storage import Folder
from backread.mirror.rights.purge import (
    NAMED_IDS,
    check_removal,
    forget_again,
    forget_users,
    open_store,
)
from backread.mirror.store.engine import load_duckdb, named_errors
from backread.mirror.store.folder import require_database, writer_lock
from backread.mirror.store.store import Store

HELD = f"""
SELECT id AS user_id FROM users UNION ALL SELECT user_id FROM messages
UNION ALL SELECT user_id FROM lists
UNION ALL SELECT user_id FROM rejects
UNION ALL SELECT TRY_CAST(unnest({NAMED_IDS}) AS BIGINT) FROM rejects
"""

ELSEWHERE = """
SELECT count(*) FROM messages WHERE sender_type = 'user'
AND sender_id IN (SELECT user_id FROM leaving) AND user_id NOT IN (SELECT user_id FROM leaving)
"""
"""How many messages in the lists of others are of the users to forget."""

UNCOMPLETED = (
    "the users are removed from the tables, but their texts may be left in files until the next "
    "forget or sync of this mirror completes the removal"
)


@dataclass(frozen=True, slots=True, repr=False)
class ForgetReport(ShortRepr):
    """What `Mirror.forget` removed. All numbers are counts.

    - ``forgotten``: the ids that are forgotten now; ``earlier``: those that already were.
      ``forgotten_at`` is when (UTC), null if there was nothing to remove from the mirror.
    - ``users``, ``messages``, ``rejects``: rows removed from the mirror's tables. A reject of
      someone else that named the user counts, too; only its text was removed.
    - ``files``: rows about attachments; the files are removed unless someone else sent the same.
    - ``landing_rows``: rows removed from the landing folders, ``landing_files``: the files that
      were written again without them.
    - ``bytes_freed``: by how much the mirror's folder shrank.
    - ``messages_elsewhere``: messages that the users sent in other users' lists, as after two
      visitors were merged. They stay.
    """

    forgotten: tuple[int, ...] = ()
    earlier: tuple[int, ...] = ()
    users: int = 0
    messages: int = 0
    rejects: int = 0
    files: int = 0
    landing_rows: int = 0
    landing_files: int = 0
    bytes_freed: int = 0
    forgotten_at: datetime | None = None
    messages_elsewhere: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The report as a dict of JSON values, times in ISO 8601."""
        document: dict[str, Any] = to_json_value(self)
        return document


def forget(
    folder: Path,
    user_ids: Sequence[int],
    landings: Sequence[Folder],
    *,
    missing_ok: bool = False,
    memory_limit: int | None = None,
) -> ForgetReport:
    """Removes the users from the mirror and the landing folders; see `Mirror.forget`."""
    load_duckdb()
    wanted = sorted({*user_ids})
    with named_errors(folder):
        require_database(folder)
        found = [find_users(each, wanted) for each in landings]
        before = _bytes_below(folder)
    report = ForgetReport()

    def remove(store: Store) -> None:
        """Changes nothing if one of the users is unknown."""
        nonlocal report
        store.rows(
            "CREATE TEMP TABLE leaving AS SELECT unnest(CAST(? AS BIGINT[])) AS user_id", [wanted]
        )
        earlier, held = _ids(store, "SELECT user_id FROM forgotten"), _ids(store, HELD)
        if not missing_ok:
            known = earlier.union(held, *(each.user_ids for each in found))
            _refuse_unknown(folder, [each for each in wanted if each not in known], bool(found))
        removes = bool(held) or not earlier.issuperset(wanted)
        if removes:
            check_removal(store)
        for each in found:
            each.remove()
        [(messages_elsewhere,)] = store.rows(ELSEWHERE)
        now = store.now() if removes else None
        deleted = {} if now is None else forget_users(store, wanted, now)
        report = ForgetReport(
            forgotten=tuple(each for each in wanted if each not in earlier),
            earlier=tuple(sorted(earlier)),
            **deleted,
            landing_rows=sum(each.rows for each in found),
            landing_files=sum(each.files for each in found),
            forgotten_at=now,
            messages_elsewhere=messages_elsewhere,
        )
        forget_again(store)

    try:
        with named_errors(folder), ExitStack() as held:
            held.enter_context(writer_lock(folder))
            held.enter_context(open_store(folder, memory_limit, remove))
    except MirrorError as error:
        if report.forgotten_at is None:
            raise
        raise MirrorError(f"{error}; {UNCOMPLETED}") from error
    return replace(report, bytes_freed=max(before - _bytes_below(folder), 0))


def _refuse_unknown(folder: Path, unknown: Sequence[int], with_landings: bool) -> None:
    if not unknown:
        return
    also = " and the landing folders hold" if with_landings else " holds"
    raise MirrorError(
        f"the mirror in {folder}{also} nothing of user {some_ids(unknown)}, so nothing was "
        "changed; check the ids, or pass missing_ok=True (on the command line: --anyway) to keep "
        "these users out of the mirror from now on"
    )


def _ids(store: Store, query: str) -> set[int]:
    """The users to forget that are among the rows of the query."""
    found = store.rows(f"SELECT DISTINCT user_id FROM ({query}) SEMI JOIN leaving USING (user_id)")
    return {user_id for (user_id,) in found}


def _bytes_below(folder: Path) -> int:
    """The size of the folder's files, each counted once however many names it has."""
    sizes: dict[tuple[int, int], int] = {}
    for directory, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found = Path(directory, name).lstat()
                sizes[found.st_dev, found.st_ino] = found.st_size
    return sum(sizes.values())
