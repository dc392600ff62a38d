"""Parses untrusted JSON."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["parse_json"]


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
