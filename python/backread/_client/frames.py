"""Rows that come as an Arrow stream as the tables of other packages, none of them required."""

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
"""What the columns of a pandas frame are: pandas' own types (None), or Arrow's."""


class ArrowStream(Protocol):
    """What Arrow's consumers take."""

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
    # pandas reads Arrow through pyarrow in any case, and this works before its version 3 too.
    table = require("pyarrow", "to_pandas").table(source)
    mapper = pandas_package.ArrowDtype if dtype_backend == "pyarrow" else None
    frame: pandas.DataFrame = table.to_pandas(types_mapper=mapper)
    return frame


def check_dtype_backend(dtype_backend: object) -> None:
    """ValueError for what `pandas_frame` does not know; ahead of the first request."""
    if dtype_backend not in ("pyarrow", None):
        raise ValueError(f"dtype_backend is 'pyarrow' or None, not {dtype_backend!r}")


def refuse_misread(source: object) -> None:
    """TypeError for the ways of polars that take the stream, and make something else of it.

    ``polars.from_arrow`` makes one column of structs. ``polars.scan_arrow_c_stream`` keeps the one
    stream: what it collects a second time is what the first time left, or nothing, without an
    error. These functions and ``polars.DataFrame`` ask an object for the same thing, so what tells
    them apart is who asks. ``polars.Series``, asked for by name, is given what it wants.
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
    """TypeError where Spark or pandas iterate: they read all of it, and make no columns of models.

    Spark finds no types in them, and ``pandas.Series`` holds them as objects. It does not look for
    ``__array__`` first where the length is not known.
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
    """Whether the function of that package is what called; a namesake in other code is not."""
    # None where a thread of another language calls.
    while frame is not None and frame.f_globals.get("__name__", "").startswith(f"{package}."):
        if frame.f_code.co_name == function:
            return True
        frame = frame.f_back
    return False


def no_array(source: object) -> Callable[..., NoReturn]:
    """An ``__array__`` that raises TypeError, for what ``pandas.DataFrame`` would read as objects.

    pandas looks for it before it iterates, so nothing is read.
    """

    def refuse(*arguments: object, **options: object) -> NoReturn:
        raise TypeError(
            f"a {type(source).__name__} is columns, not an array of objects; "
            f"write {_own(source, 'to_pandas')} or pandas.DataFrame.from_arrow(x)"
        )

    return refuse


def require(package: str, method: str) -> Any:
    """The package; ImportError that says what to install where it is missing."""
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
