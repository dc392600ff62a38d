"""A client's settings in a shard: JSON values, without the secret."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from backread._files.dataclass_json import to_json_value
from backread.errors import ConfigurationError

if TYPE_CHECKING:
    from backread._client.client import Client


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
