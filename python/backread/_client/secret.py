"""Reads the API secret from a file, and redacts it in messages."""

from __future__ import annotations

import os

from backread._client.option_kinds import HEADERS

__tracebackhide__ = True

SECRET_VARIABLE = "BACKREAD_API_SECRET"

HEADERS_VARIABLE = "BACKREAD_HEADERS"

MOST_BYTES = 65_536


def headers_for(base_url: str | None) -> dict[str, str] | None:
    """The headers in the environment, if this is the environment's service; else None.

    Raises:
        ConfigurationError: If the variable is no JSON object of texts.
    """
    text, own = os.environ.get(HEADERS_VARIABLE), os.environ.get("BACKREAD_BASE_URL")
    if not text or not own or not base_url or base_url.rstrip("/") != own.rstrip("/"):
        return None
    try:
        headers: dict[str, str] = HEADERS.read(text)
    except ValueError as error:
        from backread.errors import ConfigurationError

        raise ConfigurationError(
            f'{HEADERS_VARIABLE} is not {error}, such as {{"X-Key": "…"}}; correct or unset it'
        ) from None
    return headers


def redact_secret(text: str, secret: object = None) -> str:
    """The text with the secret redacted; by default the secret in the environment."""
    known = secret if secret and isinstance(secret, str) else os.environ.get(SECRET_VARIABLE)
    if not known:
        return text
    from backread._backread import redacted

    # File names may contain surrogates.
    return redacted(*(each.encode("utf-8", "replace").decode() for each in (text, known)))


def read_secret_file(
    file: str | os.PathLike[str], option: str = "secret_file", *, private: bool = False
) -> str:
    """The file's text, stripped.

    Args:
        file: A file that holds the API secret and nothing else.
        option: The name of the option for the file, for error messages.
        private: Refuses a file that every user may read.

    Raises:
        ConfigurationError: If the file cannot be read, is not text, is empty, or is refused.
    """
    # Most programs have no such file, and import less without these.
    from backread._files.access import RefusedFileError, read_private_file
    from backread._files.paths import local_path, shown
    from backread.errors import ConfigurationError

    try:
        path = local_path(file, "copy it to this machine")
    except ValueError as error:
        raise ConfigurationError(f"{option}: {error}") from None
    try:
        content = read_private_file(path, MOST_BYTES) if private else path.read_bytes()
        secret = content.decode("utf-8").strip()
    except RefusedFileError as error:
        raise ConfigurationError(f"{option}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigurationError(
            f"{option} {shown(path)} cannot be read: {reason}; name a file that holds only "
            "the API secret"
        ) from None
    if not secret:
        raise ConfigurationError(f"{option} {shown(path)} is empty; put the API secret in it")
    return secret
