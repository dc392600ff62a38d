"""`Shard`: one part of a reading, small enough to send to any worker."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, get_args

from backread._client.listing import Listing
from backread._files.json import parse_json
from backread.errors import ConfigurationError
from backread.models import _refuse_assignment
from backread.sharding.identifiers import unpack
from backread.sharding.settings import client_with, secret_here
from backread.sharding.signature import is_signed, key_of, sign

if TYPE_CHECKING:
    from backread._client.client import Client
    from backread._client.operations import Walk

__all__ = ["Resource", "Shard", "parsed", "unclosed", "walk_messages"]

Resource: TypeAlias = Literal["users", "messages"]
"""What a plan reads."""

T_co = TypeVar("T_co", covariant=True)

FORMAT = 2
UNSIGNED_FORMAT = 1
PAGE_SIZE = 99


@dataclass(frozen=True, slots=True)
class Shard(Generic[T_co]):
    """One part of a plan: which users to read, or whose messages, and from where.

    ``index`` counts from 0 to ``count - 1``; ``users`` is the shard's number of users; ``plan_id``
    is the same for all shards of a plan. A shard is small (a few bytes per user), compares, hashes
    and pickles, and contains neither rows nor the secret.

    A shard from JSON is untrusted: it is read only if its signature proves that it was planned with
    the secret that would be sent. Shards of `backread.plan` and pickled ones are trusted.
    """

    resource: Resource
    index: int
    count: int
    users: int
    plan_id: str
    _offset: int = field(repr=False)
    _packed: bytes = field(repr=False)
    _settings: str = field(repr=False)
    _signature: str = field(default="", repr=False, compare=False)
    _is_data: bool = field(default=False, repr=False, compare=False)
    # Not pickled; in the planning process, the shard uses its client's secret and connections.
    _client: Any = field(default=None, repr=False, compare=False)

    def read(
        self,
        client: Client | None = None,
        *,
        strict: bool = False,
        secret_file: str | os.PathLike[str] | None = None,
    ) -> Listing[T_co]:
        """The rows of this shard, as a `Listing` to iterate or to pass to an Arrow library.

        Each iteration reads the service again, so a shard can be retried after a failure. Nothing
        is sent until the first row is requested. The listing's report covers only this shard; it
        counts users that are gone, which are not an error.

        - Without ``client``, the shard uses the plan's settings and its share of the plan's rate
          limit and concurrency. The secret is that of the plan's client in the planning process,
          while that client is open; elsewhere it comes from ``secret_file`` if given, or else from
          ``BACKREAD_API_SECRET``. A shard from JSON must be signed with that secret.
        - With ``client``, it uses that client and its rate limit; only the users are the shard's.
        - ``strict=True`` raises `IncompleteError` if nothing was proved.

        Raises `ConfigurationError`, with nothing sent, if there is no secret or the shard was
        signed with another one; the errors of `backread.errors` while reading.
        """
        from backread._client.client import Client

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
        """The shard as JSON; `from_json` reads it."""
        return json.dumps({**self._document(), "signature": self._signature})

    @classmethod
    def from_json(cls, text: str | bytes) -> Shard[Any]:
        """The shard that `to_json` wrote; ValueError for anything else.

        The signature is checked when the shard is read, since that needs the secret. Raises
        `ConfigurationError`, also a ValueError, for an unsigned shard of an older version.
        """
        try:
            document = parsed(text, "shard")
            written = document["format"]
            if written == UNSIGNED_FORMAT:
                raise ConfigurationError(
                    "this shard is from an older version of backread and is not signed, so nothing "
                    "shows where its secret may be sent; plan again"
                )
            if written != FORMAT:
                raise ValueError(
                    f"a shard of format {written!r:.20}; this backread reads format {FORMAT}: use "
                    "the same version everywhere"
                )
            shard: Shard[Any] = cls(
                resource=_one_of(document, "resource", get_args(Resource)),
                index=_whole(document, "index"),
                count=_whole(document, "count"),
                users=_whole(document, "users"),
                plan_id=_text(document, "plan_id"),
                _offset=_whole(document, "offset"),
                _packed=base64.b64decode(document["ids"], validate=True),
                _settings=json.dumps(document["settings"], sort_keys=True),
                _signature=_text(document, "signature"),
                _is_data=True,
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"this JSON is no shard: {error} is missing or wrong") from None
        except binascii.Error:
            raise ValueError("this JSON is no shard: its ids are no base64") from None
        if len(shard.user_ids()) != shard.users:
            raise ValueError("this JSON is no shard: it does not hold as many ids as it says")
        return shard

    def _document(self) -> dict[str, Any]:
        """The signed content, as JSON values."""
        return {
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

    def _signed(self, client: Client) -> Shard[T_co]:
        """This shard, signed with the client's secret."""
        return replace(self, _signature=sign(key_of(client), self._document()))

    def _require_signature(self, secret: str | Client) -> None:
        """Raises `ConfigurationError` for a shard from JSON not signed with the secret."""
        signed = not self._is_data or is_signed(key_of(secret), self._document(), self._signature)
        # Traceback tools print local variables.
        del secret
        if not signed:
            raise ConfigurationError(
                f"shard {self.index} of {self.count} is not signed with this worker's API "
                "secret, so it was changed or was planned with another secret; plan again"
            )

    def _walk(self, client: Client, strict: bool) -> Callable[[], Walk]:
        ids = self.user_ids()
        if self.resource == "users":
            return partial(_walk_users, client, self._offset, ids, strict)
        return partial(walk_messages, client, ids, strict)

    def _own_client(self, secret_file: str | os.PathLike[str] | None) -> Client:
        if secret_file is None and (client := unclosed(self._client)) is not None:
            options = json.loads(self._settings)["options"]
            share = ("max_concurrency", "rate_limit")
            return client.with_options(**{name: options[name] for name in share})
        secret = secret_here(f"shard {self.index} of {self.count}", secret_file)
        try:
            self._require_signature(secret)
            return client_with(self._settings, secret)
        finally:
            # As above.
            del secret

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
            self._signature,
            self._is_data,
        )


# As in `backread.models`: the __setattr__ that slots=True leaves fails in super().
Shard.__setattr__ = _refuse_assignment  # type: ignore[method-assign]


def parsed(text: str | bytes, kind: str) -> Any:
    """Parses JSON; the ValueError says what it should have been."""
    try:
        return parse_json(text)
    except ValueError as error:
        raise ValueError(f"this is no JSON of a {kind}: {error}") from None


def unclosed(client: Client | None) -> Client | None:
    """The client, or None if there is none or it was closed."""
    return None if client is None or client._native.is_closed else client


def walk_messages(client: Client, ids: list[int], strict: bool) -> Walk:
    """Walks the messages of users that were listed and may have disappeared since."""
    return client._native.walk_planned_messages(ids, strict, PAGE_SIZE)


def _load(*values: Any) -> Shard[Any]:
    return Shard(*values)


def _whole(document: dict[str, Any], name: str) -> int:
    value = document[name]
    if type(value) is not int or value < 0:
        raise TypeError(name)
    return value


def _text(document: dict[str, Any], name: str) -> str:
    value = document[name]
    if not isinstance(value, str):
        raise TypeError(name)
    return value


def _one_of(document: dict[str, Any], name: str, known: tuple[Any, ...]) -> Any:
    value = document[name]
    if value not in known:
        raise TypeError(name)
    return value


def _walk_users(client: Client, offset: int, ids: list[int], strict: bool) -> Walk:
    return client._native.walk_planned_users(offset, ids, strict, PAGE_SIZE)
