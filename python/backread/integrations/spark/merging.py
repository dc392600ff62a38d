"""Reduces rows landed in several runs to one row per key, that of the newest run."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window  # type: ignore[import-not-found, unused-ignore]
from pyspark.sql.functions import col, row_number  # type: ignore[import-not-found, unused-ignore]

from backread._client.columns import KEYS, MESSAGES, USERS
from backread.errors import ConfigurationError
from backread.integrations.spark.columns import RUN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame  # type: ignore[import-not-found, unused-ignore]

__all__ = ["merge_into_delta", "newest"]

RANK = "backread_rank"

# Columns that distinguish users from messages: without user_id, messages of several users collide.
ONLY_USERS = {each.name for each in USERS} - {each.name for each in MESSAGES}
ONLY_MESSAGES = {each.name for each in MESSAGES} - {each.name for each in USERS}


def newest(frame: DataFrame) -> DataFrame:
    """The newest of the landed rows per key: one row per user or message, with all columns.

    Rows that are missing from later runs stay.

    Args:
        frame: Rows that were read with option ``landing``, or a table of such rows; the column
            ``run`` says which is newer.

    Raises:
        ConfigurationError: The frame lacks ``run`` or the key.
    """
    key = _key(frame.columns)
    window = Window.partitionBy(*key).orderBy(col(RUN).desc())
    ranked = frame.withColumn(RANK, row_number().over(window))
    return ranked.where(col(RANK) == 1).drop(RANK)


def merge_into_delta(
    table: str | os.PathLike[str], *, storage_options: dict[str, str] | None = None
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that merges landed rows into a Delta table by key.

    After each batch the table has one row per key, with the values of the newest run that has it;
    ``run`` is the run in which they last changed. Merging a batch again after a crash changes
    nothing. Rows that are missing from later runs stay. The table is created if it does not exist.

    The rows of a batch pass through the driver, which needs the package deltalake
    (``pip install "backread[spark-delta]"``); option ``max_runs_per_trigger`` limits them.

    Args:
        table: A path or a URI.
        storage_options: Those of deltalake.

    Raises:
        ImportError: deltalake is not installed. The function raises deltalake's errors if the
            table cannot be written.

    Example:
        >>> frame.writeStream.foreachBatch(merge_into_delta("/srv/delta/messages")).start()
    """
    import deltalake  # type: ignore[import-not-found, import-untyped, unused-ignore]

    place = os.fspath(table)

    def merge(frame: DataFrame, batch: int) -> None:
        rows = newest(frame).toArrow()
        if rows.num_rows:
            _merge(deltalake, place, rows, storage_options)

    return merge


def _merge(deltalake: Any, place: str, rows: Any, storage_options: dict[str, str] | None) -> None:
    table = deltalake.DeltaTable.create(
        place, schema=rows.schema, mode="ignore", storage_options=storage_options
    )
    key = _key(rows.schema.names)
    same = " AND ".join(f"held.{name} = landed.{name}" for name in key)
    differs = " OR ".join(
        f"(landed.{name} IS DISTINCT FROM held.{name})"
        for name in rows.schema.names
        if name not in (*key, RUN)
    )
    newer = f"landed.{RUN} >= held.{RUN}"
    (
        table.merge(rows, same, source_alias="landed", target_alias="held")
        .when_matched_update_all(f"{newer} AND ({differs})" if differs else newer)
        .when_not_matched_insert_all()
        .execute()
    )


def _key(columns: list[str]) -> tuple[str, ...]:
    """The key columns, as named in the frame; Spark's names are case-insensitive."""
    named = {name.lower(): name for name in columns}
    about_users = named.keys() & ONLY_USERS and not named.keys() & ONLY_MESSAGES
    key = KEYS["users"] if about_users else KEYS["messages"]
    missing = [name for name in (*key, RUN) if name not in named]
    if missing:
        raise ConfigurationError(
            f"these rows have no {', '.join(missing)}; read them with option landing, and keep "
            f"the columns {', '.join((*key, RUN))} (for users, one more, such as email)"
        )
    return tuple(named[name] for name in key)
