"""``doctor``: checks the settings, the way to the service, its answer, and a mirror."""

from __future__ import annotations

import os
from pathlib import Path
from platform import platform, python_version
from typing import TYPE_CHECKING, Annotated

import typer

from backread._client.options import ARGUMENTS
from backread._client.secret import SECRET_VARIABLE
from backread._client.services import find_service
from backread._files.paths import shown
from backread.cli.arguments import TextOrJson, argument, with_document
from backread.cli.connection import Connection, with_connection
from backread.cli.doctor.findings import Findings
from backread.cli.exits import USAGE, UnusableArgumentError
from backread.cli.paths import folder_to_write
from backread.errors import ConfigurationError

if TYPE_CHECKING:
    from backread._client.client import Client

__all__ = ["doctor"]

PATIENCE = 10.0
"""The timeout in seconds for each step of the network check."""

PREFIX = "BACKREAD_"
SETTINGS = {name for name, option in ARGUMENTS.items() if option.on_command_line}
SETTINGS |= {"secret_file", "config", "traceback", "headers"}
SERVICE = {"base_url", "api_secret", "vendor", "secret_file"}
"""The settings that say which service to read."""

TRY_IT = (
    "to read a service, set BACKREAD_BASE_URL, BACKREAD_VENDOR and BACKREAD_API_SECRET; to try "
    "backread without one, run: backread demo"
)


@with_connection
@with_document(TextOrJson)
def doctor(
    connection: Connection,
    as_json: bool,
    folder: Annotated[
        Path | None, argument("FOLDER", "A mirror to check, too.", parser=folder_to_write)
    ] = None,
) -> None:
    """Checks the settings, the way to the service, its answer, the clock, and a mirror.

    Sends two GET requests at most: for one user, and for a user that does not exist. The secret is
    never shown. The exit code is 0 if nothing is wrong, else that of the first problem.

    Examples:
        backread doctor
        backread doctor chats --json
    """
    # Imports the mirror and the network only here: other commands start without them.
    from backread.cli.doctor.mirror import check_mirror
    from backread.cli.doctor.network import check_connection, check_service

    findings = Findings(as_json=as_json)
    client = check_settings(findings, connection)
    if client is not None:
        with client:
            timeout = min(client._options["timeout"] or PATIENCE, PATIENCE)
            if check_connection(findings, client, connection.proxy(), timeout):
                hasty = client.with_options(timeout=timeout, max_retries=0, outage_patience=0)
                check_service(findings, hasty)
    if folder is not None:
        check_mirror(findings, folder)
    findings.end()
    if findings.exit_code:
        raise typer.Exit(findings.exit_code)


def check_settings(findings: Findings, connection: Connection) -> Client | None:
    """A client for the service that the settings name; None if there is none, or it is wrong."""
    from backread import __version__

    findings.begin("configured")
    findings.ok(f"backread {__version__}, Python {python_version()}, {platform()}")
    named = {name.removeprefix(PREFIX).lower() for name in os.environ if name.startswith(PREFIX)}
    if strange := ", ".join(f"{PREFIX}{name.upper()}" for name in sorted(named - SETTINGS)):
        findings.warning(f"no setting of backread: {strange}", "correct the name, or leave it out")
    sources = connection.sources
    if not (connection.service or named & SERVICE or sources.keys() & SERVICE):
        findings.warning("no service is configured", TRY_IT)
        return None
    secret_file = connection.secret_file
    try:
        client = connection.client()
        if connection.service:
            service = find_service(connection.service)
            secret_file = service.secret_file
            sources = dict.fromkeys(SERVICE, str(service))
    except (ConfigurationError, UnusableArgumentError) as error:
        findings.problem(str(error), "", USAGE)
        return None
    findings.ok(f"base_url {client.base_url} ({sources['base_url']})")
    findings.ok(f"vendor {client.vendor} ({sources['vendor']})")
    source = sources.get("secret_file", SECRET_VARIABLE)
    mode = 0 if secret_file is None or os.name == "nt" else secret_file.stat().st_mode & 0o777
    if secret_file is not None and mode & 0o077:
        text = f"other users may read the API secret in {shown(secret_file)} ({source})"
        findings.warning(f"{text}, mode {mode:04o}", f"run: chmod 600 {shown(secret_file)}")
    else:
        findings.ok(f"the API secret is set ({source})")
    return client
