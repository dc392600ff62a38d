"""Allows one writer per folder at a time, such as a sync."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from backread._files.lock import HeldError, hold, holder_of
from backread.errors import MirrorBusyError
from backread.mirror.store.folder import LOCK_NAME


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """Holds the folder's lock; raises `MirrorBusyError` if another process has it."""
    with ExitStack() as held:
        try:
            held.enter_context(hold(folder / LOCK_NAME))
        except HeldError as error:
            raise MirrorBusyError(
                f"the mirror in {folder} is being synced by {error}; wait for it to end, or end "
                "it, and try again"
            ) from None
        yield


def lock_holder(folder: Path) -> str | None:
    """The process that is writing to the folder, in words; None if there is none."""
    return holder_of(folder / LOCK_NAME)
