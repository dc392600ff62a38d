"""`Shard`: one part of a reading, small enough to be sent anywhere."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from backread._listing import Listing
from backread.errors import ConfigurationError
from backread.models import _refuse_assignment
from backread.sharding.identifiers import unpack

if TYPE_CHECKING:
    from backread._client import Client
    from backread._operations import Walk

__all__ = ["Resource", "Shard", "parsed", "unclosed"]

Resource: TypeAlias = Literal["users", "messages"]
"""What a plan reads."""

T_co = TypeVar("T_co", covariant=True)

FORMAT = 1
PAGE_SIZE = 99


@dataclass(frozen=True, slots=True)
class Shard(Generic[T_co]):
    """One part of a plan: which users to read, or whose messages, and where.

    ``index`` counts from 0 to ``count - 1``; ``users`` is how many users the shard is about;
    ``plan_id`` names the plan, the same for all of its shards. A shard is small (some bytes for
    each user), compares, hashes and pickles, and holds neither rows nor the secret.
    """

    resource: Resource
    index: int
    count: int
    users: int
    plan_id: str
    _offset: int = field(repr=False)
    _packed: bytes = field(repr=False)
    _settings: str = field(repr=False)
    # Not sent along: in the process of the plan its client's secret and connections serve.
    _client: Any = field(default=None, repr=False, compare=False)

    def read(
        self,
        client: Client | None = None,
        *,
        strict: bool = False,
        secret_file: str | os.PathLike[str] | None = None,
    ) -> Listing[T_co]:
        """The rows of this shard, as a `Listing`: iterate it, or give it to what takes Arrow.

        Each iteration reads the service once more, so a shard may be read again after a failure.
        Nothing is sent before the first row is asked for. The listing's report is about this shard
        alone: users that are gone are counted in it, and no error.

        - Without ``client``, the shard reads with the plan's settings and its part of the plan's
          rate limit and concurrency. Its secret is that of the plan's client in the process that
          made the plan, while that client is open; elsewhere that of ``secret_file``, if named, and
          else of ``BACKREAD_API_SECRET``.
        - With ``client``, it reads by that, at its pace.
        - ``strict=True`` ends in `IncompleteError` where nothing was proved.

        Raises `ConfigurationError` where there is no secret; the errors of `backread.errors` while
        it is read.
        """
        from backread._client import Client

        if client is None:
            client = self._own_client(secret_file)
        elif not isinstance(client, Client):
            raise TypeError(f"Shard.read takes a Client or None, not {type(client).__name__}")
        title = f"{self.resource} of shard {self.index} of {self.count}"
        return Listing(title, self._walk(client, strict), False)

    def user_ids(self) -> list[int]:
        """The ids of the users, in the order of the service's list."""
        return unpack(self._packed)

    def to_json(self) -> str:
        """The shard as JSON, for what carries text only; `from_json` reads it."""
        return json.dumps(
            {
                "format": FORMAT,
                "resource": self.resource,
                "index": self.index,
                "count": self.count,
                "users": self.users,
                "plan_id": self.plan_id,
                "offset": self._offset,
                "ids": base64.b64encode(self._packed).decode("ascii"),
                "settings": json.loads(self._settings),
            }
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Shard[Any]:
        """The shard that `to_json` wrote; ValueError for anything else."""
        try:
            document = parsed(text, "shard")
            written = document["format"]
            if written != FORMAT:
                raise ValueError(
                    f"a shard of format {written}; this backread reads format {FORMAT}: use the "
                    "same version everywhere"
                )
            shard: Shard[Any] = cls(
                resource=document["resource"],
                index=document["index"],
                count=document["count"],
                users=document["users"],
                plan_id=document["plan_id"],
                _offset=document["offset"],
                _packed=base64.b64decode(document["ids"], validate=True),
                _settings=json.dumps(document["settings"], sort_keys=True),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"this JSON is no shard: {error} is missing or wrong") from None
        if len(shard.user_ids()) != shard.users:
            raise ValueError("this JSON is no shard: it does not hold as many ids as it says")
        return shard

    def _walk(self, client: Client, strict: bool) -> Callable[[], Walk]:
        ids = self.user_ids()
        if self.resource == "users":
            return partial(_walk_users, client, self._offset, ids, strict)
        return partial(_walk_messages, client, ids, strict)

    def _own_client(self, secret_file: str | os.PathLike[str] | None) -> Client:
        from backread._client import SECRET_VARIABLE, Client

        settings = json.loads(self._settings)
        if secret_file is None:
            if (client := unclosed(self._client)) is not None:
                share = ("max_concurrency", "rate_limit")
                return client.with_options(**{name: settings["options"][name] for name in share})
            if not os.environ.get(SECRET_VARIABLE):
                raise ConfigurationError(
                    f"shard {self.index} of {self.count} travels without the API secret, and this "
                    f"process has none: set {SECRET_VARIABLE} in the environment of each worker, "
                    "or give secret_file"
                )
            secret = None
        else:
            from backread._secret import secret_in

            secret = secret_in(secret_file)
        try:
            client = Client(settings["base_url"], secret, settings["vendor"], **settings["options"])
        finally:
            # Tools that print a traceback print the local variables of its frames.
            del secret
        return client.with_options(traceparent=True) if settings["traceparent"] else client

    def __reduce__(self) -> tuple[Any, ...]:
        return _load, (
            self.resource,
            self.index,
            self.count,
            self.users,
            self.plan_id,
            self._offset,
            self._packed,
            self._settings,
        )


# As in `backread.models`: what slots=True leaves there fails with a word about super().
Shard.__setattr__ = _refuse_assignment  # type: ignore[method-assign]


def parsed(text: str | bytes, kind: str) -> Any:
    """The JSON; ValueError that says what it should have been."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"this is no JSON of a {kind}: {error}") from None


def unclosed(client: Client | None) -> Client | None:
    """The client, unless there is none or it was closed."""
    return None if client is None or client._native.is_closed else client


def _load(*values: Any) -> Shard[Any]:
    return Shard(*values)


def _walk_users(client: Client, offset: int, ids: list[int], strict: bool) -> Walk:
    return client._native.walk_planned_users(offset, ids, strict, PAGE_SIZE)


def _walk_messages(client: Client, ids: list[int], strict: bool) -> Walk:
    return client._native.walk_planned_messages(ids, strict, PAGE_SIZE)
