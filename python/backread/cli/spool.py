"""Keeps the rows of a table on disk until all of them, and so its widths, are known."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from backread._files.paths import shown
from backread.cli.exits import UnusableArgumentError

__all__ = ["Spool"]


class Spool:
    """Rows of JSON values in a file without a name; iterated as often as needed."""

    def __init__(self, columns: int) -> None:
        with _named_errors():
            self._file = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115
        self._used = [False] * columns

    def append(self, row: Sequence[object]) -> None:
        """Adds a row, with a value or None for each column."""
        self._used = [
            used or value is not None for used, value in zip(self._used, row, strict=True)
        ]
        with _named_errors():
            self._file.write(json.dumps(row) + "\n")

    @property
    def used(self) -> list[int]:
        """The columns that have a value in any row."""
        return [at for at, used in enumerate(self._used) if used]

    def __iter__(self) -> Iterator[list[object]]:
        """The rows, without the columns that no row uses."""
        used = self.used
        with _named_errors():
            # Writes what is buffered.
            self._file.seek(0)
        for line in self._file:
            row = json.loads(line)
            yield [row[at] for at in used]

    def close(self) -> None:
        """Deletes the file."""
        # On a full disk, what is buffered cannot be written; an error has said so.
        with suppress(OSError):
            self._file.close()


@contextmanager
def _named_errors() -> Iterator[None]:
    """Names the folder of the file; the error would be taken for one of the output."""
    try:
        yield
    except OSError as error:
        # None if no such folder was found, which the error says.
        folder = tempfile.tempdir or "a temporary folder"
        raise UnusableArgumentError(
            f"the rows of the table cannot be kept in {shown(folder)}: "
            f"{error.strerror}; free some space there, or set TMPDIR to another folder"
        ) from None
