"""Where an export is written: beside its target, which it becomes when it is complete."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from backread._files.access import (
    RefusedFileError,
    access_of,
    check_folder,
    flush_directory,
    flush_file,
    give_access,
    give_folder,
    give_like_folder,
    read_file,
)
from backread._files.paths import is_utf8, local_path, shown
from backread._files.unfinished import private_folder, remove_folder, unfinished_name
from backread._interruptible import run_to_its_end
from backread._report.page import is_report
from backread.errors import MirrorError
from backread.mirror.published.table import TableName
from backread.mirror.store.engine import disk_is_full, load_duckdb
from backread.mirror.store.folder import CURRENT, CURRENT_FILE, DATABASE_NAME, PUBLISHED

INSTEAD = "export to this machine, and copy it there afterwards"

ONE_TABLE = ("parquet", "csv", "jsonl")
"""The formats whose files hold one table."""

PERSON_FILE = "everything.json"
CONVERSATION_FILE = "conversation.txt"

ATTACHMENT = "attachment-"
"""How the names of a person's attachments begin."""

FOLDER_FILES = {
    *(f"{table}.{shape}" for table in get_args(TableName) for shape in ONE_TABLE),
    PERSON_FILE,
    CONVERSATION_FILE,
}
"""The files of exports that are folders."""


class TargetError(MirrorError):
    """The target of an export cannot be written; the mirror itself is fine."""


class WriterError(Exception):
    """The library that writes a format has failed."""


@dataclass(frozen=True, slots=True)
class Target:
    """The file or folder that an export creates or replaces."""

    path: Path
    is_folder: bool
    replaces: bool
    is_report: bool = False
    """Whether only a report is replaced."""

    @classmethod
    def parse(
        cls,
        path: str | os.PathLike[str],
        *,
        is_folder: bool,
        replaces: bool,
        is_report: bool = False,
    ) -> Target:
        """Raises `TargetError` for a path that cannot be created, or may not be replaced."""
        try:
            place = local_path(path, INSTEAD).absolute()
            target = cls(place, is_folder, replaces, is_report)
        except ValueError as error:
            raise TargetError(f"the target of an export: {error}") from None
        name, parent = shown(target.path), target.path.parent
        if not is_utf8(target.path) or (os.name != "nt" and set("\\?") & set(str(target.path))):
            raise TargetError(
                f"{name} has a question mark, a backslash or a byte that is not UTF-8 in its path, "
                "which DuckDB cannot write; choose another"
            )
        try:
            target._check_existing()
            check_folder(parent, shared=True, for_folder=is_folder)
        except FileNotFoundError:
            raise TargetError(f"the folder {shown(parent)} does not exist; create it") from None
        except OSError as error:
            raise TargetError(f"{name} cannot be written: {error.strerror}") from None
        if any(map(_is_mirror, (parent.resolve(), *parent.resolve().parents))):
            raise TargetError(f"{name} is inside the mirror; export to a place outside it")
        return target

    @contextmanager
    def unfinished(self) -> Iterator[Path]:
        """A private folder for the files; it is placed at the end of the block, or removed.

        A target that is a file is the file of its name in this folder.
        """
        with ExitStack() as stack:
            with target_errors(self):
                folder = stack.enter_context(private_folder(self.path.parent, self.path.name))
            yield folder
            with target_errors(self):
                # Another program may have written there meanwhile.
                self._check_existing()
                if self.is_folder:
                    self._place_folder(folder)
                else:
                    file = folder / self.path.name
                    give_access(file, access_of(self.path))
                    flush_file(file)
                    file.replace(self.path)
                flush_directory(self.path.parent)

    def _place_folder(self, folder: Path) -> None:
        earlier = self.path.with_name(unfinished_name(self.path.name))
        exists = self.path.exists()
        if exists:
            give_folder(folder, self.path)
        for file in folder.iterdir():
            give_like_folder(file, folder)
            flush_file(file)
        flush_directory(folder)

        def swap() -> None:
            if exists:
                self.path.rename(earlier)
            try:
                folder.rename(self.path)
            except OSError:
                if exists:
                    earlier.rename(self.path)
                raise

        run_to_its_end(swap)
        remove_folder(earlier)

    def _check_existing(self) -> None:
        if not os.path.lexists(self.path):
            return
        name = shown(self.path)
        if not self.replaces:
            raise TargetError(
                f"{name} exists already; remove it, choose another name, or pass replace=True "
                "(--replace)"
            )
        if not self.is_folder:
            # Refuses links and folders.
            access_of(self.path)
            held = read_file(self.path) if self.is_report else b""
            if held and not is_report(held):
                raise TargetError(
                    f"{name} exists and is no report of backread, so it is not replaced; remove "
                    "it, or choose another name"
                )
        elif self.path.is_symlink() or not self.path.is_dir():
            raise TargetError(
                f"{name} is not a folder, but this export writes one; remove it, or choose another "
                "name"
            )
        else:
            for file in self.path.iterdir():
                known = file.name in FOLDER_FILES or file.name.startswith(ATTACHMENT)
                if not known or file.is_symlink() or not file.is_file():
                    raise TargetError(
                        f"{name} is not replaced, because it contains {shown(file.name)}, which "
                        "no export wrote; move that file, or choose another name"
                    )


def report_target(path: str | os.PathLike[str]) -> Target:
    """The file that `Mirror.report` creates, or replaces if it is a report.

    Raises ValueError for a name with a suffix of another format, `TargetError` as `Target.parse`.
    """
    suffix = Path(path).suffix
    # What has no letter is part of a date.
    if suffix.upper() != suffix.lower() not in (".html", ".htm"):
        raise ValueError("the report is HTML; name a file such as report.html")
    return Target.parse(path, is_folder=False, replaces=True, is_report=True)


def _is_mirror(folder: Path) -> bool:
    signs = (DATABASE_NAME, f"{PUBLISHED}/{CURRENT}", f"{PUBLISHED}/{CURRENT_FILE}")
    return any(os.path.lexists(folder / sign) for sign in signs)


@contextmanager
def target_errors(target: Target) -> Iterator[None]:
    """Turns the errors of DuckDB, of files and of writers into one sentence."""
    try:
        yield
    except (load_duckdb().Error, OSError, WriterError) as error:
        # The file system gives its errors a number; others are of a callback or a signal's handler.
        if isinstance(error, OSError) and error.errno is None:
            raise
        raise _named(target, error) from error


def _named(target: Target, error: Exception) -> MirrorError:
    name, line = f"the export to {shown(target.path)}", " ".join(str(error).split())
    if isinstance(error, RefusedFileError):
        return TargetError(f"{name}: {error}")
    if disk_is_full(line) or getattr(error, "errno", None) == errno.EFBIG:
        return TargetError(
            f"{name}: the disk is full, and nothing was written; free some space, or choose "
            f"another place ({line})"
        )
    kind = TargetError if isinstance(error, OSError) else MirrorError
    return kind(f"{name} failed, and nothing was written: {line or type(error).__name__}")
