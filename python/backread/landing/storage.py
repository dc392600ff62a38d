"""The folder that runs are landed in: on this machine, or wherever pyarrow reaches."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from uuid import uuid4

from backread._disk import flush_directory, flush_file
from backread.errors import BackreadError, LandingError

__all__ = ["Folder", "Storage", "check_kind", "require"]

Folder: TypeAlias = str | os.PathLike[str]


class Storage:
    """Files below a folder, by their relative names; each is written whole or is not there."""

    def __init__(self, folder: Folder) -> None:
        filesystems = require("pyarrow.fs")
        self.folder = os.fspath(folder)
        if not self.folder:
            raise LandingError("the landing folder has no name; give a path or a URI")
        _refuse_keys(self.folder)
        self.is_local = "://" not in self.folder or self.folder.startswith("file://")
        try:
            if "://" in self.folder:
                self.filesystem, self._root = filesystems.FileSystem.from_uri(self.folder)
            else:
                self.filesystem = filesystems.LocalFileSystem()
                self._root = str(Path(self.folder).absolute())
        except (OSError, ValueError) as error:
            raise LandingError(
                f"the landing folder {self.folder}: {error}; name a path, or a URI that "
                "pyarrow knows"
            ) from None

    def path(self, name: str) -> str:
        """The file's path on its filesystem."""
        return f"{self._root.rstrip('/')}/{name}"

    def make_folder(self, name: str) -> None:
        with self.named(name, "made"):
            self.filesystem.create_dir(self.path(name), recursive=True)

    def read(self, name: str) -> bytes | None:
        """What the file holds, None if there is none."""
        with self.named(name, "read"):
            try:
                with self.filesystem.open_input_stream(self.path(name)) as stream:
                    read: bytes = stream.read()
                    return read
            except FileNotFoundError:
                return None

    def write(self, name: str, text: str) -> None:
        """Puts the text in the place of what was there."""
        with self.named(name, "written"), self.fresh(name) as written:
            self._put(written, text)

    def create(self, name: str, text: str) -> bool:
        """Writes a file that is not there yet; False, with nothing done, where it is.

        On this machine's filesystems two that create the same file at once cannot both succeed.
        Elsewhere there is no such operation to be had, and this one looks first.
        """
        with self.named(name, "written"):
            if not self.is_local:
                if self.size(name) is not None:
                    return False
                self._put(self.path(name), text)
                return True
            temporary = self.temporary(name)
            self._put(temporary, text)
            flush_file(Path(temporary))
            try:
                os.link(temporary, self.path(name))
            except FileExistsError:
                return False
            finally:
                Path(temporary).unlink()
            flush_directory(Path(self.path(name)).parent)
            return True

    def fresh(self, name: str) -> _Fresh:
        """Where to write a file that takes its name once the block has ended well."""
        return _Fresh(self, name)

    def size(self, name: str) -> int | None:
        """The file's size in bytes, None if there is none."""
        with self.named(name, "looked for"):
            found = self.filesystem.get_file_info(self.path(name))
            size: int | None = found.size if found.is_file else None
            return size

    def is_there(self) -> bool:
        """Whether there is such a folder; in an object store, whether anything is in it."""
        with self.named("it", "looked for"):
            found = self.filesystem.get_file_info(self._root)
            return bool(found.type == require("pyarrow.fs").FileType.Directory)

    def names(self, name: str) -> list[str]:
        """The names of the files in a folder below this one, sorted; none if it is not there."""
        selector = require("pyarrow.fs").FileSelector(self.path(name), allow_not_found=True)
        with self.named(name, "listed"):
            found = self.filesystem.get_file_info(selector)
            return sorted(each.base_name for each in found if each.is_file)

    def temporary(self, name: str) -> str:
        # Spark and pyarrow pass over files that begin so.
        place, _, last = name.rpartition("/")
        return self.path(f"{place}/_{uuid4().hex}.{last}")

    def _put(self, path: str, text: str) -> None:
        with self.filesystem.open_output_stream(path) as stream:
            stream.write(text.encode())

    def named(self, name: str, done: str) -> _Named:
        return _Named(f"the landing folder {self.folder}: {name} cannot be {done}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Storage, (self.folder,)


class _Fresh:
    """A file under a temporary name, which takes its own at the end of the block."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage = storage
        self._name = name
        self._temporary = storage.temporary(name)

    def __enter__(self) -> str:
        return self._temporary

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        storage, temporary, final = self._storage, self._temporary, self._storage.path(self._name)
        if kind is not None:
            try:
                storage.filesystem.delete_file(temporary)
            except OSError:
                # It was not made yet, or stays as what nothing names.
                return
            return
        if storage.is_local:
            flush_file(Path(temporary))
        storage.filesystem.move(temporary, final)
        if storage.is_local:
            flush_directory(Path(final).parent)


class _Named:
    """Gives an OSError the file that it is about, and what to do."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        # What the client raises says by itself what happened, though some of it is an OSError too.
        if isinstance(error, OSError) and not isinstance(error, BackreadError):
            raise LandingError(
                f"{self._what}: {error}; check the folder's name, its permissions and its space"
            ) from error


def check_kind(name: str, value: object, kind: type[Any], origin: str) -> None:
    """TypeError for what is not of that kind; ``origin`` says where to get one."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {origin}, a {kind.__name__}, not {type(value).__name__}")


def _refuse_keys(folder: str) -> None:
    """Errors, plans and manifests name the folder, so it must hold no secret."""
    authority = urlsplit(folder).netloc if "://" in folder else ""
    login, at, host = authority.rpartition("@")
    if at and ":" in login:
        raise LandingError(
            f"the landing folder's URI for {host} holds keys, and it would be shown; leave "
            "them out, and give them in the environment of each worker, such as "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )


def require(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise ImportError(
            "landing needs pyarrow, which is not installed; run: pip install pyarrow",
            name="pyarrow",
        ) from None
