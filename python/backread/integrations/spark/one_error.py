"""Errors of ours in the processes of Spark: their own text, without a stack of frames."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from backread.errors import BackreadError

__all__ = ["one_error"]


@contextmanager
def one_error() -> Iterator[None]:
    """Lets Spark show an error of ours as its own text: it says all that a stack of frames could.

    A process of Spark's that ends in an error of Python's serves nothing else afterwards.
    """
    try:
        yield
    except BackreadError:
        if "pyspark.worker_util" in sys.modules:
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
