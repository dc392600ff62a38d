"""Selects requests by route, user and page."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal, SupportsIndex, TypeAlias

__all__ = ["READS", "ListRoute", "Requests", "Route", "number"]

Route: TypeAlias = Literal["users", "user", "messages", "message", "any"]
"""One of the API's four reads, or any."""
ListRoute: TypeAlias = Literal["users", "messages"]

READS: dict[str, tuple[str, ...]] = {
    "users": ("offset",),
    "user": ("user",),
    "messages": ("user", "offset"),
    "message": ("user", "message"),
}
"""The four reads, and the arguments that distinguish their requests."""
_KNOWN: dict[str, tuple[str, ...]] = {
    **READS,
    "any": ("user", "message", "offset"),
    "openapi": (),
    "file": (),
    "other": (),
}


@dataclass(frozen=True, slots=True)
class Requests:
    """A filter for requests; None, also as route, matches anything."""

    route: str | None
    user: int | None = None
    message: int | None = None
    offset: int | None = None
    status: int | None = None

    def __post_init__(self) -> None:
        parts = _KNOWN.get("any" if self.route is None else self.route)
        if parts is None:
            raise ValueError(f"there is no route {self.route!r}; there are {', '.join(_KNOWN)}")
        for name in ("user", "message", "offset", "status"):
            value = getattr(self, name)
            if value is None:
                continue
            object.__setattr__(self, name, number(name, value))
            if name != "status" and name not in parts:
                raise ValueError(f"requests of the route {self.route} have no {name}")

    @property
    def counted(self) -> bool:
        """Whether the counters by route or by status can answer it."""
        single = self.user is None and self.message is None and self.offset is None
        return single and (self.route is None or self.status is None)

    def __str__(self) -> str:
        """The start of a rule in the mock's grammar."""
        parts = (f" {name}={getattr(self, name)}" for name in ("user", "message", "offset"))
        return f"{self.route}" + "".join(part for part in parts if not part.endswith("=None"))


def number(name: str, value: SupportsIndex, least: int = 0) -> int:
    """The value as an int, from any integer type (numpy's too), not below ``least``."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    checked = operator.index(value)
    if checked < least:
        raise ValueError(f"{name} must be {least} or more, not {checked}")
    return checked
