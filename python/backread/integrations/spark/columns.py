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
    from collections.abc import Iterator

    from backread.integrations.spark.options import Resource

__all__ = ["RUN", "arrow_schema", "conform", "spark_schema", "wanted_schema"]

RUN = "run"
"""The column of landed rows with the number of their run."""

TYPES: dict[str, DataType] = {
    "int": LongType(),
    "bool": BooleanType(),
    "str": StringType(),
    "datetime": TimestampType(),
    "dict": StringType(),
    "tuple": ArrayType(StructType([StructField(each.name, StringType()) for each in ATTRIBUTE])),
}
"""By kind of `backread._client.columns.Column`: dict is read as JSON text."""


def spark_schema(resource: Resource, *, landed: bool) -> StructType:
    """All columns of a resource; landed rows also have the number of the run, last."""
    fields = [StructField(each.name, TYPES[each.kind], each.nullable) for each in COLUMNS[resource]]
    return StructType([*fields, StructField(RUN, LongType(), nullable=False)] if landed else fields)


def wanted_schema(given: StructType, full: StructType) -> StructType:
    """Checks a requested schema; `ConfigurationError` unless its columns are a subset of ours."""
    ours = {field.name: field for field in full}
    for field in given:
        if field.name not in ours:
            raise ConfigurationError(
                f"the schema has an unknown column {field.name}; the columns are {', '.join(ours)}"
            )
        expected = ours[field.name].dataType
        if field.dataType != expected:
            raise ConfigurationError(
                f"the schema has {field.name} as {field.dataType.simpleString()}, but it is "
                f"{expected.simpleString()}; cast it after reading"
            )
    return given


def arrow_schema(wanted: StructType) -> pyarrow.Schema:
    """The Arrow types that Spark accepts for these columns without conversion."""
    return pyarrow.schema([_arrow_field(field) for field in wanted])


def conform(
    batches: Iterator[pyarrow.RecordBatch], target: pyarrow.Schema
) -> Iterator[pyarrow.RecordBatch]:
    """The batches with only the target's columns, cast to its types; text is not copied."""
    for batch in batches:
        columns = [batch.column(field.name).cast(field.type) for field in target]
        yield pyarrow.RecordBatch.from_arrays(columns, schema=target)


# PySpark's own to_arrow_schema has other parameters in each of its versions.
def _arrow_field(field: StructField) -> pyarrow.Field:
    return pyarrow.field(field.name, _arrow_type(field.dataType), field.nullable)


def _arrow_type(kind: DataType) -> pyarrow.DataType:
    if isinstance(kind, ArrayType):
        element = pyarrow.field("element", _arrow_type(kind.elementType), kind.containsNull)
        return pyarrow.list_(element)
    if isinstance(kind, StructType):
        return pyarrow.struct([_arrow_field(field) for field in kind])
    return {
        LongType(): pyarrow.int64(),
        BooleanType(): pyarrow.bool_(),
        StringType(): pyarrow.string(),
        TimestampType(): pyarrow.timestamp("us", tz="UTC"),
    }[kind]
