"""Results of `Client.probe`: service behaviour that the API does not specify.

A `ServiceProfile` contains counts, statuses and words of backread, but no text that the service
sent, so it can be shared. ``None`` means not measured; `ServiceProfile.notes` says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal

from backread._display.words import moment, yes_or_no
from backread._files.dataclass_json import dataclass_from_json, to_json_value, value_of_key
from backread._files.json import parse_json
from backread.models import _refuse_assignment

__all__ = [
    "Difference",
    "Follows",
    "LimitAnswer",
    "ListOrder",
    "ListProfile",
    "PastEnd",
    "Refusals",
    "ServiceProfile",
]

PROFILE_VERSION = 2
"""The version that is read; profiles of another one are refused."""

NO_ORDER = "the rows are in the order of none of their fields"
"""The note of a list without an order; any other note says why none was measured."""

CHANCE = 0.001
"""Two samples of one service differ by chance if that is likelier than this."""

VOLATILE = ("measured_at", "requests", "rows", "total_error")
"""What differs from probe to probe."""


@dataclass(frozen=True, slots=True)
class LimitAnswer:
    """The answer to a ``limit`` outside of 1 to 99.

    ``treatment``: ``"refused"`` (a status from 400 to 499), ``"clamped"`` (to the nearest limit
    that is allowed), ``"ignored"`` (the default page), ``"applied"`` (as requested), ``"other"``.
    ``applied`` is the limit of the answer, in rows.
    """

    treatment: Literal["refused", "clamped", "ignored", "applied", "other"] | None
    applied: int | None
    status: int

    def __str__(self) -> str:
        text = f"{self.treatment or 'unclear'}, status {self.status}"
        return text if self.applied is None else f"{text}, limit {self.applied}"


@dataclass(frozen=True, slots=True)
class ListOrder:
    """The order of a list: by a ``field``, in a ``direction``.

    Where ``exact`` is false, rows are only roughly in it (ties).
    """

    field: str
    direction: Literal["ascending", "descending"]
    exact: bool

    def __str__(self) -> str:
        return f"{'' if self.exact else 'roughly '}by {self.field}, {self.direction}"


@dataclass(frozen=True, slots=True)
class PastEnd:
    """The answer to an offset past the last row.

    ``gives``: no rows (``"empty"``), a status of 400 to 499 (``"error"``), or ``"earlier_rows"``.
    """

    gives: Literal["empty", "error", "earlier_rows"]
    status: int

    def __str__(self) -> str:
        return f"{self.gives.replace('_', ' ')}, status {self.status}"


@dataclass(frozen=True, slots=True)
class ListProfile:
    """The behaviour of one kind of list.

    - ``rows``: the number of distinct rows examined.
    - ``order``: the order of its rows.
    - ``stable``: a page that is requested twice has its rows in the same order.
    - ``total_exact``: ``total`` is the number of rows; ``total_error``: how many more it says.
    - ``short_pages``: a page held fewer rows than it could.
    - ``past_end``: what lies behind the last row.
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

    def __str__(self) -> str:
        users = f"{self.users} user{'' if self.users == 1 else 's'}"
        return f"{yes_or_no(self.holds)}, for {self.share:.0%} of {users}"


@dataclass(frozen=True, slots=True)
class Refusals:
    """The statuses that answered invalid requests; each was sent once.

    They had a made-up secret (``wrong_secret``), an undocumented media type (``other_accept``), or
    the id of no user or message: ``unknown_user``, ``messages_of_unknown_user`` (a list) and
    ``unknown_message``.
    """

    wrong_secret: int | None
    other_accept: int | None
    unknown_user: int | None
    messages_of_unknown_user: int | None
    unknown_message: int | None


@dataclass(frozen=True, slots=True)
class Difference:
    """One finding that changed from ``was`` to ``now``, from `ServiceProfile.differences`.

    ``path`` names the finding (``"users.order"``), ``note`` says why it is unknown now. ``str()``
    is the line that ``backread probe --against`` prints.
    """

    path: str
    was: Any = field(hash=False)
    now: Any = field(hash=False)
    note: str | None = None

    def __str__(self) -> str:
        text = f"{self.path}: was {_text(self.was)}, is {_text(self.now)}"
        return f"{text} ({self.note})" if self.note else text


