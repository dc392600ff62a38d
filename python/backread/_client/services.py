"""The named services of the config file, for ``Client(service="shop")`` and ``--service shop``.

The file is private to its owner, as the secrets' files are that it names. A service has its own
address and secret: nothing of it comes from the ``BACKREAD_`` variables, so a secret in the
environment is never sent to the address of a file.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from backread._client.option_kinds import FILE
from backread._client.options import ARGUMENTS
from backread._client.secret import read_secret_file
from backread._files.access import RefusedFileError, read_private_file
from backread._files.paths import shown
from backread.errors import ConfigurationError

__tracebackhide__ = True

CONFIG_VARIABLE = "BACKREAD_CONFIG"

FOLDERS = {"win32": ("APPDATA", "~"), "darwin": ("", "~/Library/Application Support")}
"""For each platform, the variable that names the folder of settings, and the default."""

MOST_BYTES = 2**16
"""Of the config file; tomllib takes minutes for some texts of a megabyte."""

REQUIRED = ("base_url", "vendor", "secret_file")
OPTIONS = {
    name: option.kind
    for name, option in ARGUMENTS.items()
    if option.on_command_line and name != "api_secret"
}
"""The client's arguments that a service may set."""

EXAMPLE = (
    'services.NAME = {base_url = "https://chat.example.com/api", vendor = "example", '
    'secret_file = "NAME.secret"}'
)


@dataclass(frozen=True, slots=True)
class NamedService:
    """One service of the config file, checked, without its secret."""

    name: str
    config: Path
    """The file that it is in."""
    secret_file: Path
    options: dict[str, Any]
    """Arguments of a client, with ``base_url`` and ``vendor``."""

    def secret_for(self, base_url: str) -> str:
        """The secret in its file, for a client of this address.

        Raises:
            ConfigurationError: If the address has another origin than the service's own, or the
                file cannot be read, or every user may read it.
        """
        own = self.options["base_url"]
        if _origin(base_url) is None or _origin(base_url) != _origin(own):
            raise ConfigurationError(
                f"{self}: its secret is for {own} only; with a base_url of another origin, pass "
                "that service's api_secret or api_secret_file too"
            )
        return read_secret_file(self.secret_file, f"{self}: secret_file", private=True)

    def __str__(self) -> str:
        return f"the service {self.name} of {shown(self.config)}"


def config_file() -> Path:
    """The path of the config file: that of ``BACKREAD_CONFIG``, or the platform's.

    Raises:
        ConfigurationError: If the variable names no local path.
    """
    if named := os.environ.get(CONFIG_VARIABLE):
        return Path(FILE.check(CONFIG_VARIABLE, named))
    variable, default = FOLDERS.get(sys.platform, ("XDG_CONFIG_HOME", "~/.config"))
    folder = os.environ.get(variable) or os.path.expanduser(default)  # noqa: PTH111
    return Path(folder) / "backread" / "config.toml"


def read_services() -> dict[str, NamedService]:
    """All services of the config file by name; none if there is no such file.

    Raises:
        ConfigurationError: If the file is not private, is not TOML, or a service is incomplete.
    """
    path = config_file()
    try:
        content = read_private_file(path, MOST_BYTES + 1, owner_only=True)
    except FileNotFoundError:
        return {}
    except RefusedFileError as error:
        raise ConfigurationError(str(error)) from None
    except OSError as error:
        raise ConfigurationError(f"{shown(path)} cannot be read: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise ConfigurationError(f"{shown(path)} has more than {MOST_BYTES:,} bytes; shorten it")
    try:
        document = tomllib.loads(content.decode("utf-8"))
    except (RecursionError, ValueError) as error:
        # ValueError for both UnicodeDecodeError and TOMLDecodeError.
        raise ConfigurationError(
            f"{shown(path)} is not TOML: {error}; begin each service with [services.NAME]"
        ) from None
    services = document.pop("services", {})
    if document or not isinstance(services, dict):
        other = ", ".join(document) or "services"
        raise ConfigurationError(
            f"{shown(path)} has settings that are not of a service: {other}; begin each service "
            "with [services.NAME]"
        )
    return {name: _service(name, path, given) for name, given in services.items()}


def find_service(name: str) -> NamedService:
    """The service with this name.

    Raises:
        ConfigurationError: If there is none, or the config file cannot be used.
    """
    services = read_services()
    if name in services:
        return services[name]
    path = shown(config_file())
    if services:
        raise ConfigurationError(f"{path} has no service {name}; it has: {', '.join(services)}")
    example = EXAMPLE.replace("NAME", name if name.replace("-", "").isalnum() else "NAME")
    raise ConfigurationError(
        f"{path}, the config file, has no services or does not exist; create it with mode 0600 and "
        f"add: {example}"
    )


def _service(name: str, path: Path, given: object) -> NamedService:
    what = f"the service {name} of {shown(path)}"
    if not isinstance(given, dict):
        raise ConfigurationError(f"{what} is not a table; begin it with [services.{name}]")
    if unknown := sorted(given.keys() - {*OPTIONS, "secret_file"}):
        raise ConfigurationError(
            f"{what} has unknown settings: {', '.join(unknown)}; known are secret_file, "
            f"{', '.join(OPTIONS)}"
        )
    if missing := [each for each in REQUIRED if not given.get(each)]:
        raise ConfigurationError(f"{what} lacks {', '.join(missing)}; add that to its table")
    values: dict[str, Any] = {}
    for key, value in given.items():
        kind = OPTIONS.get(key, FILE)
        try:
            values[key] = kind.read(value)
        except ValueError as error:
            raise ConfigurationError(f"{what}: {key} must be {error}") from None
        if kind is FILE:
            file = kind.check(f"{what}: {key}", values[key])
            # A relative path begins at the config file's folder, also that of "./~".
            beside = str(path.absolute().parent / values[key])
            values[key] = file if values[key].startswith("~") else beside
    return NamedService(name, path, Path(values.pop("secret_file")), values)


def _origin(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port; None for an address that parsers may read differently."""
    if re.fullmatch(r"https?://[^\s@\\]+", url, re.IGNORECASE) is None:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return parts.scheme, parts.hostname or "", port
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by the client's rule."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
