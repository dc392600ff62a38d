"""``demo``: syncs a mirror of the mock twice and queries it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backread._files.access import make_folder
from backread._files.unfinished import Unfinished
from backread.cli.exits import UnusableArgumentError
from backread.cli.paths import folder_to_write
from backread.cli.sync import DEMO_MARKER, progress, summary
from backread.cli.table_output import print_table
from backread.cli.text import plain_lines
from backread.mirror.database import OWN_NAMES

if TYPE_CHECKING:
    from backread.mirror import Mirror, SyncReport
    from backread.testing import MockServer, World

__all__ = ["demo"]

SEED = 7
USERS = 2_000
LONGEST = 242

QUERIES = (
    (
        "Who has written the most?",
        """
        SELECT user_id, name, user_messages, operator_messages, last_message_at::DATE AS last_day
        FROM conversations ORDER BY user_messages DESC, user_id LIMIT 5
        """,
    ),
    (
        "How long do visitors wait for a first answer, by hour of the day (UTC)?",
        """
        SELECT hour(first_message_at) AS hour, count(*) AS conversations,
            round(median(first_response_seconds) / 60, 1) AS median_minutes,
            round(quantile_cont(first_response_seconds, 0.9) / 60, 1) AS slowest_tenth_minutes
        FROM conversations WHERE first_response_seconds IS NOT NULL
        GROUP BY hour ORDER BY conversations DESC, hour LIMIT 5
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
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", parser=folder_to_write, help="The mirror's folder."),
    ] = Path("chats"),
) -> None:
    """Mirrors the mock, changes it, and runs queries."""
    from backread.mirror import Mirror
    from backread.testing import MockServer, World

    _prepare(folder)
    world = World(seed=SEED, users=USERS, messages_per_user=(0, LONGEST))
    mirror = Mirror(folder)
    with MockServer(world) as server:
        _print(
            f"The mock serves {world.total_users:,} users and {world.total_messages:,} messages "
            f"at {server.url}"
        )
        _print(f"\nFirst sync into {folder}")
        _print_run(_sync(mirror, server), server)
        _print(f"\nThe data changes: {_change(world)}")
        _print("\nSecond sync")
        _print_run(_sync(mirror, server), server)
    for question, query in QUERIES:
        _print(f"\n{question}")
        relation = mirror.sql(query)
        print_table(relation.columns, relation.fetchall(), sys.stdout)
    _print(
        f"\nThe mirror is in {folder}; query it with Mirror({str(folder)!r}).sql(...), "
        f"list its runs with: backread runs {folder}"
    )


def _prepare(folder: Path) -> None:
    if (folder / DEMO_MARKER).is_file():
        _remove_mirror(folder)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UnusableArgumentError(
            f"{folder} exists and was not created by a demo; name another: backread demo FOLDER"
        )
    make_folder(folder)
    with Unfinished(folder / DEMO_MARKER) as marker:
        marker.file.write(b"created by backread demo, which may remove it\n")


def _remove_mirror(folder: Path) -> None:
    # Only its own files: the user may have added others.
    for name in OWN_NAMES:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _sync(mirror: Mirror, server: MockServer) -> SyncReport:
    with server.client() as client, progress() as on_progress:
        return mirror.sync(client, on_progress=on_progress)


def _print_run(done: SyncReport, server: MockServer) -> None:
    rows = done.users + done.messages
    _print(f"  {summary(done)}")
    _print(
        f"  {rows:,} rows in {done.seconds:.2f} s, {rows / max(done.seconds, 1e-9):,.0f} a second; "
        f"the mock has answered {sum(server.counts().values()):,} requests so far"
    )


def _change(world: World) -> str:
    before = world.total_messages
    users = world.add_users(5)
    old = world.user_ids()[:20]
    for user_id in old:
        world.add_messages(user_id, 4)
    for user_id in old[:3]:
        world.edit_user(user_id, name=f"Renamed {user_id}")
    added = world.total_messages - before
    return f"{len(users)} users and {added} messages are added, 3 users are renamed"


def _print(line: str) -> None:
    sys.stdout.write(plain_lines(line) + "\n")
    sys.stdout.flush()
