"""`plan`: reads the list of users once and splits it into shards."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, get_args, overload

from backread._client.arguments import whole
from backread._files.dataclass_json import value_of_key
from backread._files.json import parse_json
from backread.models import WalkReport
from backread.sharding.shard import PAGE_SIZE, Resource, Shard, pack, settings_of, shared_settings

if TYPE_CHECKING:
    from typing import Unpack

    from backread._client.client import Client
    from backread.models import Message, User


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

    def to_dict(self) -> dict[str, Any]:
        """The plan as a dict of JSON values, for `from_dict`."""
        return {
            "report": self.report.to_dict(),
            "shards": [shard.to_dict() for shard in self],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Plan[Any]:
        """The plan that `to_dict` made; ValueError for anything else, as `Shard.from_dict`."""
        shards = value_of_key(document, "shards")
        if not isinstance(shards, list) or not shards:
            raise ValueError("not a plan: $.shards is not a list of shards")
        report = WalkReport.from_dict(value_of_key(document, "report"))
        return cls(map(Shard.from_dict, shards), report)

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan[Any]:
        """The plan in the JSON text of `to_json`; ValueError as for `from_dict`."""
        return cls.from_dict(parse_json(text, "plan"))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self), self.report)

    def __repr__(self) -> str:
        return (
            f"<Plan {self.plan_id}: {self.resource} of {self.users} users in {len(self)} shards, "
            f"{self.report.certificate}>"
        )


class PlanOptions(TypedDict, total=False):
    """The options of `plan`, besides ``resource``, which decides the type of its rows."""

    shards: int | None
    workers: int | None
    strict: bool


@overload
def plan(
    client: Client, *, resource: Literal["messages"] = "messages", **options: Unpack[PlanOptions]
) -> Plan[Message]: ...
@overload
def plan(
    client: Client, *, resource: Literal["users"], **options: Unpack[PlanOptions]
) -> Plan[User]: ...
@overload
def plan(client: Client, *, resource: Resource, **options: Unpack[PlanOptions]) -> Plan[Any]: ...
def plan(
    client: Client,
    *,
    resource: Resource = "messages",
    shards: int | None = None,
    workers: int | None = None,
    strict: bool = False,
) -> Plan[Any]:
    """Reads the list of users, and splits the reading of ``resource`` into shards.

    A plan covers the users listed while it is made; later ones are in the next plan. If one page of
    the list can never be read, the plan covers the users before it, and is uncertified. Users that
    disappear before their shard is read are counted in its report.

    Args:
        client: The service to read; shards contain its settings without the secret.
        resource: ``"messages"``: each shard reads the messages of some of the users.
            ``"users"``: the users themselves, which are then read twice, by the plan and by the
            shards.
        shards: How many, 1 to 10,000; at most one per user, and at least one. None for one per
            500 users, 64 at most.
        workers: How many shards will be read at once, None for all of them. The client's
            ``rate_limit`` and ``max_concurrency`` are divided by this number (each shard has a
            concurrency of at least 1), since more workers do not make the service faster.
        strict: Raises `IncompleteError` if nothing was proved about the list of users.

    Returns:
        The shards, and the report of the walk over the list of users.

    Raises:
        BackreadError: The errors of the client.
        ConfigurationError: The client's ``proxy`` contains a password, which shards must not
            contain.
        TypeError: For anything but a `Client`.
        ValueError: For another resource or number.

    Example:
        >>> with Client() as client:
        ...     shards = plan(client, shards=4)
        >>> table = pyarrow.table(shards[0].read())
    """
    from backread._client.client import Client

    if not isinstance(client, Client):
        raise TypeError(
            f"plan takes a Client, not {type(client).__name__}; in async code, create a Client "
            "with the same arguments and use await asyncio.to_thread(plan, client)"
        )
    if resource not in get_args(Resource):
        raise ValueError(f"resource must be 'users' or 'messages', not {resource!r}")
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
                _ids=base64.b64encode(pack([user_id for _, user_id in part])).decode(),
                _settings=share,
                _client=client,
            )._signed(client)
        )
    return Plan(made, report)


def listed_users(client: Client, strict: bool) -> tuple[list[tuple[int, int]], WalkReport]:
    """The list of users: position and id of each one with a usable id."""
    walk = client._native.walk(
        None, {"strict": strict, "page_size": PAGE_SIZE, "ends_unread": True}
    )
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
    reason = f"{users} no usable id, so no shard can contain them"
    if report.reason is not None:
        reason = f"{report.reason}; {reason}"
    return replace(report, certificate="uncertified", reason=reason)
