"""Columns are handed over, not copied, and pandas keeps Arrow's types where it is asked to."""

from typing import Any

import pytest

from helpers import column_sources
from helpers.api_rows import message, paged
from helpers.arrow_consumers import load

server, mirror, source = column_sources.server, column_sources.mirror, column_sources.source


class Stream:
    """A table whose own package is not to be recognised."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def test_pyarrow_table_copies_no_buffer(source):
    pyarrow = load("pyarrow")
    before = pyarrow.total_allocated_bytes()
    table = pyarrow.table(source)
    assert table.nbytes > 10_000
    # What it copies, or casts, it allocates.
    assert pyarrow.total_allocated_bytes() == before


def test_polars_and_arro3_copy_no_buffer(source):
    pyarrow, polars, arro3 = load("pyarrow"), load("polars"), load("arro3.core")
    held = pyarrow.table(source)
    stream = Stream(held)
    frame, taken = polars.DataFrame(stream), pyarrow.table(arro3.Table.from_arrow(stream))
    for name in ("id", "created_at"):
        [_, values] = held[name].chunk(0).buffers()
        assert taken[name].chunk(0).buffers()[1].address == values.address
        # Without leave to copy it raises where it would have to.
        first = frame[name].get_chunks()[0].to_numpy(allow_copy=False)
        assert first.ctypes.data == values.address


def test_to_pandas_with_pyarrow_types_copies_no_buffer(source):
    pyarrow = load("pyarrow")
    load("pandas")
    before = pyarrow.total_allocated_bytes()
    frame = source.to_pandas(dtype_backend="pyarrow")
    # A few bytes a column, for lists of chunks.
    assert pyarrow.total_allocated_bytes() - before < 100 * len(frame.columns)
    schema = source.to_arrow().schema
    assert {name: str(kind.pyarrow_dtype) for name, kind in frame.dtypes.items()} == {
        field.name: str(field.type) for field in schema
    }


BIG = 2**60 + 1


def test_to_pandas_with_pyarrow_types_keeps_integers_with_nulls(face, scripted):
    pandas = load("pandas")
    rows = [message(1, sender={"id": BIG}), message(2, sender=None, read_by_user=None)]
    listing = face.client(scripted(paged(rows, key="messages"))).messages.list(42)
    frame = face.call(listing.to_pandas, dtype_backend="pyarrow")
    assert frame["sender_id"].tolist() == [BIG, pandas.NA]
    assert str(frame["read_by_user"].dtype) == "bool[pyarrow]"
    assert face.call(listing.to_pandas)["sender_id"].dtype == "float64"


def test_to_pandas_refuses_unknown_dtype_backend_unsent(face, backread_mock):
    listing = face.client(backread_mock).users.list()
    with pytest.raises(ValueError, match="'pyarrow' or None, not 'numpy_nullable'"):
        face.call(listing.to_pandas, dtype_backend="numpy_nullable")
    assert backread_mock.counts()["users"] == 0
