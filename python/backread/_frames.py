"""Rows that come as an Arrow stream as the tables of other packages, none of them required."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import polars  # type: ignore[import-not-found, unused-ignore]
    import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]

__all__ = ["ArrowStream", "arrow_table", "pandas_frame", "polars_frame"]


class ArrowStream(Protocol):
    """What Arrow's consumers take."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def arrow_table(source: ArrowStream) -> pyarrow.Table:
    table: pyarrow.Table = _require("pyarrow", "to_arrow").table(source)
    return table


def polars_frame(source: ArrowStream) -> polars.DataFrame:
    frame: polars.DataFrame = _require("polars", "to_polars").DataFrame(source)
    return frame


def pandas_frame(source: ArrowStream) -> pandas.DataFrame:
    _require("pandas", "to_pandas")
    # pandas reads Arrow through pyarrow in any case, and this works before its version 3 too.
    frame: pandas.DataFrame = _require("pyarrow", "to_pandas").table(source).to_pandas()
    return frame


def _require(package: str, method: str) -> Any:
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ImportError(
            f"{method}() needs {package}, which is not installed; run: pip install {package}",
            name=package,
        ) from None
