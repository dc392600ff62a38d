"""An Airflow connection: the fields of its form, the client's arguments, its errors.

Does not import Airflow: any object with a connection's attributes will do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from backread._client.options import ARGUMENTS, Option
from backread._files.json import parse_json
from backread.errors import (
    AuthenticationError,
    BackreadError,
    ConfigurationError,
    NotFoundError,
    PermissionDeniedError,
    StatusError,
)

__all__ = [
    "CONNECTION_TYPE",
    "DEFAULTS",
    "FIELDS",
    "STANDARD_FIELDS",
    "Settings",
    "describe",
    "permanent",
    "read_settings",
]

CONNECTION_TYPE = "backread"


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of a client; ``None`` means the client's default or environment variable.

    ``api_secret`` is None only if the connection names no service either: only then may the client
    read it from the environment. ``masked`` must never appear in a log.
    """

    base_url: str | None
    api_secret: str | None = field(repr=False)
    vendor: str | None
    options: dict[str, Any] = field(repr=False)
    masked: tuple[str, ...] = field(repr=False)


def describe(option: Option) -> str:
    """What an option sets, and what applies if its field is empty."""
    default = option.default_in_words(option.airflow_default)
    return f"{option.help}; {default} if empty" if default else option.help


def _field(name: str, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": [option.kind.json_type, "null"]}
    if option.kind.may_hold_password:
        schema["format"] = "password"
    return {
        "label": name.replace("_", " ").capitalize().replace("Ca ", "CA "),
        "description": describe(option).replace("`", "") + ".",
        "schema": schema,
    }


OPTIONS = {name: option for name, option in ARGUMENTS.items() if option.in_airflow}
"""The client's arguments that the connection's extra may have."""

FIELDS = {name: _field(name, option) for name, option in OPTIONS.items()}
"""The fields of the form as a provider declares them; the connection's extra has their values."""

DEFAULTS = {
    name: option.airflow_default
    for name, option in OPTIONS.items()
    if option.airflow_default is not None
}
"""The defaults that differ from those of `Client`: a task can wait longer than a user."""

WITH_A_HOST = [name for name, option in OPTIONS.items() if option.guards_secret]
"""Fields that affect who sees the secret; allowed only with the connection's own host."""

STANDARD_FIELDS: dict[str, Any] = {
    # The port is shown because Airflow 3.3.1 and 3.3.2 cannot test a connection without one.
    "hidden-fields": ["login", "schema", "extra"],
    "relabeling": {"host": "Base URL", "password": "API secret"},
    "placeholders": {"host": "https://chat.example.com/api", "port": "443"},
}
"""How the form shows the standard fields of every connection."""


def read_settings(connection: Any, environ: Mapping[str, str]) -> Settings:
    """A connection's settings.

    Missing values come from ``BACKREAD_BASE_URL``, ``BACKREAD_VENDOR`` and
    ``BACKREAD_API_SECRET``. The environment's secret is used only if the connection names no host,
    and such a connection must not set any of `WITH_A_HOST`, so that users who can edit connections
    cannot send that secret elsewhere.

    Args:
        connection: The connection, with its extra as JSON text.
        environ: The environment variables of the worker.

    Raises:
        ConfigurationError: If the connection is incomplete or invalid. Its text never shows a
            secret.
    """
    name = f"the connection {connection.conn_id!r}"
    if connection.conn_type not in (None, "", CONNECTION_TYPE):
        raise ConfigurationError(
            f"{name} has the type {connection.conn_type!r}, not {CONNECTION_TYPE!r}; "
            "choose that type, or name another connection in backread_conn_id"
        )
    options = _options(connection, name)
    base_url = _base_url(connection, name)
    if base_url is None and (refused := [each for each in WITH_A_HOST if options.get(each)]):
        raise ConfigurationError(
            f"{name} has no host, so it may not set {' or '.join(refused)}; give it a host and a "
            "password, or set HTTPS_PROXY or SSL_CERT_FILE on the workers instead"
        )
    secret = connection.password or None
    vendor = options.pop("vendor", None)
    if base_url is None and not environ.get("BACKREAD_BASE_URL"):
        raise ConfigurationError(
            f"{name} has no host; give the service's address, such as "
            "https://chat.example.com/api, or set BACKREAD_BASE_URL on the workers"
        )
    if secret is None and (base_url is not None or not environ.get("BACKREAD_API_SECRET")):
        raise ConfigurationError(f"{name} has no password; give the API secret as password")
    if vendor is None and not environ.get("BACKREAD_VENDOR"):
        raise ConfigurationError(
            f"{name} has no vendor; give the vendor word of the service's media type in the "
            "field vendor, or set BACKREAD_VENDOR on the workers"
        )
    masked = [secret or environ["BACKREAD_API_SECRET"]]
    if password := _password_of(options.get("proxy")):
        masked.append(password)
    return Settings(base_url, secret, vendor, options, tuple(masked))


def permanent(error: BackreadError, backread_conn_id: str) -> str | None:
    """The message for an error that a later attempt would get too; None for other errors.

    It names the connection and its field. 404 counts if it ended the whole operation, not for a
    single missing user.
    """
    name = f"the connection {backread_conn_id!r}"
    if isinstance(error, ConfigurationError):
        text = str(error)
        return text if text.startswith(name) else f"{name}: {text}"
    if not isinstance(error, StatusError):
        return None
    match error:
        case AuthenticationError():
            advice = (
                "it rejected the secret; correct the field password (API secret), or "
                "BACKREAD_API_SECRET if that is empty"
            )
        case PermissionDeniedError():
            advice = "the secret does not have access; set one that does as password (API secret)"
        case NotFoundError():
            advice = (
                "this is not the address of the service; correct the field host (Base URL), or "
                "BACKREAD_BASE_URL if that is empty"
            )
        case StatusError(status_code=406):
            advice = (
                "it does not accept the media type; correct the field vendor, or BACKREAD_VENDOR "
                "if that is empty"
            )
        case _:
            return None
    request = str(error).partition(": the service answered ")[0]
    request_id = f"; request id {error.request_id}" if error.request_id else ""
    return f"{name}: {request}: the service answered {error.status_code}: {advice}{request_id}"


def _options(connection: Any, name: str) -> dict[str, Any]:
    try:
        extra = parse_json(connection.extra) if connection.extra else {}
    except ValueError:
        raise ConfigurationError(f"{name}: its extra is not JSON; correct it") from None
    if not isinstance(extra, dict):
        raise ConfigurationError(f"{name}: its extra is not a JSON object; correct it")
    unknown = sorted(extra.keys() - FIELDS.keys())
    if unknown:
        raise ConfigurationError(
            f"{name} has unknown fields in its extra: {', '.join(unknown)}; known are "
            f"{', '.join(FIELDS)}"
        )
    options: dict[str, Any] = {}
    for key, value in extra.items():
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        try:
            options[key] = OPTIONS[key].kind.read(value)
        except ValueError as error:
            raise ConfigurationError(f"{name}: the field {key} must be {error}") from None
    return options


def _base_url(connection: Any, name: str) -> str | None:
    """The address from host, port and schema, into which Airflow splits a URI."""
    host = (connection.host or "").strip()
    if not host:
        return None
    path = str(connection.schema or "").strip("/")
    url = host if "://" in host else f"https://{host}"
    if connection.port:
        try:
            parts = urlsplit(url)
            given = parts.port
        except ValueError:
            raise ConfigurationError(f"{name}: its host is not the address of a service") from None
        if given is None:
            url = parts._replace(netloc=f"{parts.netloc}:{connection.port}").geturl()
    return f"{url.rstrip('/')}/{path}" if path else url


def _password_of(proxy: str | None) -> str | None:
    if proxy is None:
        return None
    try:
        password = urlsplit(proxy).password
    except ValueError:
        return proxy
    return None if password is None else unquote(password)
