"""``probe``: measures undocumented behaviour of the service."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from backread._client.arguments import PROBE_REQUESTS, PROBE_SAMPLE
from backread.cli.arguments import (
    TableOrJson,
    file_to_read,
    file_to_write,
    value,
    with_document,
)
from backread.cli.connection import Connection, with_connection
from backread.cli.exits import ServiceMovedError, UnusableArgumentError
from backread.cli.paths import check_writable, written
from backread.cli.stderr import say
from backread.cli.text import escaped, plain, plain_lines

if TYPE_CHECKING:
    from backread.profile import Difference, ServiceProfile


@with_connection
@with_document(TableOrJson)
def probe(
    connection: Connection,
    as_json: bool,
    sample: Annotated[
        int, value("NUMBER", "How many users' messages to read.", min=0)
    ] = PROBE_SAMPLE,
    max_requests: Annotated[
        int, value("NUMBER", "The maximum number of requests, including retries.", min=1)
    ] = PROBE_REQUESTS,
    against: Annotated[
        Path | None,
        file_to_read("An earlier profile: prints the differences, and exits with 8 for any."),
    ] = None,
    save: Annotated[Path | None, file_to_write("Also write the profile here, as JSON.")] = None,
) -> None:
    """Measures undocumented behaviour of the service.

    The result contains no data, address or secret.

    Examples:
        backread probe --save profile.json
        backread probe --against profile.json          # 8 if it differs
    """
    earlier = None if against is None else read_profile(against)
    if save is not None:
        check_writable("--save", save)
    with connection.client() as client:
        say(
            f"at most {max_requests:,} request{'' if max_requests == 1 else 's'} will be sent, all "
            "of them GET; one of them has a made-up secret",
            named=False,
        )
        profile = client.probe(max_requests=max_requests, sample=sample)
    differences = [] if earlier is None else earlier.differences(profile)
    try:
        if save is not None:
            with written("--save", save) as file:
                file.write(f"{profile.to_json(indent=2)}\n".encode())
    finally:
        # It cost requests, so it is shown even if it cannot be saved.
        if earlier is None:
            shown = escaped(profile.to_json(indent=2)) if as_json else plain_lines(str(profile))
            sys.stdout.write(f"{shown}\n")
        else:
            sys.stdout.write(_differences(differences, as_json))
    if earlier is None:
        return
    measured = f"{against}, measured on {earlier.measured_at:%Y-%m-%d}"
    if differences:
        count = f"{len(differences)} finding{'' if len(differences) == 1 else 's'}"
        raise ServiceMovedError(
            f"the service differs from {measured}: {count} above; if this is intended, probe "
            "again and store the new profile"
        )
    say(f"the service matches {measured}", named=False)


def read_profile(path: Path) -> ServiceProfile:
    """The profile in a file."""
    from backread.profile import ServiceProfile

    try:
        return ServiceProfile.from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnusableArgumentError(
            f"{path} cannot be read: {error.strerror}; name a file that backread probe --save wrote"
        ) from None
    except ValueError as error:
        raise UnusableArgumentError(f"{path}: {error}") from None


def _differences(differences: Sequence[Difference], as_json: bool) -> str:
    if not as_json:
        return "".join(f"{plain(str(each))}\n" for each in differences)
    found = [{"path": each.path, "text": str(each)} for each in differences]
    return escaped(json.dumps(found, indent=2, ensure_ascii=False)) + "\n"
