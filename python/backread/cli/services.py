"""The named services of the config file, for ``--service NAME``.

The file is private to its owner, as the secrets' files are that it names. A service has its own
address and secret: nothing of it comes from the ``BACKREAD_`` variables, so a secret in the
environment is never sent to the address of a file.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from backread._client.option_kinds import FILE
from backread._client.options import ARGUMENTS
from backread._client.secret import read_secret_file
from backread._files.access import RefusedFileError
from backread._files.paths import local_path, shown
from backread._files.private import read_private_file
from backread.cli.exits import UnusableArgumentError
from backread.errors import BackreadError, ConfigurationError

__all__ = [
    "CONFIG_VARIABLE",
    "NamedService",
    "complete_service",
    "config_file",
    "find_service",
    "read_services",
]

CONFIG_VARIABLE = "BACKREAD_CONFIG"

MOST_BYTES = 2**16
"""Of the config file; tomllib takes minutes for some texts of a megabyte."""

REQUIRED = ("base_url", "vendor", "secret_file")
OPTIONS = {
    name: option
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

    def secret(self) -> str:
        """The secret in its file.

        Raises:
            UnusableArgumentError: If the file cannot be read, or every user may read it.
        """
        try:
            return read_secret_file(self.secret_file, f"{self}: secret_file", private=True)
        except ConfigurationError as error:
            raise UnusableArgumentError(str(error)) from None

    def __str__(self) -> str:
        return f"the service {self.name} of {shown(self.config)}"


def config_file() -> Path:
    """The path of the config file: that of ``BACKREAD_CONFIG``, or the platform's.

    Raises:
        UnusableArgumentError: If the variable names no local path.
    """
    named = os.environ.get(CONFIG_VARIABLE)
    if not named:
        return Path(typer.get_app_dir("backread")) / "config.toml"
    try:
        return local_path(named, "copy it to this machine")
    except ValueError as error:
        raise UnusableArgumentError(f"{CONFIG_VARIABLE}: {error}") from None


def read_services() -> dict[str, NamedService]:
    """All services of the config file by name; none if there is no such file.

    Raises:
        UnusableArgumentError: If the file is not private, is not TOML, or a service is incomplete.
    """
    path = config_file()
    try:
        content = read_private_file(path, MOST_BYTES + 1, owner_only=True)
    except FileNotFoundError:
        return {}
    except RefusedFileError as error:
        raise UnusableArgumentError(str(error)) from None
    except OSError as error:
        raise UnusableArgumentError(
            f"the config file {shown(path)} cannot be read: {error.strerror}"
        ) from None
    if len(content) > MOST_BYTES:
        raise UnusableArgumentError(
            f"the config file {shown(path)} has more than {MOST_BYTES:,} bytes; shorten it"
        )
    try:
        document = tomllib.loads(content.decode("utf-8"))
    except RecursionError:
        raise UnusableArgumentError(
            f"{shown(path)} is nested too deeply; begin each service with [services.NAME]"
        ) from None
    except ValueError as error:
        # Both UnicodeDecodeError and TOMLDecodeError.
        raise UnusableArgumentError(f"{shown(path)} is not TOML: {error}; correct it") from None
    services = document.pop("services", {})
    if document or not isinstance(services, dict):
        other = ", ".join(document) or "services"
        raise UnusableArgumentError(
            f"{shown(path)} has settings that are not of a service: {other}; begin each service "
            "with [services.NAME]"
        )
    return {name: _service(name, path, given) for name, given in services.items()}


def find_service(name: str) -> NamedService:
    """The service with this name.

    Raises:
        UnusableArgumentError: If there is none, or the config file cannot be used.
    """
    services = read_services()
    if name in services:
        return services[name]
    path = config_file()
    if services:
        raise UnusableArgumentError(
            f"{shown(path)} has no service {name}; it has: {', '.join(services)}"
        )
    if path.exists():
        raise UnusableArgumentError(f"{shown(path)} has no services; add to it: {_example(name)}")
    raise UnusableArgumentError(
        f"--service {name} needs the config file {shown(path)}, which does not exist; create it "
        f"with mode 0600 and: {_example(name)}"
    )


def complete_service(incomplete: str) -> list[str]:
    """The names that begin with a text, for the shell's completion."""
    try:
        return [name for name in read_services() if name.startswith(incomplete)]
    except (UnusableArgumentError, BackreadError):
        return []


def _example(name: str) -> str:
    return EXAMPLE.replace("NAME", name if name.replace("-", "").isalnum() else "NAME")


def _beside(path: Path, file: str, what: str) -> Path:
    """The path in a setting; a relative one begins at the config file's folder."""
    try:
        local = local_path(file, "copy it to this machine")
    except ValueError as error:
        raise UnusableArgumentError(f"{what}: {error}") from None
    # Not the path of "./~", which begins at the working directory.
    return local if file.startswith("~") else path.absolute().parent / file


def _service(name: str, path: Path, given: object) -> NamedService:
    what = f"the service {name} of {shown(path)}"
    if not isinstance(given, dict):
        raise UnusableArgumentError(f"{what} is not a table; begin it with [services.{name}]")
    if "api_secret" in given:
        raise UnusableArgumentError(
            f"{what} has an api_secret; put the secret in a file of mode 0600, and name that in "
            "secret_file"
        )
    if unknown := sorted(given.keys() - {*OPTIONS, "secret_file"}):
        raise UnusableArgumentError(
            f"{what} has unknown settings: {', '.join(unknown)}; known are secret_file, "
            f"{', '.join(OPTIONS)}"
        )
    if missing := [each for each in REQUIRED if not given.get(each)]:
        raise UnusableArgumentError(f"{what} lacks {', '.join(missing)}; add that to its table")
    values: dict[str, Any] = {}
    for key, value in given.items():
        kind = FILE if key == "secret_file" else OPTIONS[key].kind
        try:
            values[key] = kind.read(value)
        except ValueError as error:
            raise UnusableArgumentError(f"{what}: {key} must be {error}") from None
        if kind is FILE:
            values[key] = _beside(path, values[key], f"{what}: {key}")
    return NamedService(name, path, values.pop("secret_file"), values)
