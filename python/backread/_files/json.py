"""Parses untrusted JSON, and the numbers that Python has no type for."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from math import isinf
from typing import Any, Self


def parse_json(text: str | bytes, what: str | None = None) -> Any:
    """Parses the text; raises ValueError, naming ``what``, if it is invalid or nested too deep."""
    try:
        return json.loads(text)
    except ValueError as error:
        if what is None:
            raise
        reason = f"it is not JSON ({error})"
    except RecursionError:
        reason = "it is nested too deep"
    raise ValueError(reason if what is None else f"not a {what}: {reason}")


class SentNumber(Decimal):
    """A number beyond the range of `int` or `float`; ``str`` gives it as it was sent."""

    __slots__ = ("_sent",)

    _sent: str

    def __new__(cls, text: str) -> Self:
        try:
            number = super().__new__(cls, text)
        except InvalidOperation:
            # Exponents of a Decimal have at most 18 digits.
            number = super().__new__(cls, "-Infinity" if text.startswith("-") else "Infinity")
        number._sent = text
        return number

    def __str__(self) -> str:
        return self._sent

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self._sent,)


def fraction(text: str) -> float | SentNumber:
    """The number of a JSON text with a fraction or an exponent."""
    number = float(text)
    return SentNumber(text) if isinf(number) else number
