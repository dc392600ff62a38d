"""How much memory a mirror's database may use: `Mirror`'s argument ``memory_limit``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from backread.mirror.store.engine import rows_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LARGEST_DEFAULT = 4 * 1000**3
LEAST_DEFAULT = 256 * 1000**2
SHARE = 0.25
DUCKDB_SHARE = 0.8
"""The share of the memory that is DuckDB's own default."""

LEAST = 100 * 1000**2
"""Below this, DuckDB cannot merge a batch."""

SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)(?:B|BYTES)?", re.ASCII)
POWERS = ("", "K", "M", "G", "T")


def read_memory_limit(value: object) -> int:
    """Bytes from a number or from text such as ``"2GB"`` or ``"512MiB"``.

    Raises ValueError for other text or less than 100 MB, TypeError for another type.
    """
    if isinstance(value, str):
        if (found := SIZE.fullmatch(value.strip().upper())) is None:
            raise ValueError(
                f"memory_limit must be bytes, or text such as '2GB' or '512MiB', not {value!r:.60}"
            )
        limit = float(found[1]) * (1024 if found[3] else 1000) ** POWERS.index(found[2])
    elif isinstance(value, int) and not isinstance(value, bool):
        limit = value
    else:
        raise TypeError(
            "memory_limit must be a number of bytes, or text such as '2GB', not "
            f"{type(value).__name__}"
        )
    if not LEAST <= limit < 2**63:
        raise ValueError(f"memory_limit must be 100MB or more, not {value!r:.60}")
    return int(limit)


def default_memory_limit(connection: DuckDBPyConnection) -> int:
    """A quarter of the memory, or of the cgroup's limit if that is less; at most 4 GB.

    ``connection`` is one without a limit: DuckDB finds out both on each platform.
    """
    [(own,)] = rows_of(connection, "SELECT current_setting('memory_limit')")
    memory = read_memory_limit(own) / DUCKDB_SHARE
    return int(min(max(memory * SHARE, LEAST_DEFAULT), LARGEST_DEFAULT))
