"""``mock``: serves a fake of the service on a local port until it is stopped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from backread._client.secret import read_secret_file
from backread.cli.arguments import (
    PortOption,
    WorldUntil,
    file_to_read,
    file_to_write,
    value,
)
from backread.cli.exits import UnusableArgumentError, ended_by_signal
from backread.cli.paths import check_writable, written
from backread.cli.stderr import say

if TYPE_CHECKING:
    from datetime import datetime

    from backread.testing import World


def mock(
    users: Annotated[int | None, value("NUMBER", "Users.", min=0, show_default="100")] = None,
    messages: Annotated[
        str | None, value("MIN:MAX", "Messages per user, or a number.", show_default="0:40")
    ] = None,
    seed: Annotated[
        int | None, value("NUMBER", "Seed of the generated rows.", min=0, show_default="0")
    ] = None,
    until: WorldUntil = None,
    world: Annotated[Path | None, file_to_read("Rows as JSON lines, one user per line.")] = None,
    dialect: Annotated[
        str | None,
        value(
            "TEXT",
            "A bundle (documented, lenient, hostile) and switches: 'hostile order=newest'.",
            show_default="documented",
        ),
    ] = None,
    fault: Annotated[
        list[str] | None,
        value("TEXT", "A fault: 'users offset=0: status(429, retry_after=1) x2'. Repeatable."),
    ] = None,
    rate: Annotated[str | None, value("TEXT", "A rate limit: '10/s burst=20'.")] = None,
    port: PortOption = 0,
    secret_file: Annotated[
        Path | None, file_to_read("The secret that requests must carry, else a random one.")
    ] = None,
    port_file: Annotated[
        Path | None, file_to_write("Gets the port once the server accepts requests.")
    ] = None,
) -> None:
    """Serves a fake of the service until Ctrl-C.

    It listens on loopback and prints how to reach it. The lines on stdout are for a shell: they set
    the variables that the other commands read. The URL on stderr is for a browser: a page that
    shows the requests and adds faults.

    Examples:
        backread mock --users 5000 --seed 7
        backread mock --dialect hostile --port 8080
    """
    from backread.testing import MockServer

    made = _world(world, users=users, messages=messages, seed=seed, until=until)
    secret = None if secret_file is None else read_secret_file(secret_file, "--secret-file")
    if port_file is not None:
        check_writable("--port-file", port_file)
    with (
        ended_by_signal() as wait_for_end,
        MockServer(
            made, port=port, secret=secret, dialect=dialect, faults=fault or (), rate=rate
        ) as server,
    ):
        variables = {
            "BACKREAD_BASE_URL": server.url,
            "BACKREAD_API_SECRET": server.secret,
            "BACKREAD_VENDOR": server.vendor,
        }
        sys.stdout.writelines(f"{_assignment(*each)}\n" for each in variables.items())
        sys.stdout.flush()
        say(f"the inspector is at {server.inspector_url}")
        # Last, so that a program that waits for the file can read the lines above.
        with _port_told(port_file, server.port):
            wait_for_end()


def _assignment(name: str, value: str) -> str:
    """The line for sh, bash, zsh and fish, or on Windows for PowerShell."""
    if os.name == "nt":
        return f"$env:{name} = '{value.replace(chr(39), chr(39) * 2)}'"
    return f"export {name}={quote(value)}"


def _world(
    file: Path | None,
    *,
    users: int | None,
    messages: str | None,
    seed: int | None,
    until: datetime | None,
) -> World:
    """The world of a file, or a generated one."""
    from backread.testing import World

    if file is None:
        return World(
            seed=0 if seed is None else seed,
            users=100 if users is None else users,
            messages_per_user=parse_range("0:40" if messages is None else messages),
            until=until,
        )
    made = {"--users": users, "--messages": messages, "--seed": seed, "--until": until}
    if given := [name for name, value in made.items() if value is not None]:
        raise UnusableArgumentError(
            f"--world {file} already has users and messages: leave out {', '.join(given)}"
        )
    try:
        return World.from_jsonl(file)
    except OSError as error:
        raise UnusableArgumentError(
            f"--world {file} cannot be read: {error.strerror}; name a file of JSON lines"
        ) from None
    except ValueError as error:
        raise UnusableArgumentError(f"--world is not a world: {error}") from None


def parse_range(text: str) -> tuple[int, int]:
    """``MIN:MAX``, or a number for both; `UnusableArgumentError` for anything else."""
    low, colon, high = text.partition(":")
    high = high if colon else low
    if not (low.isdecimal() and high.isdecimal() and int(low) <= int(high)):
        raise UnusableArgumentError(
            f"--messages is a number, or MIN:MAX with MIN <= MAX, such as 0:40, not {text!r}"
        )
    return int(low), int(high)


@contextmanager
def _port_told(path: Path | None, port: int) -> Iterator[None]:
    """Keeps the port in a file until the block ends."""
    if path is None:
        yield
        return
    with written("--port-file", path) as file:
        file.write(f"{port}\n".encode())
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
