"""A client's settings in a shard: JSON without the secret."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from backread.errors import ConfigurationError

if TYPE_CHECKING:
    from backread._client.client import Client

__all__ = ["client_with", "secret_here", "settings_of", "shared_settings"]


def settings_of(client: Client) -> dict[str, Any]:
    """What another process needs to create the same client, except the secret.

    Raises `ConfigurationError` for a client whose proxy contains a password.
    """
    from backread._client.client import WITHHELD

    if client._options["proxy"] is WITHHELD:
        raise ConfigurationError(
            "a client whose proxy holds a password cannot be planned with, for no shard may carry "
            "it; leave proxy out and set HTTPS_PROXY in the environment, here and on each worker"
        )
    return {
        "base_url": client.base_url,
        "vendor": client.vendor,
        "options": client._options,
        "traceparent": client._traceparent,
    }


def shared_settings(settings: dict[str, Any], parts: int) -> str:
    """The settings of one of ``parts`` shards that are read at the same time, as JSON."""
    options = dict(settings["options"])
    options["max_concurrency"] = max(1, options["max_concurrency"] // parts)
    if options["rate_limit"] is not None:
        options["rate_limit"] /= parts
    return json.dumps({**settings, "options": options}, sort_keys=True)


def secret_here(shard: str, secret_file: str | os.PathLike[str] | None) -> str:
    """The secret from the file or the environment; ``shard`` is for the error message."""
    from backread._client.secret import SECRET_VARIABLE, secret_in

    if secret_file is not None:
        return secret_in(secret_file)
    if not os.environ.get(SECRET_VARIABLE):
        raise ConfigurationError(
            f"{shard} travels without the API secret, and this process has none: set "
            f"{SECRET_VARIABLE} in the environment of each worker, or give secret_file"
        )
    return os.environ[SECRET_VARIABLE]


def client_with(settings: str, secret: str) -> Client:
    """A client with the settings from a shard."""
    from backread._client.client import Client

    given = json.loads(settings)
    try:
        client = Client(given["base_url"], secret, given["vendor"], **given["options"])
    finally:
        # Traceback tools print local variables.
        del secret
    return client.with_options(traceparent=True) if given["traceparent"] else client
