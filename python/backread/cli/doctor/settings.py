"""Checks the settings: which there are, and where they come from."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from backread._client.options import ARGUMENTS
from backread._client.secret import SECRET_VARIABLE
from backread._client.services import CONFIG_VARIABLE, config_file, find_service, read_services
from backread._files.paths import shown
from backread.cli.connection import Connection
from backread.cli.doctor.findings import Findings
from backread.cli.exits import USAGE, UnusableArgumentError
from backread.errors import ConfigurationError

if TYPE_CHECKING:
    from backread._client.client import Client

__all__ = ["check_settings"]

SERVICE = ("base_url", "api_secret", "vendor")

SECRET_FILE_VARIABLE = "BACKREAD_SECRET_FILE"

OTHER_VARIABLES = ("SECRET_FILE", "CONFIG", "TRACEBACK")
"""The variables that are not named after an argument of a client."""

TRY_IT = (
    "to read a service, set BACKREAD_BASE_URL, BACKREAD_VENDOR and BACKREAD_API_SECRET; to try "
    "backread without one, run: backread demo"
)


def check_settings(findings: Findings, connection: Connection) -> Client | None:
    """A client for the service that the settings name; None if there is none, or it is wrong."""
    findings.begin("configured")
    _check_config_file(findings, connection)
    _check_variables(findings)
    if not connection.service and not _is_named(connection):
        findings.warning("no service is configured", TRY_IT)
        return None
    secret_file = connection.secret_file
    secret_from = ""
    if secret_file is not None:
        secret_from = f"{shown(secret_file)}, from {connection.sources['secret_file']}"
    try:
        if connection.service:
            named = find_service(connection.service)
            findings.ok(f"--service {connection.service} is used, of {shown(named.config)}")
            secret_file, secret_from = named.secret_file, shown(named.secret_file)
        client = connection.client()
    except (ConfigurationError, UnusableArgumentError) as error:
        findings.problem(str(error), "", USAGE)
        return None
    findings.ok(f"base_url {client.base_url} ({_source(connection, 'base_url')})")
    findings.ok(f"vendor {client.vendor} ({_source(connection, 'vendor')})")
    if secret_file is not None:
        _check_secret_file(findings, secret_file, secret_from)
        if _source(connection, "secret_file") == SECRET_FILE_VARIABLE and (
            not os.environ.get(SECRET_VARIABLE)
        ):
            findings.ok(
                f"only the command reads {SECRET_FILE_VARIABLE}: Client() in Python needs "
                f"{SECRET_VARIABLE}"
            )
    else:
        findings.ok(f"the API secret is set ({SECRET_VARIABLE})")
    others = [
        f"{name} ({_source(connection, name)})"
        for name in connection.sources
        if name not in ("base_url", "vendor", "secret_file")
    ]
    if others:
        findings.ok(f"other options: {', '.join(others)}")
    return client


def _is_named(connection: Connection) -> bool:
    """Whether any setting says which service to read."""
    given = (*SERVICE, "secret_file")
    return any(name in connection.sources or os.environ.get(_variable(name)) for name in given)


def _check_config_file(findings: Findings, connection: Connection) -> None:
    try:
        path, services = config_file(), read_services()
    except ConfigurationError as error:
        # With --service, the settings are a problem anyway.
        if connection.service is None:
            findings.warning(str(error), "this concerns --service only")
        return
    if services:
        findings.ok(f"services in {shown(path)}: {', '.join(services)}")
    elif os.environ.get(CONFIG_VARIABLE) and not path.exists():
        findings.warning(
            f"{CONFIG_VARIABLE} names {shown(path)}, which does not exist",
            "correct it, or leave it out",
        )


def _check_variables(findings: Findings) -> None:
    read = (name for name, option in ARGUMENTS.items() if option.on_command_line)
    known = {_variable(name) for name in (*read, *OTHER_VARIABLES)}
    strange = sorted(
        name for name in os.environ if name.startswith("BACKREAD_") and name not in known
    )
    if strange:
        findings.warning(
            f"no setting of backread: {', '.join(strange)}", "correct the name, or leave it out"
        )


def _check_secret_file(findings: Findings, path: Path, source: str) -> None:
    if os.name == "nt":
        findings.ok(f"the API secret is in {source}")
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    text = f"the API secret is in {source} (mode {mode:04o})"
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        findings.warning(f"{text}: other users may read it", f"run: chmod 600 {shown(path)}")
    else:
        findings.ok(text)


def _source(connection: Connection, name: str) -> str:
    if name in connection.sources:
        return connection.sources[name]
    return "the config file" if connection.service else _variable(name)


def _variable(name: str) -> str:
    return f"BACKREAD_{name.upper()}"
