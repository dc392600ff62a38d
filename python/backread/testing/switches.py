"""The switches of a `Dialect`, by name and type."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

__all__ = [
    "Ids",
    "Nulls",
    "Order",
    "OverLimit",
    "PastEnd",
    "SenderType",
    "Switches",
    "Total",
]

OverLimit: TypeAlias = Literal["refuse", "clamp", "ignore"]
Order: TypeAlias = Literal["id", "newest", "ties", "shuffled"]
Total: TypeAlias = Literal["exact", "stale", "capped", "null", "low", "high"]
PastEnd: TypeAlias = Literal["empty", "not_found", "last_page"]
Nulls: TypeAlias = Literal["documented", "null", "missing", "both"]
SenderType: TypeAlias = Literal["documented", "others"]
Ids: TypeAlias = Literal["integer", "large", "text"]


class Switches(TypedDict, total=False):
    """The switches of a `Dialect`, which describes each."""

    strict: bool
    over_limit: OverLimit
    max_limit: int
    default_limit: int
    order: Order
    total: Total
    total_cap: int
    past_end: PastEnd
    nulls: Nulls
    sender_type: SenderType
    extra_fields: bool
    ids: Ids
    short_pages: bool
