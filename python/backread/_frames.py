"""Converts Arrow streams to the tables of other packages, all of which are optional."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import polars  # type: ignore[import-not-found, unused-ignore]
    import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]


__tracebackhide__ = True

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


def one_shot(stream: object) -> object:
    """Wraps another package's stream so that a second read of it is an error instead of empty."""
    from backread._backread import one_shot_stream

    return one_shot_stream(stream)


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


def require(package: str, method: str, least: str = "") -> Any:
    """Imports the package; ImportError says what to install if it is missing or too old."""
    try:
        module = import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ImportError(
            f"{method}() needs {package}, which is not installed; run: pip install {package}",
            name=package,
        ) from None
    if least and release(module.__version__) < release(least):
        raise ImportError(
            f"{method}() needs {package} {least} or later, and {module.__version__} is installed; "
            f"run: pip install --upgrade {package}",
            name=package,
        )
    return module


def release(version: str) -> list[int]:
    """The first three numbers of a version, to compare."""
    return [int(each) for each in re.findall("[0-9]+", version)[:3]]


def _own(source: object, method: str) -> str:
    return f"await x.{method}()" if hasattr(source, "__aiter__") else f"x.{method}()"
