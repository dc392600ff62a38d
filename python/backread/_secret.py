"""The API secret out of a file, for those who keep it there."""

from __future__ import annotations

import os

from backread._paths import local_path, shown
from backread.errors import ConfigurationError

__all__ = ["secret_in"]


def secret_in(file: str | os.PathLike[str], option: str = "secret_file") -> str:
    """What the file holds, without the space around it; ``option`` is how errors name it.

    `ConfigurationError` where the file cannot be read, is no text, or is empty.
    """
    try:
        path = local_path(file, "copy it to this machine")
    except ValueError as error:
        raise ConfigurationError(f"{option}: {error}") from None
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigurationError(
            f"{option} {shown(path)} cannot be read: {reason}; name a file that holds the API "
            "secret alone"
        ) from None
    if not secret:
        raise ConfigurationError(f"{option} {shown(path)} is empty; put the API secret in it")
    return secret
