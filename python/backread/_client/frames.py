"""Converts Arrow streams to the tables of other packages, all of which are optional."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import polars  # type: ignore[import-not-found, unused-ignore]
    import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]

__all__ = [
    "ArrowStream",
    "DtypeBackend",
    "arrow_table",
    "check_dtype_backend",
    "no_array",
    "pandas_frame",
    "polars_frame",
    "refuse_misread",
    "refuse_rows",
    "require",
]

DtypeBackend = Literal["pyarrow"] | None
"""The column types of a pandas frame: pandas' own (None), or Arrow's."""


class ArrowStream(Protocol):
    """What consumers of Arrow data accept."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def arrow_table(source: ArrowStream) -> pyarrow.Table:
    table: pyarrow.Table = require("pyarrow", "to_arrow").table(source)
    return table


def polars_frame(source: ArrowStream) -> polars.DataFrame:
    frame: polars.DataFrame = require("polars", "to_polars").DataFrame(source)
    return frame


def pandas_frame(source: ArrowStream, dtype_backend: DtypeBackend = None) -> pandas.DataFrame:
    check_dtype_backend(dtype_backend)
    pandas_package = require("pandas", "to_pandas")
    # pandas always reads Arrow through pyarrow; this also works before pandas 3.
    table = require("pyarrow", "to_pandas").table(source)
    mapper = pandas_package.ArrowDtype if dtype_backend == "pyarrow" else None
    frame: pandas.DataFrame = table.to_pandas(types_mapper=mapper)
    return frame


def check_dtype_backend(dtype_backend: object) -> None:
    """Raises ValueError for a value that `pandas_frame` does not know, before any request."""
    if dtype_backend not in ("pyarrow", None):
        raise ValueError(f"dtype_backend is 'pyarrow' or None, not {dtype_backend!r}")


def refuse_misread(source: object) -> None:
    """Raises TypeError for the polars functions that would misread the stream.

    ``polars.from_arrow`` makes a single struct column. ``polars.scan_arrow_c_stream`` keeps one
    stream, so a second collect silently gets the rest of it, or nothing. These functions call the
    same method as ``polars.DataFrame``, so only the caller tells them apart. An explicit
    ``polars.Series`` is allowed.
    """
    frame = sys._getframe(1).f_back
    if _asked_by(frame, "polars", "from_arrow"):
        raise TypeError(
            f"polars.from_arrow(x) makes a {type(source).__name__} one column of structs; "
            f"write polars.DataFrame(x) or {_own(source, 'to_polars')}"
        )
    if _asked_by(frame, "polars", "scan_arrow_c_stream"):
        lazily = "x.scan_polars()" if hasattr(source, "scan_polars") else "polars.LazyFrame(x)"
        raise TypeError(
            f"polars.scan_arrow_c_stream(x) reads a {type(source).__name__} once, and has no rows "
            f"when it is collected again; write {lazily}"
        )


def refuse_rows(source: object) -> None:
    """Raises TypeError if Spark or pandas iterates, since neither makes columns from models.

    Spark finds no types in them, and ``pandas.Series`` stores them as objects; it does not look for
    ``__array__`` first if the length is unknown.
    """
    frame = sys._getframe(1).f_back
    if _asked_by(frame, "pandas", "__init__"):
        raise TypeError(
            f"pandas.Series(x) makes objects of the rows of a {type(source).__name__}; write "
            "x.to_pandas(), or x.to_list() for the objects"
        )
    if _asked_by(frame, "pyspark", "createDataFrame"):
        raise TypeError(
            f"spark.createDataFrame(x) finds no types in the rows of a {type(source).__name__}; "
            "write spark.createDataFrame(x.to_arrow())"
        )


def _asked_by(frame: FrameType | None, package: str, function: str) -> bool:
    """Whether that package's function is the caller, and not a function of that name elsewhere."""
    # The frame is None if a thread of another language calls.
    while frame is not None and frame.f_globals.get("__name__", "").startswith(f"{package}."):
        if frame.f_code.co_name == function:
            return True
        frame = frame.f_back
    return False


def no_array(source: object) -> Callable[..., NoReturn]:
    """An ``__array__`` that raises TypeError, since ``pandas.DataFrame`` would store objects.

    pandas looks for it before iterating, so nothing is fetched.
    """

    def refuse(*arguments: object, **options: object) -> NoReturn:
        raise TypeError(
            f"a {type(source).__name__} is columns, not an array of objects; "
            f"write {_own(source, 'to_pandas')} or pandas.DataFrame.from_arrow(x)"
        )

    return refuse


def require(package: str, method: str) -> Any:
    """Imports the package; raises an ImportError that says what to install if it is missing."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ImportError(
            f"{method}() needs {package}, which is not installed; run: pip install {package}",
            name=package,
        ) from None


def _own(source: object, method: str) -> str:
    return f"await x.{method}()" if hasattr(source, "__aiter__") else f"x.{method}()"
