"""``demo``: all of it at work against the mock, in a folder that one can look into afterwards."""

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
from backread.cli.tables import print_table
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
        typer.Argument(metavar="[FOLDER]", parser=folder_to_write, help="Where the mirror goes."),
    ] = Path("chats"),
) -> None:
    """Starts the mock, mirrors it, changes it, mirrors it again, and asks three questions."""
    from backread.mirror import Mirror
    from backread.testing import MockServer, World

    _prepare(folder)
    world = World(seed=SEED, users=USERS, messages_per_user=(0, LONGEST))
    mirror = Mirror(folder)
    with MockServer(world) as server:
        _say(
            f"The mock serves {world.total_users:,} users and {world.total_messages:,} messages "
            f"at {server.url}"
        )
        _say(f"\nFirst sync into {folder}")
        _tell_run(_sync(mirror, server), server)
        _say(f"\nThe world changes: {_change(world)}")
        _say("\nSecond sync")
        _tell_run(_sync(mirror, server), server)
    for question, query in QUERIES:
        _say(f"\n{question}")
        relation = mirror.sql(query)
        print_table(relation.columns, relation.fetchall(), sys.stdout)
    _say(
        f"\nThe mirror stays in {folder}; read it with Mirror({str(folder)!r}).sql(...), "
        f"see its runs with: backread report {folder}"
    )


def _prepare(folder: Path) -> None:
    if (folder / DEMO_MARKER).is_file():
        _remove_mirror(folder)
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UnusableArgumentError(
            f"{folder} is there already and no demo made it; name another: backread demo FOLDER"
        )
    make_folder(folder)
    with Unfinished(folder / DEMO_MARKER) as marker:
        marker.file.write(b"made by backread demo, which may remove it\n")


def _remove_mirror(folder: Path) -> None:
    # What a user put beside it stays.
    for name in OWN_NAMES:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _sync(mirror: Mirror, server: MockServer) -> SyncReport:
    with server.client() as client, progress() as tell:
        return mirror.sync(client, on_progress=tell)


def _tell_run(done: SyncReport, server: MockServer) -> None:
    rows = done.users + done.messages
    _say(f"  {summary(done)}")
    _say(
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
    came = world.total_messages - before
    return f"{len(users)} users and {came} messages come, 3 users are renamed"


def _say(line: str) -> None:
    sys.stdout.write(plain_lines(line) + "\n")
    sys.stdout.flush()
