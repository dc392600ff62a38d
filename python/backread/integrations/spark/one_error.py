"""Shows backread's errors in Spark's processes as text, without a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from backread.errors import BackreadError

__all__ = ["one_error"]


@contextmanager
def one_error() -> Iterator[None]:
    """Makes Spark show a backread error's text only, which says all that a traceback could.

    A Spark process that ends in a Python error serves nothing else afterwards.
    """
    try:
        yield
    except BackreadError:
        if "pyspark.worker_util" in sys.modules:
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
