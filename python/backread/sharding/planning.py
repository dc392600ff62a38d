"""`plan`: reads the list of users once and splits it into shards."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, overload

from backread._client.arguments import whole
from backread.models import WalkReport
from backread.sharding.identifiers import pack
from backread.sharding.settings import settings_of, shared_settings
from backread.sharding.shard import PAGE_SIZE, Resource, Shard, parsed

if TYPE_CHECKING:
    from backread._client.client import Client
    from backread.models import Message, User

__all__ = ["MOST_SHARDS", "USERS_A_SHARD", "Plan", "listed_users", "plan"]

T = TypeVar("T")

MOST_SHARDS = 10_000
"""More are refused, since each shard is a task."""

USERS_A_SHARD = 500
"""The approximate users per shard if the number of shards is not given,"""

SHARDS_UNASKED = 64
"""and the most shards in that case."""


class Plan(list[Shard[T]]):
    """The shards of one reading, a list of `Shard`; together they name each listed user once.

    ``report`` is that of the walk over the list of users: the shards cover what it certifies.
    Pickles; use `to_json` for text-only transports.
    """

    def __init__(self, shards: Iterable[Shard[T]], report: WalkReport) -> None:
        super().__init__(shards)
        self.report = report

    @property
    def plan_id(self) -> str:
        """The plan's unique id: its time in UTC and random digits."""
        return self[0].plan_id

    @property
    def resource(self) -> Resource:
        """What the shards read."""
        return self[0].resource

    @property
    def users(self) -> int:
        """How many users the plan names."""
        return sum(shard.users for shard in self)

    def to_json(self) -> str:
        """The plan as JSON; `from_json` reads it."""
        shards = [json.loads(shard.to_json()) for shard in self]
        return json.dumps({"report": json.loads(self.report.to_json()), "shards": shards})

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan[Any]:
        """The plan that `to_json` wrote; ValueError for anything else."""
        document = parsed(text, "plan")
        try:
            shards = [Shard.from_json(json.dumps(shard)) for shard in document["shards"]]
            report = WalkReport.from_json(json.dumps(document["report"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"this JSON is no plan: {error} is missing or wrong") from None
        if not shards:
            raise ValueError("this JSON is no plan: it has no shards")
        return cls(shards, report)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self), self.report)

    def __repr__(self) -> str:
        return (
            f"<Plan {self.plan_id}: {self.resource} of {self.users} users in {len(self)} shards, "
            f"{self.report.certificate}>"
        )


@overload
def plan(
    client: Client,
    *,
    resource: Literal["messages"] = "messages",
    shards: int | None = None,
    workers: int | None = None,
    strict: bool = False,
) -> Plan[Message]: ...
@overload
def plan(
    client: Client,
    *,
    resource: Literal["users"],
    shards: int | None = None,
    workers: int | None = None,
    strict: bool = False,
) -> Plan[User]: ...
@overload
def plan(
    client: Client,
    *,
    resource: Resource,
    shards: int | None = None,
    workers: int | None = None,
    strict: bool = False,
) -> Plan[Any]: ...
def plan(
    client: Client,
    *,
    resource: Resource = "messages",
    shards: int | None = None,
    workers: int | None = None,
    strict: bool = False,
) -> Plan[Any]:
    """Reads the list of users, and splits the reading of ``resource`` into shards.

    - ``resource="messages"``: each shard reads the messages of some of the users;
      ``resource="users"``: the users themselves, which are then read twice, by the plan and by the
      shards.
    - ``shards``: how many, 1 to 10,000; at most one per user, and at least one. ``None`` for one
      per 500 users, 64 at most.
    - ``workers``: how many shards will be read at once, ``None`` for all of them. The client's
      ``rate_limit`` and ``max_concurrency`` are divided by this number (each shard has a
      concurrency of at least 1), since more workers do not make the service faster.
    - ``strict=True`` raises `IncompleteError` if nothing was proved about the list of users.

    A plan covers the users listed while it is made; later ones are in the next plan. Users that
    disappear before their shard is read are counted in its report.

    Raises the errors of the client; ValueError for another resource or number; TypeError for
    anything but a `Client`; `ConfigurationError` for one whose ``proxy`` contains a password, which
    shards must not contain.
    """
    from backread._client.client import Client

    if not isinstance(client, Client):
        raise TypeError(
            f"plan takes a Client, not {type(client).__name__}; where you await, make a Client "
            "with the same arguments and write await asyncio.to_thread(plan, client)"
        )
    if resource not in get_args(Resource):
        raise ValueError(f"resource is 'users' or 'messages', not {resource!r}; nothing was sent")
    wanted = None if shards is None else whole("shards", shards, 1, MOST_SHARDS)
    at_once = None if workers is None else whole("workers", workers, 1, MOST_SHARDS)
    settings = settings_of(client)
    placed, report = listed_users(client, strict)
    if wanted is None:
        wanted = min(SHARDS_UNASKED, -(-len(placed) // USERS_A_SHARD))
    count = max(1, min(wanted, len(placed)))
    share = shared_settings(settings, min(count, at_once or count))
    plan_id = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{token_hex(4)}"
    made: list[Shard[Any]] = []
    for index in range(count):
        first, last = (len(placed) * part // count for part in (index, index + 1))
        part = placed[first:last]
        made.append(
            Shard(
                resource=resource,
                index=index,
                count=count,
                users=len(part),
                plan_id=plan_id,
                _offset=part[0][0] if part else 0,
                _packed=pack([user_id for _, user_id in part]),
                _settings=share,
                _client=client,
            )._signed(client)
        )
    return Plan(made, report)


def listed_users(client: Client, strict: bool) -> tuple[list[tuple[int, int]], WalkReport]:
    """The list of users: position and id of each one with a usable id."""
    walk = client._native.walk_users(strict, PAGE_SIZE, None)
    ids: list[int | None] = []
    try:
        while (some := walk.next_ids(True)) is not None:
            ids += some
    finally:
        walk.stop()
    placed = [
        (place, user_id)
        for place, user_id in enumerate(ids)
        if user_id is not None and user_id >= 0
    ]
    if len(placed) < len(ids):
        return placed, _without_ids(walk.report, len(ids) - len(placed))
    return placed, walk.report


def _without_ids(report: WalkReport, count: int) -> WalkReport:
    users = "1 user has" if count == 1 else f"{count} users have"
    reason = f"{users} no usable id, and no shard can name them"
    if report.reason is not None:
        reason = f"{report.reason}; {reason}"
    return replace(report, certificate="uncertified", reason=reason)