@dataclass(frozen=True, slots=True)
class ServiceProfile:
    """The behaviour of one service at one time.

    docs/how-to/probe.md describes each finding.

    - ``measured_at`` is UTC, ``requests`` the number sent, ``backread`` the version.
    - ``default_page`` and ``largest_page`` are in rows: the page size without ``limit``, and the
      largest ``limit`` up to 99 that is applied.
    - ``limit_zero`` and ``limit_hundred``: the answers to these values of ``limit``.
    - ``users`` and ``messages``: the behaviour of the two lists.
    - ``updated_at_follows`` and ``online_at_follows``: whether these timestamps of a user move with
      the user's messages.
    - ``refusals``: the answers to invalid requests.
    - ``notes`` maps the path of a finding that is ``None`` (``"users.order"``) to the reason.
    """

    backread: str
    measured_at: datetime
    requests: int
    default_page: int | None
    largest_page: int | None
    limit_zero: LimitAnswer | None
    limit_hundred: LimitAnswer | None
    users: ListProfile
    messages: ListProfile
    updated_at_follows: Follows | None
    online_at_follows: Follows | None
    refusals: Refusals
    notes: dict[str, str] = field(hash=False)

    def to_dict(self) -> dict[str, Any]:
        """The profile as a dict of JSON values for `from_dict`, with its ``profile_version``."""
        record = to_json_value(self)
        record["measured_at"] = record["measured_at"].replace("+00:00", "Z")
        return {"profile_version": PROFILE_VERSION, **record}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> ServiceProfile:
        """The profile that `to_dict` made. Unknown keys are ignored.

        Raises:
            ValueError: The dict is not a profile (the message has the path of the key), or one of
                another version.
        """
        version = value_of_key(record, "profile_version")
        if type(version) is not int:
            raise ValueError("not a service profile: it has no profile_version")
        if version != PROFILE_VERSION:
            raise ValueError(
                f"the service profile has version {version}, and this backread reads version "
                f"{PROFILE_VERSION}; probe the service again"
            )
        return dataclass_from_json(cls, record, "service profile")

    def to_json(self, *, indent: int | None = None) -> str:
        """`to_dict` as JSON text; ``indent`` in spaces."""
        return json.dumps(self.to_dict(), indent=indent)

    @classmethod
    def from_json(cls, text: str) -> ServiceProfile:
        """The profile in the JSON text of `to_json`. Raises ValueError as `from_dict` does."""
        return cls.from_dict(parse_json(text, "service profile"))

    def differences(self, later: ServiceProfile) -> list[Difference]:
        """Findings that a later probe of the same service contradicts, by path.

        Leaves out what varies from probe to probe (counts, and what one sample of users may show
        by chance) and what the earlier probe did not measure. A finding that only the earlier
        probe measured is included, since it is now unknown.
        """
        now = dict(later._findings())
        return [
            Difference(path, was, now[path], later._missing(path))
            for path, was in self._findings()
            if path.rpartition(".")[2] not in VOLATILE and not self._missing(path)
            if later._missing(path) or not _alike(was, now[path])
        ]

    def _findings(self) -> Iterator[tuple[str, Any]]:
        """Each finding with its path."""
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, (ListProfile, Refusals)):
                parts = (part.name for part in fields(value))
                yield from ((f"{each.name}.{part}", getattr(value, part)) for part in parts)
            elif each.name not in ("backread", "notes"):
                yield each.name, value

    def _missing(self, path: str) -> str | None:
        """Why a finding was not measured."""
        note = self.notes.get(path)
        return None if note == NO_ORDER else note

    def _lines(self) -> list[tuple[str, str]]:
        """The name and the text of each finding."""
        lines = []
        for path, value in self._findings():
            missing = self._missing(path)
            text = f"not measured: {missing}" if missing else _text(value)
            lines.append((path.replace(".", ": ").replace("_", " "), text))
        return lines

    def __str__(self) -> str:
        rows = self._lines()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)

    def _repr_html_(self) -> str:
        from backread._display.html import card

        return card("ServiceProfile", self._lines())


def _alike(was: object, now: object) -> bool:
    if isinstance(was, Follows) and isinstance(now, Follows):
        all_hold, some = (was, now) if was.holds else (now, was)
        return was.holds == now.holds or some.share**all_hold.users > CHANCE
    return was == now


def _text(value: object) -> str:
    if isinstance(value, bool):
        return yes_or_no(value)
    if isinstance(value, datetime):
        return moment(value.replace(microsecond=0))
    return "none" if value is None else str(value)


# As for the records of backread.models.
for _record in (
    Difference,
    Follows,
    LimitAnswer,
    ListOrder,
    ListProfile,
    PastEnd,
    Refusals,
    ServiceProfile,
):
    _record.__setattr__ = _refuse_assignment  # type: ignore[method-assign]
