"""``forget``: removes users from a mirror for good."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from backread.cli.arguments import Folder
from backread.cli.stderr import wrapped
from backread.cli.waiting import waiting

if TYPE_CHECKING:
    from backread.mirror import ForgetReport

__all__ = ["forget"]


def forget(
    folder: Folder,
    user_ids: Annotated[
        list[int],
        typer.Argument(min=0, metavar="USER_ID...", show_default=False, help="The users' ids."),
    ],
    landing: Annotated[
        list[str] | None,
        typer.Option(
            "--landing",
            metavar="FOLDER",
            show_default=False,
            help="Also remove them from this landing folder; may be repeated.",
        ),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Also accept ids of users that are not in the mirror.")
    ] = False,
) -> None:
    """Removes users and all their messages from the mirror in FOLDER, for good.

    The mirror keeps their ids, so that no later sync brings them back. Queries that are running may
    fail, because the files they read are removed. It needs free space for a second copy of the
    database. What it cannot reach, such as copies and backups, is in docs/how-to/forget.md.
    """
    from backread.mirror import Mirror

    mirror = Mirror(folder)
    try:
        with waiting("forgetting"):
            done = mirror.forget(*user_ids, landings=landing or (), missing_ok=anyway)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "stopped; run the same command again to complete it, or to begin it"
        ) from None
    sys.stdout.writelines(f"{line}\n" for line in wrapped(summary(done), sys.stdout))


def summary(done: ForgetReport) -> str:
    """One line about what was removed."""
    earlier = ", ".join(map(str, done.earlier))
    users, rejects = _counted(done.users, "user"), _counted(done.rejects, "reject")
    landed = _counted(done.landing_rows, "row")
    parts = [
        f"{_counted(len(done.forgotten), 'user')} forgotten" if done.forgotten else "",
        f"forgotten before: {earlier}" if earlier else "",
        f"{users}, {_counted(done.messages, 'message')} and {rejects} removed",
        f"{landed} of {_counted(done.landing_files, 'landing file')} removed"
        if done.landing_files
        else "",
        f"{done.bytes_freed:,} bytes freed",
        f"{_counted(done.messages_elsewhere, 'message')} of theirs stay in other users' lists, see "
        "docs/how-to/forget.md"
        if done.messages_elsewhere
        else "",
    ]
    return "; ".join(part for part in parts if part)


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"
