"""Where an export is written: beside its target, which it becomes when it is complete."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from backread._files.access import (
    RefusedFileError,
    check_folder,
    flush_directory,
    flush_file,
    give_like_folder,
    keep_for_owner,
)
from backread._files.paths import is_utf8, local_path, shown
from backread._files.unfinished import private_folder, remove_leftovers
from backread.errors import MirrorError
from backread.mirror.store.engine import disk_is_full, load_duckdb

__all__ = ["NO_DELTA", "Target", "TargetError", "WriterError", "names_delta", "target_errors"]

INSTEAD = "export to this machine, and copy it there afterwards"


NO_DELTA = (
    "backread exports no Delta tables; write them with deltalake: "
    'write_deltalake(uri, mirror.table("messages"))'
)


class TargetError(MirrorError):
    """The target of an export cannot be written; the mirror itself is fine."""


class WriterError(Exception):
    """The library that writes a format has failed."""


@dataclass(frozen=True, slots=True)
class Target:
    """The file or folder that an export creates."""

    path: Path
    is_folder: bool

    @classmethod
    def parse(cls, path: str | os.PathLike[str], mirror: Path, *, is_folder: bool) -> Target:
        """Raises `TargetError` for a path that exists or cannot be created."""
        try:
            target = local_path(path, INSTEAD).absolute()
        except ValueError as error:
            raise TargetError(f"the target of an export: {error}") from None
        name = shown(target)
        if not is_utf8(target) or (os.name != "nt" and set("\\?") & set(str(target))):
            raise TargetError(
                f"{name} has a question mark, a backslash or a byte that is not UTF-8 in its path, "
                "which DuckDB cannot write; choose another"
            )
        parent = target.parent
        if os.path.lexists(target):
            # A kill just after it was placed has left a second name of the file.
            remove_leftovers(parent, target.name)
            raise TargetError(f"{name} exists already; remove it, or choose another name")
        try:
            if mirror.resolve() in (parent.resolve(), *parent.resolve().parents):
                raise TargetError(f"{name} is inside the mirror; export to a place outside it")
            check_folder(parent, shared=True, for_folder=is_folder)
        except FileNotFoundError:
            raise TargetError(f"the folder {shown(parent)} does not exist; create it") from None
        except OSError as error:
            raise TargetError(f"{name} cannot be written: {error.strerror}") from None
        return cls(target, is_folder)

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
                if self.is_folder:
                    self._place_folder(folder)
                else:
                    self._place_file(folder / self.path.name)
                flush_directory(self.path.parent)

    def _place_folder(self, folder: Path) -> None:
        for file in folder.iterdir():
            give_like_folder(file, folder)
            flush_file(file)
        flush_directory(folder)
        keep_for_owner(folder)
        self._refuse_existing()
        folder.rename(self.path)

    def _place_file(self, file: Path) -> None:
        give_like_folder(file, self.path.parent)
        flush_file(file)
        try:
            # Fails if the target exists, which a rename would replace.
            os.link(file, self.path)
        except FileExistsError:
            self._refuse_existing()
        except OSError:
            # A file system without hard links.
            self._refuse_existing()
            file.rename(self.path)

    def _refuse_existing(self) -> None:
        if os.path.lexists(self.path):
            raise TargetError(
                f"{shown(self.path)} was created by another program meanwhile; remove it, or "
                "choose another name"
            )


def names_delta(target: str | os.PathLike[str]) -> bool:
    """Whether the target's name or URI asks for a Delta table."""
    path = Path(target)
    return path.suffix.lower() == ".delta" or path.parts[:1] == ("delta:",)


@contextmanager
def target_errors(target: Target) -> Iterator[None]:
    """Turns the errors of DuckDB, of files and of writers into one sentence."""
    try:
        yield
    except MirrorError:
        raise
    except (load_duckdb().Error, OSError, WriterError) as error:
        raise _named(target, error) from error


def _named(target: Target, error: Exception) -> MirrorError:
    name = shown(target.path)
    if isinstance(error, RefusedFileError):
        return TargetError(f"the export to {name}: {error}")
    line = " ".join(str(error).split())
    lowered = line.lower()
    full = isinstance(error, OSError) and error.errno in (
        errno.ENOSPC,
        errno.EFBIG,
        getattr(errno, "EDQUOT", errno.ENOSPC),
    )
    if full or disk_is_full(line):
        return TargetError(
            f"the export to {name}: the disk is full, and nothing was written; free some space, "
            f"or choose another place ({line})"
        )
    if "no files found" in lowered or (".parquet" in lowered and "no such file" in lowered):
        return MirrorError(
            f"the export to {name}: its snapshot was removed meanwhile, and nothing was written; "
            f"export again ({line})"
        )
    if isinstance(error, OSError):
        return TargetError(f"the export to {name} failed, and nothing was written: {line}")
    return MirrorError(
        f"the export to {name} failed, and nothing was written: {line or type(error).__name__}"
    )
