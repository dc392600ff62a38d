"""``probe``: what the interface leaves open, measured."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from backread._probe import MOST_REQUESTS, SAMPLE
from backread.cli.connection import Connection, with_connection

__all__ = ["probe"]


class ProfileFormat(StrEnum):
    """The values of ``--format``."""

    TABLE = "table"
    JSON = "json"


@with_connection
def probe(
    connection: Connection,
    shape: Annotated[
        ProfileFormat, typer.Option("--format", help="A table, or the profile as JSON.")
    ] = ProfileFormat.TABLE,
    sample: Annotated[
        int, typer.Option("--sample", min=0, metavar="NUMBER", help="Users to read messages of.")
    ] = SAMPLE,
    max_requests: Annotated[
        int,
        typer.Option(
            "--max-requests", min=1, metavar="NUMBER", help="Requests at the most, retries counted."
        ),
    ] = MOST_REQUESTS,
) -> None:
    """Measures what the interface leaves open; the result has no data, address or secret in it."""
    with connection.client() as client:
        sys.stderr.write(
            f"at most {max_requests:,} request{'' if max_requests == 1 else 's'} will be sent, all "
            "of them GET; one of them has a made-up secret\n"
        )
        sys.stderr.flush()
        profile = client.probe(max_requests=max_requests, sample=sample)
    text = str(profile) if shape is ProfileFormat.TABLE else profile.to_json(indent=2)
    sys.stdout.write(f"{text}\n")
