"""Reads files that only their owner may read, such as keys and settings."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from backread._files.access import NO_LINK, RefusedFileError
from backread._files.paths import shown

BINARY = getattr(os, "O_BINARY", 0)


def read_private_file(path: Path, most: int, *, owner_only: bool = False) -> bytes:
    """The first ``most`` bytes of a file that only its owner and their group may read.

    Symbolic links are followed within the file's folder only, as Kubernetes mounts secrets. Modes
    and owners are not checked on Windows.

    Args:
        path: The file.
        most: The most bytes to read.
        owner_only: Refuses a file that its group may read, or that belongs to a user other than
            this one and root.

    Raises:
        RefusedFileError: Others may read or replace the file, or it is not a regular file.
        OSError: It cannot be read.
    """
    target = _target(path)
    with os.fdopen(os.open(target, os.O_RDONLY | NO_LINK | BINARY), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise RefusedFileError(f"{shown(path)} is not a regular file; name another")
        if os.name != "nt":
            if owner_only:
                _refuse_other_users(path, found)
            _refuse_shared(path, target, found)
        return file.read(most)


def _target(path: Path) -> Path:
    target = Path(os.path.realpath(path, strict=True))
    if path.is_symlink() and not target.is_relative_to(os.path.realpath(path.parent)):
        raise RefusedFileError(
            f"{shown(path)} is a symbolic link to another folder, which is not followed; use the "
            "path of the file"
        )
    return target


def _refuse_other_users(path: Path, found: os.stat_result) -> None:
    if found.st_uid not in (0, os.geteuid()):
        raise RefusedFileError(
            f"{shown(path)} belongs to another user (uid {found.st_uid}); use a file of your own"
        )
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise RefusedFileError(
            f"other users may access {shown(path)} (mode {stat.S_IMODE(found.st_mode):04o}); run: "
            f"chmod 600 {shown(path)}"
        )


def _refuse_shared(path: Path, target: Path, found: os.stat_result) -> None:
    if found.st_mode & stat.S_IRWXO:
        raise RefusedFileError(f"every user may access {shown(path)}; run: chmod o= on it")
    if found.st_mode & stat.S_IWGRP:
        raise RefusedFileError(f"its group may change {shown(path)}; run: chmod g-w on it")
    folder = target.parent.stat().st_mode
    replaceable = folder & stat.S_IWOTH and not folder & stat.S_ISVTX
    if replaceable or (folder & stat.S_IWOTH and found.st_uid not in (0, os.geteuid())):
        raise RefusedFileError(
            f"every user may write to the folder of {shown(path)}; move it to a private one"
        )
