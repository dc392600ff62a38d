"""Results of `Client.probe`: service behaviour that the API does not specify.

A `ServiceProfile` contains field names, types, counts, shares and statuses, but no address, secret
or row value, so it can be shared. ``None`` means not measured; `ServiceProfile.notes` says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from typing import Any

from backread._files.dataclass_json import dataclass_from_json, to_json_value, value_of_key
from backread._files.json import parse_json
from backread._profile.changes import Difference, changes
from backread._profile.findings import (
    AnswerProfile,
    FieldProfile,
    Follows,
    HttpProfile,
    LimitAnswer,
    ListOrder,
    ListProfile,
    PastEnd,
    Refusals,
    Shape,
)
from backread._profile.text import lines
from backread.models import _refuse_assignment

__all__ = [
    "AnswerProfile",
    "Difference",
    "FieldProfile",
    "Follows",
    "HttpProfile",
    "LimitAnswer",
    "ListOrder",
    "ListProfile",
    "PastEnd",
    "Refusals",
    "ServiceProfile",
    "Shape",
]

PROFILE_VERSION = 1
"""Incremented when a key changes its meaning, not when keys are added."""


@dataclass(frozen=True, slots=True)
class ServiceProfile:
    """The behaviour of one service at one time.

    docs/reference/service-profile.md describes each finding.

    - ``measured_at`` is UTC, ``requests`` the number sent, ``backread`` the version.
    - ``default_page`` and ``largest_page`` are in rows: the page size without ``limit``, and the
      largest ``limit`` up to 99 that is applied.
    - ``limit_zero`` and ``limit_hundred``: the answers to these values of ``limit``.
    - ``users`` and ``messages``: the behaviour of the two lists.
    - ``message_ids_unique``: no two users of the sample have a message of the same id.
    - ``sender_types``: the values of ``sender_type`` in the sample.
    - ``updated_at_follows`` and ``online_at_follows``: whether these timestamps of a user move with
      the user's messages.
    - ``refusals``: the answers to invalid requests; ``http``: how the service speaks HTTP.
    - ``fields`` has, for each kind of object, a `FieldProfile` by field name.
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
    message_ids_unique: bool | None
    sender_types: tuple[str, ...] | None
    updated_at_follows: Follows | None
    online_at_follows: Follows | None
    refusals: Refusals
    http: HttpProfile
    fields: dict[str, dict[str, FieldProfile]] = field(hash=False)
    notes: dict[str, str] = field(hash=False)

    def to_dict(self) -> dict[str, Any]:
        """The profile as a dict of JSON values for `from_dict`, with its ``profile_version``."""
        record = to_json_value(self)
        record["measured_at"] = record["measured_at"].replace("+00:00", "Z")
        return {"profile_version": PROFILE_VERSION, **record}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> ServiceProfile:
        """The profile that `to_dict` of this or an earlier release made.

        Unknown keys are ignored.

        Raises:
            ValueError: The dict is not a profile, or one of a newer version; the message has the
                path of the key.
        """
        version = value_of_key(record, "profile_version")
        if not isinstance(version, int) or isinstance(version, bool):
            raise ValueError("not a service profile: it has no profile_version")
        if version > PROFILE_VERSION:
            raise ValueError(
                f"the service profile has version {version}, and this backread reads up to "
                f"{PROFILE_VERSION}; install a newer backread, or probe again"
            )
        return dataclass_from_json(cls, record, "service profile")

    def to_json(self, *, indent: int | None = None) -> str:
        """`to_dict` as JSON text; ``indent`` in spaces."""
        return json.dumps(self.to_dict(), indent=indent)

    @classmethod
    def from_json(cls, text: str) -> ServiceProfile:
        """The profile in the JSON text of `to_json`. Raises ValueError as `from_dict` does."""
        return cls.from_dict(parse_json(text, "service profile"))

    def differs(self, other: ServiceProfile) -> list[str]:
        """The paths of findings that differ from the other profile's, sorted.

        Leaves out what varies from probe to probe: when and how it was measured, latency, counts,
        and how often a field was null or missing, as long as it sometimes was.
        """
        mine, theirs = dict(_leaves("", self)), dict(_leaves("", other))
        paths = mine.keys() | theirs.keys()
        absent = object()
        return sorted(p for p in paths if mine.get(p, absent) != theirs.get(p, absent))

    def differences(self, later: ServiceProfile) -> list[Difference]:
        """Findings that a later probe of the same service contradicts, by path.

        Unlike `differs`, it leaves out what sampling explains: a field that was sometimes null and
        was not this time, if that has a probability above one in a thousand; a sender type that did
        not occur again; a finding that the earlier probe did not measure. A finding that only the
        earlier probe measured is included, since it is now unknown.
        """
        return list(changes(self, later))

    def __str__(self) -> str:
        rows = lines(self)
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in rows)

    def _repr_html_(self) -> str:
        from backread._display.html import card

        return card("ServiceProfile", lines(self))


# --- comparison -----------------------------------------------------------------------------------

VOLATILE = {
    "backread",
    "measured_at",
    "requests",
    "notes",
    "users.rows",
    "messages.rows",
    "users.total_error",
    "messages.total_error",
    "updated_at_follows.share",
    "updated_at_follows.users",
    "online_at_follows.share",
    "online_at_follows.users",
    "http.latency_seconds",
    "http.statuses",
}


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if path in VOLATILE:
        return
    if isinstance(value, FieldProfile):
        yield path, (value.types, value.null_share > 0, value.missing_share > 0)
    elif isinstance(value, AnswerProfile):
        yield path, value
    elif is_dataclass(value):
        for each in fields(value):
            yield from _leaves(f"{path}.{each.name}".lstrip("."), getattr(value, each.name))
    elif isinstance(value, dict):
        for name, held in value.items():
            yield from _leaves(f"{path}.{name}", held)
    else:
        yield path, value


# As for the records of backread.models.
ServiceProfile.__setattr__ = _refuse_assignment  # type: ignore[method-assign]
