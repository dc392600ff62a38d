"""Keeps the rows of a table on disk until all of them, and so its widths, are known."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence

__all__ = ["Spool"]


class Spool:
    """Rows of JSON values in a file without a name; iterated as often as needed."""

    def __init__(self, columns: int) -> None:
        self._file = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115
        self._used = [False] * columns

    def append(self, row: Sequence[object]) -> None:
        """Adds a row, with a value or None for each column."""
        self._used = [
            used or value is not None for used, value in zip(self._used, row, strict=True)
        ]
        self._file.write(json.dumps(row) + "\n")

    @property
    def used(self) -> list[int]:
        """The columns that have a value in any row."""
        return [at for at, used in enumerate(self._used) if used]

    def __iter__(self) -> Iterator[list[object]]:
        """The rows, without the columns that no row uses."""
        used = self.used
        self._file.seek(0)
        for line in self._file:
            row = json.loads(line)
            yield [row[at] for at in used]

    def close(self) -> None:
        """Deletes the file."""
        self._file.close()
