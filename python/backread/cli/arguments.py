"""Arguments that several commands have."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from backread.cli.paths import folder_to_write

__all__ = ["VARIABLE", "Folder", "Until", "folders"]


VARIABLE = "_BACKREAD_COMPLETE"
"""Set by the shell's script when it wants completions."""

# Bash puts a completion on the line as it is, and zsh evaluates it: \$(...) in the name of a folder
# would be executed. The shells complete such folders themselves, quoted, when nothing is given.
SPECIAL = re.compile(r"""[\x00-\x1f\x7f-\x9f\\"'`$&;|<>(){}\[\]*?!#~^]""")


def folders(incomplete: str) -> list[str]:
    """The folders whose path begins with this, without those whose names a shell would evaluate."""
    # What stands before the name stays as it was typed.
    before = incomplete[: incomplete.rfind("/") + 1]
    try:
        typed = Path(incomplete).expanduser()
        parent = typed if incomplete.endswith("/") or not incomplete else typed.parent
        names = sorted(
            each.name
            for each in parent.iterdir()
            if not SPECIAL.search(each.name) and each.is_dir()
        )
    except (OSError, RuntimeError):
        # RuntimeError is for a ~ without a home folder.
        return []
    hidden = incomplete[len(before) :].startswith(".")
    return [f"{before}{name}" for name in names if hidden or not name.startswith(".")]


Folder = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER",
        parser=folder_to_write,
        autocompletion=folders,
        show_default=False,
        help="The mirror's folder.",
    ),
]


def _instant(text: str) -> datetime:
    if text == "now":
        return datetime.now(UTC)
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("it must be a date, such as 2026-11-30, or now") from None
    return given if given.tzinfo else given.replace(tzinfo=UTC)


Until: TypeAlias = Annotated[
    datetime | None,
    typer.Option(
        "--until",
        metavar="DATE",
        parser=_instant,
        show_default=False,
        help="When the times of the rows end, in UTC: a date such as 2026-11-30, or now.",
    ),
]
