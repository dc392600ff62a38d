"""`Shard`: one part of a reading, small enough to send to any worker, and its signature.

The signature proves that the planner had the API secret. Others may be able to write to where the
JSON is stored; it prevents a shard from being read with settings that its plan did not give it.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import zlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from backread._client.listing import Listing
from backread._files.dataclass_json import dataclass_from_json, to_json_value, value_of_key
from backread._files.json import parse_json
from backread.errors import ConfigurationError
from backread.models import _refuse_assignment

if TYPE_CHECKING:
    from backread._client.client import Client
    from backread._client.listing import Walk


Resource: TypeAlias = Literal["users", "messages"]
"""What a plan reads."""

T_co = TypeVar("T_co", covariant=True)

FORMAT = 2
PAGE_SIZE = 99

# Of ids, as differences: they fit 64 bits too, since ids are from 0 to 2**63 - 1.
SIGNED_64, BYTES = "q", 8

SIGNED = ("resource", "index", "count", "users", "plan_id", "_offset", "_ids", "_settings")
"""The fields that the signature covers."""

LABEL = b"backread: signature of shards, format 2"
"""Domain separation: keys derived for other uses have other labels."""


@dataclass(frozen=True, slots=True)
class Shard(Generic[T_co]):
    """One part of a plan: which users to read, or whose messages, and from where.

    ``resource`` is ``"users"`` or ``"messages"``. ``index`` counts from 0 to ``count - 1``;
    ``users`` is the shard's number of users; ``plan_id`` is the same for all shards of a plan. A
    shard is small (a few bytes per user), compares, hashes and pickles, and contains neither rows
    nor the secret.

    A shard from JSON is untrusted: it is read only if its signature proves that it was planned with
    the secret that would be sent. Shards of `backread.plan` and pickled ones are trusted.
    """

    resource: Resource
    index: int
    count: int
    users: int
    plan_id: str
    _offset: int = field(repr=False)
    _ids: str = field(repr=False)
    _settings: dict[str, Any] = field(repr=False, hash=False)
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

        Args:
            client: The client to read with, at its rate limit; only the users are the shard's.
                Without one, the shard uses the plan's settings and its share of the plan's rate
                limit and concurrency.
            strict: Raises `IncompleteError` if nothing was proved.
            secret_file: Without ``client``, a file with the API secret. By default the secret is
                that of the plan's client in the planning process, while that client is open;
                elsewhere that of ``BACKREAD_API_SECRET``. A shard from JSON must be signed with it.

        Raises:
            ConfigurationError: Before anything is sent, if there is no secret or the shard was
                signed with another one.
            TypeError: ``client`` is anything but a `Client` or None.
        """
        from backread._client.client import Client

        if client is None:
            client = self._own_client(secret_file)
        elif not isinstance(client, Client):
            raise TypeError(f"Shard.read takes a Client or None, not {type(client).__name__}")
        title = f"{self.resource} of shard {self.index} of {self.count}"
        offset = self._offset if self.resource == "users" else None
        start = partial(walk_planned, client, offset, self.user_ids(), strict)
        return Listing(title, start, False)

    def user_ids(self) -> list[int]:
        """The ids of the users, in the order of the service's list; ValueError if damaged."""
        return unpack(base64.b64decode(self._ids, validate=True), self.users)

    def to_dict(self) -> dict[str, Any]:
        """The shard as a dict of JSON values, for `from_dict`."""
        return {**self._document(), "signature": self._signature}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Shard[Any]:
        """The shard that `to_dict` made.

        The signature is checked when the shard is read, since that needs the secret, and before the
        ids are unpacked. Raises ValueError, with the path of the key, for anything else.
        """
        if value_of_key(document, "format") != FORMAT:
            raise ValueError(
                f"not a shard: its format is not {FORMAT}; use the same version of backread "
                "everywhere"
            )
        keys = {name.removeprefix("_"): name for name in (*SIGNED, "_signature")}
        given = {keys[key]: value for key, value in document.items() if key in keys}
        shard: Shard[Any] = dataclass_from_json(cls, given | {"_is_data": True}, "shard")
        if min(shard.index, shard.count, shard.users, shard._offset) < 0:
            raise ValueError("not a shard: a number is less than 0")
        return shard

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Shard[Any]:
        """The shard in the JSON text of `to_json`; the errors of `from_dict`."""
        return cls.from_dict(parse_json(text, "shard"))

    def _document(self) -> dict[str, Any]:
        """The signed content, as JSON values."""
        signed = {name.removeprefix("_"): getattr(self, name) for name in SIGNED}
        # A copy: a change to the dict must not change where this shard sends the secret.
        return {"format": FORMAT, **signed, "settings": to_json_value(self._settings)}

    def _signed(self, client: Client) -> Shard[T_co]:
        """This shard, signed with the client's secret."""
        return replace(self, _signature=sign(signing_key(client), self._document()))

    def _require_signature(self, secret: str | Client) -> None:
        """Raises `ConfigurationError` for a shard from JSON not signed with the secret."""
        key = signing_key(secret)
        # Traceback tools print local variables.
        del secret
        expected = sign(key, self._document()).encode()
        given = self._signature.encode(errors="replace")
        if self._is_data and not hmac.compare_digest(expected, given):
            raise ConfigurationError(
                f"shard {self.index} of {self.count} is not signed with this worker's API "
                "secret, so it was changed or was planned with another secret; plan again"
            )

    def _own_client(self, secret_file: str | os.PathLike[str] | None) -> Client:
        client: Client | None = self._client
        if secret_file is None and client is not None and not client._native.is_closed:
            options = self._settings["options"]
            share = ("max_concurrency", "rate_limit")
            return client.with_options(**{name: options[name] for name in share})
        name = f"shard {self.index} of {self.count}"
        return client_here(self._settings, name, secret_file, self._require_signature)

    def __reduce__(self) -> tuple[Any, ...]:
        return Shard, tuple(getattr(self, name) for name in (*SIGNED, "_signature", "_is_data"))

    def __dask_tokenize__(self) -> object:
        # By default Dask would pickle the client, which may have the secret.
        return self.__reduce__()[1]


