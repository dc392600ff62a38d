"""`ExportProgress`, reported while an export runs, and `ExportReport`, returned at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

ExportFormat: TypeAlias = Literal["parquet", "csv", "jsonl", "xlsx", "sqlite", "duckdb"]
"""What `Mirror.export` writes."""

Codec: TypeAlias = Literal["zstd", "snappy", "gzip", "uncompressed"]
"""How the pages of Parquet files are compressed."""


@dataclass(frozen=True, slots=True)
class ExportProgress:
    """The progress of an export: ``rows`` of ``rows_total``, and the table that is written now.

    ``rows`` is estimated while DuckDB writes a table. ``bytes`` have been written,
    in ``seconds``.
    """

    table: str
    rows: int
    rows_total: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What one export wrote.

    - ``target`` is the file or folder, ``files`` are the files in it, or the file itself, and
      ``format`` is theirs.
    - ``rows`` has the number of rows of each table. ``bytes`` is the size of the files, and
      ``seconds`` the time it took.
    - ``guarded_cells`` (CSV) begin with an apostrophe, so that no spreadsheet takes them for a
      formula.
    - ``cut_cells`` (XLSX) were longer than the 32,767 characters of a cell, and end there.
      ``replaced_cells`` (XLSX, SQLite) have U+FFFD in place of what the format cannot hold:
      control characters in XLSX, NUL in SQLite.
    """

    target: Path
    format: ExportFormat | Literal["json"]
    rows: Mapping[str, int]
    files: tuple[Path, ...]
    bytes: int
    seconds: float
    guarded_cells: int = 0
    cut_cells: int = 0
    replaced_cells: int = 0
