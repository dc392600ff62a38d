"""The file that says how far an unfinished run has come, for other processes."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from backread._files.access import read_file
from backread._files.dataclass_json import dataclass_from_json, to_json_value
from backread._files.json import parse_json
from backread._files.unfinished import Unfinished
from backread.mirror.store.folder import PROGRESS_NAME
from backread.mirror.sync.report import Mode, SyncProgress


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run over all users that is going on, or was killed.

    It is as of ``updated_at``, which is at most some seconds ago if the run is going on.

    ``run_id`` is its number in the mirror, ``mode`` that of the sync. ``started_at`` and
    ``updated_at`` are UTC. ``progress`` has the lists done and in all, the rate
    and the seconds left. ``error`` is what stopped the run; None if it is going on or was killed.
    """

    run_id: int
    mode: Mode
    started_at: datetime
    updated_at: datetime
    progress: SyncProgress
    error: str | None = None

    @property
    def lists_left(self) -> int | None:
        """The message lists that are not read yet, None if their number is unknown."""
        total = self.progress.lists_total
        return None if total is None else max(total - self.progress.lists, 0)

    @property
    def age(self) -> float:
        """Seconds since ``updated_at``: some seconds if the sync is going on."""
        return max((datetime.now(UTC) - self.updated_at).total_seconds(), 0.0)


def write_unfinished_run(folder: Path, run: UnfinishedRun) -> None:
    """Replaces the file. A disk that is full is not reported here."""
    with suppress(OSError), Unfinished(folder / PROGRESS_NAME) as fresh:
        fresh.file.write(json.dumps(to_json_value(run)).encode())


def forget_unfinished_run(folder: Path) -> None:
    """Removes the file, at the end of a run."""
    with suppress(OSError):
        (folder / PROGRESS_NAME).unlink(missing_ok=True)


def read_unfinished_run(folder: Path) -> UnfinishedRun | None:
    """What the file says, None if there is none or it is damaged."""
    try:
        document = parse_json(read_file(folder / PROGRESS_NAME))
        return dataclass_from_json(UnfinishedRun, document, "unfinished run")
    except (OSError, ValueError):
        return None
