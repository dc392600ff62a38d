"""``demo``: syncs a mirror of a made-up service twice and queries it."""

from __future__ import annotations

import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from backread._files.access import make_folder
from backread._files.unfinished import Unfinished
from backread.cli.arguments import Folder, WorldUntil, flag
from backread.cli.exits import UnusableArgumentError
from backread.cli.paths import is_there
from backread.cli.sync import progress
from backread.cli.table_output import write_table
from backread.cli.text import plain_lines

if TYPE_CHECKING:
    from backread.mirror import Mirror, SyncReport
    from backread.testing import MockServer, World


SEED = 7
USERS = 2_000
LONGEST = 242

QUERIES = (
    (
        "Who has written the most?",
        """
        SELECT user_id, name, user_messages, operator_messages, last_message_at::DATE AS last_day
        FROM conversations ORDER BY user_messages DESC, user_id LIMIT 3
        """,
    ),
    (
        "How long do users wait for a first answer?",
        """
        SELECT count(*) AS conversations,
            round(median(first_response_seconds) / 60, 1) AS median_minutes,
            round(quantile_cont(first_response_seconds, 0.9) / 60, 1) AS slowest_tenth_minutes
        FROM conversations WHERE first_response_seconds IS NOT NULL
        """,
    ),
    (
        "Who had the last word, and how much is unread?",
        """
        SELECT last_sender_type AS last_word, count(*) AS conversations,
            sum(unread_by_operator)::BIGINT AS unread_by_operator,
            sum(unread_by_user)::BIGINT AS unread_by_user
        FROM conversations WHERE messages > 0 GROUP BY ALL ORDER BY conversations DESC, last_word
        """,
    ),
)


def demo(
    folder: Folder = Path("chats"),
    until: WorldUntil = None,
    opened: Annotated[
        bool, flag("Then open the mirror in a browser: backread browse.", "--open")
    ] = False,
) -> None:
    """Mirrors a made-up service in FOLDER (chats), changes it, mirrors that, and runs queries.

    Nothing leaves this machine. The times of the rows end now, unless --until says otherwise.

    Examples:
        backread demo chats
        backread show chats 1471
    """
    from backread.mirror import Mirror
    from backread.testing import MockServer, World

    _prepare(folder)
    world = World(
        seed=SEED,
        users=USERS,
        messages_per_user=(0, LONGEST),
        until=datetime.now(UTC) if until is None else until,
    )
    mirror = Mirror(folder)
    with MockServer(world) as server:
        first = _sync(mirror, server)
        _print(
            f"First sync into {folder}: {first.users:,} users, {first.messages:,} messages "
            f"{_cost(first)}"
        )
        _change(world)
        second = _sync(mirror, server)
        added = second.users_added + second.messages_added
        updated = second.users_updated + second.messages_updated
        _print(f"Second sync, after changes: {added} rows added, {updated} updated {_cost(second)}")
        if _is_proved(first) and _is_proved(second):
            _print("Both are proved to be complete.")
    for question, query in QUERIES:
        _print(f"\n{question}")
        relation = mirror.sql(query)
        write_table(relation.columns, relation.fetchall(), sys.stdout)
    named = quote(str(folder))
    _print(
        f"\nThe mirror is in {folder}. Try next:\n"
        f"  backread browse {named}\n"
        f"  backread search {named} refund\n"
        f"  backread report {named} -o report.html"
    )
    if opened:
        from backread.cli.serve import browse

        browse(folder)


def _prepare(folder: Path) -> None:
    from backread.mirror.store.folder import DEMO_MARKER

    if is_there(folder / DEMO_MARKER):
        _remove_mirror(folder)
    elif is_there(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise UnusableArgumentError(
            f"{folder} exists and was not created by a demo; name another: backread demo FOLDER"
        )
    make_folder(folder)
    with Unfinished(folder / DEMO_MARKER) as marker:
        marker.file.write(b"created by backread demo, which may remove it\n")


def _remove_mirror(folder: Path) -> None:
    from backread.mirror.store.folder import OWN_NAMES

    # Only its own files: the user may have added others.
    for name in OWN_NAMES:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _sync(mirror: Mirror, server: MockServer) -> SyncReport:
    from backread.mirror.sync.synchronize import Options, synchronize

    with server.client() as client, progress() as on_progress:
        return synchronize(mirror.folder, client, Options(on_progress=on_progress, demo=True))


def _cost(done: SyncReport) -> str:
    return f"({done.requests:,} requests, {done.seconds:.1f} s)"


def _is_proved(done: SyncReport) -> bool:
    return done.certificate != "uncertified" and "uncertified" not in done.lists_by_certificate


def _change(world: World) -> None:
    # The newest, so that what is added is as recent as the rest.
    known = world.user_ids()[-20:]
    world.add_users(5)
    for user_id in known:
        world.add_messages(user_id, 4)
    for user_id in known[:3]:
        world.edit_user(user_id, name=f"{world.user(user_id).get('name')} (VIP)")


def _print(line: str) -> None:
    sys.stdout.write(plain_lines(line) + "\n")
    sys.stdout.flush()
