"""The findings of a probe, one class each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from backread.models import _refuse_assignment

__all__ = [
    "AnswerProfile",
    "FieldProfile",
    "Follows",
    "HttpProfile",
    "LimitAnswer",
    "ListOrder",
    "ListProfile",
    "PastEnd",
    "Refusals",
    "Shape",
]

Shape: TypeAlias = Any
"""A JSON value by its keys and types: a type's name, a dict of shapes, a list of one shape."""


@dataclass(frozen=True, slots=True)
class AnswerProfile:
    """One answer: its ``status``, its ``content_type``, and the shape of an error's body.

    ``shape`` is ``None`` for a success, and where the body is not JSON.
    """

    status: int
    content_type: str | None
    shape: Shape = field(hash=False)


@dataclass(frozen=True, slots=True)
class LimitAnswer:
    """The answer to a ``limit`` outside of 1 to 99.

    ``treatment``: ``"refused"`` (a status from 400 to 499), ``"clamped"`` (to the nearest limit
    that is allowed), ``"ignored"`` (the default page), ``"applied"`` (as requested), ``"other"``.
    ``applied`` is the limit of the answer, in rows.
    """

    treatment: Literal["refused", "clamped", "ignored", "applied", "other"] | None
    applied: int | None
    answer: AnswerProfile


@dataclass(frozen=True, slots=True)
class ListOrder:
    """The order of a list: by a ``field``, in a ``direction``.

    Where ``exact`` is false, rows are only roughly in it (ties).
    """

    field: str
    direction: Literal["ascending", "descending"]
    exact: bool


@dataclass(frozen=True, slots=True)
class PastEnd:
    """The answer to an offset past the last row.

    ``gives``: no rows (``"empty"``), a status of 400 to 499 (``"error"``), or ``"earlier_rows"``.
    """

    gives: Literal["empty", "error", "earlier_rows"]
    status: int


@dataclass(frozen=True, slots=True)
class ListProfile:
    """The behaviour of one kind of list.

    - ``rows``: the number of distinct rows examined.
    - ``stable``: a page that is requested twice has its rows in the same order.
    - ``total_exact``: ``total`` is the number of rows; ``total_error``: how many more it says.
    - ``short_pages``: a page held fewer rows than it could.
    - ``order``: the order of its rows; ``past_end``: what lies behind the last one.
    """

    rows: int
    order: ListOrder | None
    stable: bool | None
    total_exact: bool | None
    total_error: int | None
    short_pages: bool | None
    past_end: PastEnd | None


@dataclass(frozen=True, slots=True)
class Follows:
    """Whether a user's timestamp is never behind their newest message.

    ``share``: the fraction of ``users`` that it holds for, from 0 to 1.
    """

    holds: bool
    share: float
    users: int


@dataclass(frozen=True, slots=True)
class Refusals:
    """The answers to invalid requests; each was sent once.

    They had a made-up secret (``wrong_secret``), an undocumented media type (``other_accept``), or
    the id of no user or message: ``unknown_user``, ``messages_of_unknown_user`` (a list) and
    ``unknown_message``.
    """

    wrong_secret: AnswerProfile | None
    other_accept: AnswerProfile | None
    unknown_user: AnswerProfile | None
    messages_of_unknown_user: AnswerProfile | None
    unknown_message: AnswerProfile | None


@dataclass(frozen=True, slots=True)
class HttpProfile:
    """The HTTP behaviour of the service.

    - ``version``: the protocol, such as ``"HTTP/1.1"``.
    - ``compression``: the content coding of a page, ``"none"`` without one.
    - ``validators``: those of ``etag`` and ``last-modified`` that a page came with;
      ``not_modified``: whether a conditional request for the same page got 304.
    - ``latency_seconds``: the median time to a whole page.
    - ``rate_limit_headers``: the names of headers about limits that came.
    - ``statuses``: how often each status came, retries among them.
    """

    version: str | None
    compression: str | None
    validators: tuple[str, ...] | None
    not_modified: bool | None
    rate_limit_headers: tuple[str, ...]
    latency_seconds: float | None
    statuses: dict[int, int] = field(hash=False)


@dataclass(frozen=True, slots=True)
class FieldProfile:
    """One field over the sample.

    ``documented``: the API documents the field. ``types`` are the JSON types seen, except null.
    ``null_share`` and ``missing_share``, from 0 to 1: how often it was null, and how often missing.
    """

    documented: bool
    types: tuple[str, ...]
    null_share: float
    missing_share: float


# As for the records of backread.models.
for _record in (
    AnswerProfile,
    LimitAnswer,
    ListOrder,
    PastEnd,
    ListProfile,
    Follows,
    Refusals,
    HttpProfile,
    FieldProfile,
):
    _record.__setattr__ = _refuse_assignment  # type: ignore[method-assign]
