"""The command ``doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from backread.cli.arguments import folders
from backread.cli.connection import Connection, with_connection
from backread.cli.doctor.findings import Findings
from backread.cli.doctor.installation import check_installation
from backread.cli.doctor.mirror import check_mirror
from backread.cli.doctor.network import check_network
from backread.cli.doctor.service import check_clock, check_service
from backread.cli.doctor.settings import check_settings
from backread.cli.paths import folder_to_write

__all__ = ["doctor"]

PATIENCE = 10.0
"""The most seconds for each step of the network."""


@with_connection
def doctor(
    connection: Connection,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            parser=folder_to_write,
            autocompletion=folders,
            show_default=False,
            help="A mirror's folder, to check that too.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as one line of JSON.")
    ] = False,
) -> None:
    """Checks the installation, the settings, the way to the service, the clock, and a mirror.

    Sends two GET requests at most: for one user, and for a user that does not exist; a proxy gets
    one CONNECT more. The secret is never shown. The exit code is 0 if nothing is wrong, else that
    of the first problem.
    """
    findings = Findings(as_json=as_json)
    check_installation(findings)
    client = check_settings(findings, connection)
    if client is not None:
        with client:
            timeout = min(client._options["timeout"] or PATIENCE, PATIENCE)
            hasty = client.with_options(
                timeout=timeout, deadline=2 * timeout, max_retries=0, outage_patience=0
            )
            is_reachable = check_network(findings, client, connection.proxy(), timeout)
            if is_reachable and check_service(findings, hasty):
                check_clock(findings, hasty)
    if folder is not None:
        check_mirror(findings, folder)
    findings.end()
    if findings.exit_code:
        raise typer.Exit(findings.exit_code)
