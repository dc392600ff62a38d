"""Reduces rows landed in several runs to one row per key, that of the newest run."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window  # type: ignore[import-not-found, unused-ignore]
from pyspark.sql.functions import col, row_number  # type: ignore[import-not-found, unused-ignore]

from backread.errors import ConfigurationError
from backread.integrations.spark.columns import KEYS, RUN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame  # type: ignore[import-not-found, unused-ignore]

__all__ = ["merge_into_delta", "newest"]

RANK = "backread_rank"

# Columns that distinguish users from messages: without user_id, messages of several users collide.
ONLY_USERS = {
    "name",
    "email",
    "reference",
    "updated_at",
    "online_at",
    "last_url",
    "user_attributes",
}
ONLY_MESSAGES = {"user_id", "body", "read_by_user", "read_by_operator", "file_url", "sender_type"}


def newest(frame: DataFrame) -> DataFrame:
    """The newest of the landed rows per key: one row per user or message, with all columns.

    ``frame`` was read with option ``landing``, or is a table of such rows; its column ``run`` says
    which is newer. Rows that are missing from later runs stay.

    Raises `ConfigurationError` for a frame without ``run`` or without the key.
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

    ``table`` is a path or a URI, ``storage_options`` are those of the package deltalake, which
    writes it: ``pip install "backread[spark-delta]"``, only on the driver. The rows of a batch pass
    through the driver; option ``max_runs_per_trigger`` limits them.

    Raises ImportError if deltalake is not installed; its own errors if the table cannot be written.
    """
    try:
        import deltalake  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ModuleNotFoundError as error:
        if error.name != "deltalake":
            raise
        raise ImportError(
            "merge_into_delta needs deltalake, which is not installed; run: "
            'pip install "backread[spark-delta]"',
            name="deltalake",
        ) from None
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
            f"the columns {', '.join((*key, RUN))} (of users also one more, such as email)"
        )
    return tuple(named[name] for name in key)