# As in `backread.models`: the __setattr__ that slots=True leaves fails in super().
Shard.__setattr__ = _refuse_assignment  # type: ignore[method-assign]


def walk_planned(
    client: Client, offset: int | None, ids: list[int], strict: bool, max_items: int | None = None
) -> Walk:
    """Walks users that were listed at an offset, or without one their messages.

    They may have disappeared since. A walk over a shard has no ``max_items``: whoever wants fewer
    rows stops it.
    """
    return client._native.walk_planned(offset, ids, {"strict": strict, "page_size": PAGE_SIZE})


def signing_key(secret: str | Client) -> bytes:
    """The signing key, derived from a secret, or by a client that does not reveal its secret."""
    if isinstance(secret, str):
        return hmac.digest(secret.encode(errors="surrogateescape"), LABEL, "sha256")
    return secret._native.derived_key(LABEL)


def sign(key: bytes, document: dict[str, Any]) -> str:
    """HMAC-SHA256 of the document as canonical JSON, in hexadecimal digits."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hmac.digest(key, text.encode("ascii"), "sha256").hex()


def pack(ids: Sequence[int]) -> bytes:
    """The ids, 0 or more each and below 2**63, in their order."""
    steps = array(SIGNED_64, [*ids[:1], *(later - earlier for earlier, later in pairwise(ids))])
    return zlib.compress(steps.tobytes(), level=9)


def unpack(packed: bytes, count: int) -> list[int]:
    """The ids that `pack` packed; ValueError for other bytes, or if there are not ``count``.

    A few bytes of an untrusted shard may unpack to a thousand times as many; no more are unpacked
    than it says.
    """
    steps, unpacking = array(SIGNED_64), zlib.decompressobj()
    try:
        steps.frombytes(unpacking.decompress(packed, count * BYTES + 1))
    except (ValueError, zlib.error) as error:
        raise ValueError(f"these bytes are not packed ids: {error}") from None
    if len(steps) != count or unpacking.unused_data or unpacking.unconsumed_tail:
        raise ValueError(f"these bytes are not {count} packed ids")
    return list(accumulate(steps))


def settings_of(client: Client) -> dict[str, Any]:
    """What another process needs to create the same client, except the secret.

    Raises:
        ConfigurationError: If the client's proxy has a password.
    """
    from backread._client.client import WITHHELD

    if client._options["proxy"] is WITHHELD:
        raise ConfigurationError(
            "plan() refuses a client whose proxy has a password, because shards must not contain "
            "it; leave proxy out and set HTTPS_PROXY in the environment, here and on each worker"
        )
    return {
        "base_url": client.base_url,
        "vendor": client.vendor,
        "options": client._options,
        "traceparent": client._traceparent,
    }


def shared_settings(settings: dict[str, Any], parts: int) -> dict[str, Any]:
    """One shard's share of the settings, for ``parts`` shards that are read at the same time."""
    options = dict(settings["options"])
    options["max_concurrency"] = max(1, options["max_concurrency"] // parts)
    if options["rate_limit"] is not None:
        options["rate_limit"] /= parts
    shared: dict[str, Any] = to_json_value({**settings, "options": options})
    return shared


def secret_here(shard: str, secret_file: str | os.PathLike[str] | None) -> str:
    """The secret from the file or the environment.

    Args:
        shard: The shard's name in error messages.
        secret_file: A file with the secret, or None for the environment.

    Raises:
        ConfigurationError: If there is no secret, or the file cannot be read.
    """
    from backread._client.secret import SECRET_VARIABLE, read_secret_file

    if secret_file is not None:
        return read_secret_file(secret_file)
    if not os.environ.get(SECRET_VARIABLE):
        raise ConfigurationError(
            f"{shard} travels without the API secret, and this process has none: set "
            f"{SECRET_VARIABLE} in the environment of each worker, or pass secret_file"
        )
    return os.environ[SECRET_VARIABLE]


def client_here(
    settings: dict[str, Any],
    shard: str,
    secret_file: str | os.PathLike[str] | None,
    check: Callable[[str], object] | None = None,
) -> Client:
    """A client with the settings from a shard and the secret of this process.

    ``check`` gets the secret first, and raises for one that the settings must not be used with.
    """
    from backread._client.client import Client

    secret = secret_here(shard, secret_file)
    try:
        if check is not None:
            check(secret)
        client = Client(settings["base_url"], secret, settings["vendor"], **settings["options"])
    finally:
        # Traceback tools print local variables.
        del secret
    return client.with_options(traceparent=True) if settings["traceparent"] else client
