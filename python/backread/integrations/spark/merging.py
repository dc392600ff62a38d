"""One row a key, of rows that were landed in several runs: the one of the newest run."""

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

# What tells the two apart: without user_id, messages of several users would pass for one another.
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
    """Of landed rows the newest of each key: one row a user, or a message, with all its columns.

    ``frame`` is what was read with option ``landing``, or a table that holds such rows; its column
    ``run`` says which is newer. Rows that a later run no longer has stay.

    `ConfigurationError` for a frame without ``run`` or without the key.
    """
    key = _key(frame.columns)
    window = Window.partitionBy(*key).orderBy(col(RUN).desc())
    ranked = frame.withColumn(RANK, row_number().over(window))
    return ranked.where(col(RANK) == 1).drop(RANK)


def merge_into_delta(
    table: str | os.PathLike[str], *, storage_options: dict[str, str] | None = None
) -> Callable[[DataFrame, int], None]:
    """What ``foreachBatch`` calls: it merges landed rows into a Delta table, by their key.

    After each batch the table holds one row a key, with the values of the newest run that has it;
    ``run`` says in which run they came to be as they are. A batch that is merged again, after a
    crash, changes nothing. Rows that a later run no longer has stay. The table is made where there
    is none.

    ``table`` is a path or a URI, ``storage_options`` are those of the package deltalake, which
    writes it: ``pip install "backread[spark-delta]"``, on the driver alone. The rows of a batch
    pass through the driver; option ``max_runs_per_trigger`` bounds them.

    ImportError where deltalake is not installed; its own errors where the table cannot be written.
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
    """The columns that tell rows apart, as the frame names them; Spark's names ignore case."""
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
