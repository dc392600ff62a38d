"""Storage for landed runs: a local folder, or any filesystem that pyarrow supports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from backread._files.access import RefusedFileError, make_folder, make_subfolder, read_file
from backread._files.paths import is_utf8, local_path, shown
from backread._files.unfinished import Unfinished, remove_leftovers, unfinished_name
from backread.errors import BackreadError, LandingError

GIVE_A_URI = "pass the URI as a str: a Path drops one of its slashes"

Folder: TypeAlias = str | os.PathLike[str]


class Storage:
    """Files below a folder, by their relative names; writes are atomic."""

    def __init__(self, folder: Folder) -> None:
        filesystems = require("pyarrow.fs")
        self.folder = os.fspath(folder)
        if not self.folder:
            raise LandingError("the landing folder is empty; pass a path or a URI")
        _refuse_keys(self.folder)
        self.is_local = "://" not in self.folder or self.folder.startswith("file://")
        try:
            if "://" in self.folder:
                self.filesystem, self._root = filesystems.FileSystem.from_uri(self.folder)
            else:
                self.filesystem = filesystems.LocalFileSystem()
                self._root = str(local_path(self.folder, GIVE_A_URI).absolute())
                if not is_utf8(self._root):
                    raise ValueError("pyarrow only supports UTF-8 names")
        except (OSError, ValueError) as error:
            raise LandingError(
                f"the landing folder {shown(self.folder)}: {error}; pass a path, or a URI that "
                "pyarrow supports"
            ) from None

    def path(self, name: str) -> str:
        """The file's path on its filesystem."""
        return f"{self._root.rstrip('/')}/{name}"

    def make_folder(self, name: str) -> None:
        """Creates a folder below this one, and this one if missing; checks existing ones."""
        with self.named(name, "created"):
            if not self.is_local:
                self.filesystem.create_dir(self.path(name), recursive=True)
                return
            folder = Path(self._root)
            make_folder(folder)
            for part in name.split("/"):
                folder /= part
                make_subfolder(folder)

    def clean(self, name: str) -> None:
        """Removes unfinished files of killed processes in a folder below this one.

        An object store keeps them, since there they look like files still being written.
        """
        if self.is_local:
            remove_leftovers(Path(self.path(name)))

    def read(self, name: str) -> bytes | None:
        """The file's contents, None if there is no such file."""
        with self.named(name, "read"):
            try:
                if self.is_local:
                    return read_file(Path(self.path(name)))
                with self.filesystem.open_input_stream(self.path(name)) as stream:
                    read: bytes = stream.read()
                    return read
            except FileNotFoundError:
                return None

    def write(self, name: str, text: str) -> None:
        """Writes the file, replacing an existing one."""
        with (
            self.named(name, "written"),
            self.fresh(name) as path,
            self.filesystem.open_output_stream(path) as stream,
        ):
            stream.write(text.encode())

    def create(self, name: str, text: str) -> bool:
        """Writes a new file; returns False and does nothing if it exists.

        Atomic on local filesystems with hard links: of two concurrent calls only one succeeds.
        Others have no such operation, so this checks before it writes.
        """
        with self.named(name, "written"):
            if self.is_local:
                with Unfinished(Path(self.path(name))) as unfinished:
                    unfinished.file.write(text.encode())
                    return unfinished.place_new()
            if is_new := self.size(name) is None:
                self.write(name, text)
            return is_new

    @contextmanager
    def fresh(self, name: str) -> Iterator[str]:
        """A temporary path to write to, renamed to the file's name if the block succeeds."""
        if self.is_local:
            with Unfinished(Path(self.path(name))) as unfinished:
                yield str(unfinished.path)
            return
        place, _, last = name.rpartition("/")
        temporary = self.path(f"{place}/{unfinished_name(last)}")
        try:
            yield temporary
            self.filesystem.move(temporary, self.path(name))
        except BaseException:
            # The file may not exist yet; if it stays, no manifest names it.
            with suppress(OSError):
                self.filesystem.delete_file(temporary)
            raise

    def size(self, name: str) -> int | None:
        """The file's size in bytes, None if there is none."""
        with self.named(name, "found"):
            found = self.filesystem.get_file_info(self.path(name))
            size: int | None = found.size if found.is_file else None
            return size

    def is_there(self) -> bool:
        """Whether the folder exists; in an object store, whether it has any file."""
        with self.named("it", "found"):
            found = self.filesystem.get_file_info(self._root)
            return bool(found.type == require("pyarrow.fs").FileType.Directory)

    def names(self, name: str) -> list[str]:
        """The sorted names of the files in a folder below this one; none if it does not exist."""
        selector = require("pyarrow.fs").FileSelector(self.path(name), allow_not_found=True)
        with self.named(name, "listed"):
            try:
                found = self.filesystem.get_file_info(selector)
            except FileNotFoundError:
                # Another process created the folder between Arrow's two looks at it.
                found = self.filesystem.get_file_info(selector)
            return sorted(each.base_name for each in found if each.is_file)

    def files_below(self) -> list[str]:
        """Every file below this folder, by its relative name."""
        root = self.path("")
        selector = require("pyarrow.fs").FileSelector(
            root.rstrip("/"), allow_not_found=True, recursive=True
        )
        with self.named("it", "listed"):
            found = self.filesystem.get_file_info(selector)
        return [each.path.removeprefix(root) for each in found if each.is_file]

    @contextmanager
    def named(self, name: str, done: str) -> Iterator[None]:
        """Turns an OSError into a `LandingError` that names the file and says what to do."""
        what = f"the landing folder {self.folder}: {name} cannot be {done}"
        try:
            yield
        except BackreadError:
            # Some of the client's errors are OSErrors.
            raise
        except RefusedFileError as error:
            raise LandingError(f"{what}: {error}") from None
        except OSError as error:
            raise LandingError(
                f"{what}: {error}; check its name, permissions and free space"
            ) from error


def absolute_folder(folder: Folder) -> str:
    """The folder for processes with other working directories; a URI stays as it is.

    Raises ValueError for what is neither a path nor a URI.
    """
    text = os.fspath(folder)
    return text if "://" in text else str(local_path(text, GIVE_A_URI).absolute())


def _refuse_keys(folder: str) -> None:
    """Refuses credentials in the folder's URI: errors, plans and manifests would show them."""
    authority = urlsplit(folder).netloc if "://" in folder else ""
    login, at, host = authority.rpartition("@")
    if at and ":" in login:
        raise LandingError(
            f"the landing folder's URI for {host} contains keys, which would be shown; "
            "set them in the environment of each worker instead, such as "
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
