"""``forget``: removes users from a mirror for good."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from backread._display.words import amount, line
from backread.cli.arguments import Folder, argument, flag, value
from backread.cli.exits import UnusableArgumentError
from backread.cli.stderr import say, tell, waiting
from backread.errors import MirrorError

if TYPE_CHECKING:
    from backread.mirror import ForgetReport, Mirror


MOST_NAMED = 20
"""How many users are named before they are removed."""

USERS = """
SELECT id, name, email, (SELECT count(*) FROM messages WHERE user_id = users.id)
FROM users WHERE id IN (SELECT unnest(?::BIGINT[])) ORDER BY id
"""


def forget(
    folder: Folder,
    user_ids: Annotated[list[int], argument("USER_ID", "The users' ids.", min=0)],
    landing: Annotated[
        list[str] | None,
        value("FOLDER", "Also remove them from this landing folder; may be repeated."),
    ] = None,
    anyway: Annotated[bool, flag("Accept ids that are not in the mirror.", "--anyway")] = False,
    yes: Annotated[bool, flag("Do not ask on a terminal.", "--yes", "-y")] = False,
    dry_run: Annotated[bool, flag("Only show whom it would remove.", "--dry-run")] = False,
) -> None:
    """Removes users and all their messages from the mirror in FOLDER, for good.

    The mirror keeps their ids, so that no later sync brings them back. Queries that are running may
    fail, because the files they read are removed. It needs free space for a second copy of the
    database. What it cannot reach, such as copies and backups, is in docs/how-to/forget.md. On a
    terminal it asks first.

    Examples:
        backread forget chats 42 --dry-run
        backread forget chats 42 --landing landed
    """
    from backread.mirror import Mirror

    mirror = Mirror(folder)
    if dry_run:
        sys.stdout.writelines(f"{each}\n" for each in _found(mirror, user_ids, anyway))
        return
    if not yes and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        _ask(mirror, user_ids)
    try:
        with waiting("forgetting"):
            done = mirror.forget(*user_ids, landings=landing or (), missing_ok=anyway)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "stopped; run the same command again to complete it, or to begin it"
        ) from None
    tell(summary(done))


def _found(mirror: Mirror, user_ids: Sequence[int], anyway: bool) -> list[str]:
    """A line about each user, as the published snapshot has them."""
    rows = mirror.sql(USERS, [list(user_ids)]).fetchall()
    known = {row[0] for row in rows}
    if unknown := [each for each in user_ids if each not in known]:
        listed = ", ".join(map(str, unknown))
        if not anyway:
            raise MirrorError(
                f"the snapshot in {mirror.folder} has no user {listed}; check the ids, or add "
                "--anyway"
            )
        rows += [(each, "not in the mirror", "", 0) for each in unknown]
    return [
        f"user {user_id}, {', '.join(filter(None, (line(name or ''), line(email or ''))))}: "
        f"{amount(messages, 'message')}"
        for user_id, name, email, messages in rows
    ]


def _ask(mirror: Mirror, user_ids: Sequence[int]) -> None:
    """Goes on only if the user says so."""
    try:
        lines = _found(mirror, user_ids, True)
    except MirrorError:
        # Nothing is published; the removal itself says what is wrong, if anything.
        lines = [f"user {each}" for each in user_ids]
    for each in lines[:MOST_NAMED]:
        say(each, named=False, error=True)
    if len(lines) > MOST_NAMED:
        say(f"and {len(lines) - MOST_NAMED:,} more", named=False, error=True)
    try:
        agreed = typer.confirm("Remove them for good?", err=True)
    except typer.Abort:
        raise KeyboardInterrupt("nothing was removed") from None
    if not agreed:
        raise UnusableArgumentError("nothing was removed; answer y, or add --yes")


def summary(done: ForgetReport) -> str:
    """One line about what was removed."""
    users, rejects = amount(done.users, "user"), amount(done.rejects, "reject")
    parts = [
        f"{amount(len(done.forgotten), 'user')} forgotten" if done.forgotten else "",
        f"forgotten before: {', '.join(map(str, done.earlier))}" if done.earlier else "",
        f"{users}, {amount(done.messages, 'message')} and {rejects} removed",
        f"{amount(done.landing_rows, 'row')} of {amount(done.landing_files, 'landing file')} "
        "removed"
        if done.landing_files
        else "",
        f"{done.bytes_freed:,} bytes freed",
        f"{amount(done.messages_elsewhere, 'message')} of theirs stay in other users' lists, see "
        "docs/how-to/forget.md"
        if done.messages_elsewhere
        else "",
    ]
    return "; ".join(filter(None, parts))
