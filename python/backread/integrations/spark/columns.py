"""The columns of the data source, as Spark and as Arrow types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
from pyspark.sql.types import (  # type: ignore[import-not-found, unused-ignore]
    ArrayType,
    BooleanType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from backread.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backread.integrations.spark.options import Resource

__all__ = ["KEYS", "RUN", "arrow_schema", "conform", "spark_schema", "wanted_schema"]

RUN = "run"
"""The column of landed rows with the number of their run."""

KEYS: dict[Resource, tuple[str, ...]] = {"users": ("id",), "messages": ("user_id", "id")}

ATTRIBUTE = StructType([StructField(name, StringType()) for name in ("name", "value", "extra")])
COLUMNS: dict[Resource, StructType] = {
    "users": StructType(
        [
            StructField("id", LongType(), nullable=False),
            StructField("name", StringType()),
            StructField("email", StringType()),
            StructField("reference", StringType()),
            StructField("created_at", TimestampType()),
            StructField("updated_at", TimestampType()),
            StructField("online_at", TimestampType()),
            StructField("last_url", StringType()),
            StructField("user_attributes", ArrayType(ATTRIBUTE)),
            StructField("extra", StringType()),
        ]
    ),
    "messages": StructType(
        [
            StructField("user_id", LongType(), nullable=False),
            StructField("id", LongType(), nullable=False),
            StructField("body", StringType()),
            StructField("read_by_user", BooleanType()),
            StructField("read_by_operator", BooleanType()),
            StructField("created_at", TimestampType()),
            StructField("file_url", StringType()),
            StructField("auto_invitation", BooleanType()),
            StructField("sender_type", StringType()),
            StructField("sender_id", LongType()),
            StructField("sender_name", StringType()),
            StructField("sender_email", StringType()),
            StructField("sender_forename", StringType()),
            StructField("sender_surname", StringType()),
            StructField("sender_picture_thumb_url", StringType()),
            StructField("sender_extra", StringType()),
            StructField("extra", StringType()),
        ]
    ),
}


def spark_schema(resource: Resource, *, landed: bool) -> StructType:
    """All columns of a resource; landed rows also have the number of the run, last."""
    fields = list(COLUMNS[resource])
    return StructType([*fields, StructField(RUN, LongType(), nullable=False)] if landed else fields)


def wanted_schema(given: StructType, full: StructType) -> StructType:
    """Checks a requested schema; `ConfigurationError` unless its columns are a subset of ours."""
    ours = {field.name: field for field in full}
    for field in given:
        if field.name not in ours:
            raise ConfigurationError(
                f"the schema asks for a column {field.name}, and there are {', '.join(ours)}"
            )
        expected = ours[field.name].dataType
        if field.dataType != expected:
            raise ConfigurationError(
                f"the schema has {field.name} as {field.dataType.simpleString()}, and it is "
                f"{expected.simpleString()}; cast it after it is read"
            )
    return given


def arrow_schema(wanted: StructType) -> pyarrow.Schema:
    """The Arrow types that Spark accepts for these columns without conversion."""
    return pyarrow.schema(
        [pyarrow.field(one.name, _arrow_type(one.dataType), one.nullable) for one in wanted]
    )


def conform(
    batches: Iterator[pyarrow.RecordBatch], target: pyarrow.Schema
) -> Iterator[pyarrow.RecordBatch]:
    """The batches with only the target's columns, cast to its types; text is not copied."""
    for batch in batches:
        columns = [batch.column(field.name).cast(field.type) for field in target]
        yield pyarrow.RecordBatch.from_arrays(columns, schema=target)


def _arrow_type(kind: Any) -> pyarrow.DataType:
    if isinstance(kind, ArrayType):
        element = pyarrow.field("element", _arrow_type(kind.elementType), kind.containsNull)
        return pyarrow.list_(element)
    if isinstance(kind, StructType):
        return pyarrow.struct(
            [pyarrow.field(one.name, _arrow_type(one.dataType), one.nullable) for one in kind]
        )
    return {
        LongType(): pyarrow.int64(),
        BooleanType(): pyarrow.bool_(),
        StringType(): pyarrow.string(),
        TimestampType(): pyarrow.timestamp("us", tz="UTC"),
    }[kind]
