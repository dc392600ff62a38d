"""Arguments that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from backread.cli.completion import folders
from backread.cli.paths import folder_to_write

__all__ = ["Folder"]

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
