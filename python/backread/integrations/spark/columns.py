"""The columns of the data source, as Spark and as Arrow types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
from pyspark.sql.types import (  # type: ignore[import-not-found, unused-ignore]
    ArrayType,
    BooleanType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from backread._client.columns import ATTRIBUTE, COLUMNS
from backread.errors import ConfigurationError

if TYPE_CHECKING:
    from backread.integrations.spark.options import Resource

__all__ = ["RUN", "arrow_schema", "conform", "spark_schema", "wanted_schema"]

RUN = "run"
"""The column of landed rows with the number of their run."""

TYPES: dict[str, tuple[DataType, pyarrow.DataType]] = {
    "int": (LongType(), pyarrow.int64()),
    "bool": (BooleanType(), pyarrow.bool_()),
    "str": (StringType(), pyarrow.string()),
    "datetime": (TimestampType(), pyarrow.timestamp("us", tz="UTC")),
    "dict": (StringType(), pyarrow.string()),
    "tuple": (
        ArrayType(StructType([StructField(each.name, StringType()) for each in ATTRIBUTE])),
        pyarrow.list_(
            pyarrow.field(
                "element", pyarrow.struct([(each.name, pyarrow.string()) for each in ATTRIBUTE])
            )
        ),
    ),
}
"""By kind of `backread._client.columns.Column`: dict is read as JSON text."""


def spark_schema(resource: Resource, *, landed: bool) -> StructType:
    """All columns of a resource; landed rows also have the number of the run, last."""
    fields = [
        StructField(each.name, TYPES[each.kind][0], each.nullable) for each in COLUMNS[resource]
    ]
    return StructType([*fields, StructField(RUN, LongType(), nullable=False)] if landed else fields)


def wanted_schema(given: StructType, resource: Resource, *, landed: bool) -> StructType:
    """Checks a requested schema; `ConfigurationError` unless its columns are a subset of ours."""
    ours = {field.name: field.dataType for field in spark_schema(resource, landed=landed)}
    for field in given:
        if ours.get(field.name) != field.dataType:
            columns = ", ".join(f"{name} {kind.simpleString()}" for name, kind in ours.items())
            raise ConfigurationError(
                f"the schema has {field.name} as {field.dataType.simpleString()}; the columns are "
                f"{columns}; cast them after reading"
            )
    return given


# PySpark's own to_arrow_schema has other parameters in each of its versions.
def arrow_schema(wanted: StructType) -> pyarrow.Schema:
    """The Arrow types that Spark accepts for these columns without conversion."""
    types = dict(TYPES.values())
    return pyarrow.schema(
        [pyarrow.field(each.name, types[each.dataType], each.nullable) for each in wanted]
    )


def conform(batch: pyarrow.RecordBatch, target: pyarrow.Schema) -> pyarrow.RecordBatch:
    """The batch with only the target's columns, cast to its types; text is not copied."""
    columns = [batch.column(field.name).cast(field.type) for field in target]
    return pyarrow.RecordBatch.from_arrays(columns, schema=target)
