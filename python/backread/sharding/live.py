"""Shards that name no users, and so read the current users of the service at any later time.

A `Shard` of a plan names its users, so it must be read soon after planning. Partitions that an
engine keeps and reruns, such as those of a Spark frame, must cover all users at any time: here the
id alone decides which shard a user belongs to, and each shard reads the list of users itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

from backread._client.listing import Listing
from backread.errors import DecodeError, IncompleteError, ResponseTooLargeError
from backread.sharding.planning import USERS_A_SHARD, listed_users
from backread.sharding.shard import (
    Resource,
    client_here,
    settings_of,
    shared_settings,
    walk_planned,
)

if TYPE_CHECKING:
    from backread._client.client import Client


ReadList: TypeAlias = "Callable[[Client, bool], list[int]]"
"""Reads the ids on the list of users, strictly or not."""


def live_shards(
    client: Client, resource: Resource, shards: int | None = None, workers: int | None = None
) -> list[LiveShard]:
    """Shards that together cover the resource whenever they are read; sends one request.

    Args:
        client: The service to read.
        resource: For ``"users"`` there is one shard, since the list is one walk.
        shards: How many, for ``"messages"``; None for one per 500 current users, but at most as
            many as the client's concurrent requests, because each process reads the list of users.
        workers: How many are read at once; None for all, as for `backread.plan`.

    Raises:
        BackreadError: The client's errors.
    """
    settings = settings_of(client)
    total = _total(client)
    if resource == "users":
        count = 1
    elif shards is not None:
        count = shards
    else:
        most: int = settings["options"]["max_concurrency"]
        count = most if total is None else max(1, min(most, -(-total // USERS_A_SHARD)))
    share = shared_settings(settings, min(count, workers or count))
    plan_id = token_hex(8)
    return [LiveShard(resource, index, count, plan_id, share) for index in range(count)]


@dataclass(frozen=True, slots=True)
class LiveShard:
    """One of ``count`` parts of the users, or of their messages; pickles and holds no secret."""

    resource: Resource
    index: int
    count: int
    plan_id: str
    """Shared by the shards of one call."""
    settings: dict[str, Any] = field(repr=False, hash=False)

    def read(
        self,
        *,
        strict: bool = False,
        secret_file: str | os.PathLike[str] | None = None,
        listed: ReadList | None = None,
    ) -> Listing[Any]:
        """The rows of this part, for the users that are on the list now.

        ``listed`` replaces `listed_ids`, for processes that read several shards. Otherwise like
        `backread.Shard.read` without a client.
        """
        name = f"shard {self.index} of {self.count}"
        client = client_here(self.settings, name, secret_file)
        if self.resource == "users":
            return client.users.list(strict=strict)
        everyone = (listed or listed_ids)(client, strict)
        ids = [user_id for user_id in everyone if part_of(user_id, self.count) == self.index]
        start = partial(walk_planned, client, None, ids, strict)
        return Listing(f"messages of {name}", start, False)


def part_of(user_id: int, count: int) -> int:
    """Which of ``count`` parts a user belongs to; stable across machines and time."""
    return crc32(user_id.to_bytes(8, "little")) % count


def listed_ids(client: Client, strict: bool) -> list[int]:
    """The ids on the list of users; if strict, `IncompleteError` unless the list is certified."""
    placed, report = listed_users(client, strict)
    if strict and report.certificate == "uncertified":
        raise IncompleteError(
            f"the list of users was not proved complete: {report.reason}; read it again, or "
            "without strict",
            report=report,
        )
    return [user_id for _, user_id in placed]


def _total(client: Client) -> int | None:
    """The service's count of users, None if it sends none."""
    try:
        return client.users.page(0, 1).total
    except (DecodeError, ResponseTooLargeError):
        # Only the first row is unreadable; a walk skips it and reports that.
        return None
