"""``mock``: the service, faked, on a port of this machine until it is stopped."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Annotated

import typer

from backread.cli.exits import UnusableArgumentError

__all__ = ["mock", "parse_range"]


def mock(
    users: Annotated[int, typer.Option("--users", min=0, help="How many users.")] = 100,
    messages: Annotated[
        str,
        typer.Option("--messages", metavar="MIN:MAX", help="How many messages a user has."),
    ] = "0:40",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Which world.")] = 0,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Where; 0 takes a free one.")
    ] = 0,
    port_file: Annotated[
        Path | None,
        typer.Option(
            "--port-file", metavar="FILE", help="Written with the port once it can be reached."
        ),
    ] = None,
) -> None:
    """Serves a fake of the service on loopback until Ctrl-C, and prints how to reach it.

    The lines on stdout are for a shell: they set the variables that the other commands read.
    """
    from backread.testing import MockServer, World

    world = World(seed=seed, users=users, messages_per_user=parse_range(messages))
    stopped = Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    # Ctrl-C is how this command is meant to end, so it is no failure.
    held = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        with MockServer(world, port=port) as server:
            if port_file is not None:
                _write_whole(port_file, f"{server.port}\n")
            sys.stdout.write(
                f"export BACKREAD_BASE_URL={server.url}\n"
                f"export BACKREAD_API_SECRET={server.secret}\n"
                f"export BACKREAD_VENDOR={server.vendor}\n"
            )
            sys.stdout.flush()
            # Waiting in slices, because a signal does not end a wait on Windows.
            while not stopped.wait(0.5):
                pass
    finally:
        if port_file is not None:
            with suppress(OSError):
                port_file.unlink(missing_ok=True)
        for each, handler in held.items():
            signal.signal(each, handler)


def parse_range(text: str) -> tuple[int, int]:
    """``MIN:MAX`` as two numbers; `UnusableArgumentError` for anything else."""
    low, colon, high = text.partition(":")
    if not (colon and low.isdecimal() and high.isdecimal() and int(low) <= int(high)):
        raise UnusableArgumentError(
            f"--messages is MIN:MAX with MIN <= MAX, such as 0:40, not {text!r}"
        )
    return int(low), int(high)


def _write_whole(path: Path, text: str) -> None:
    # Whoever waits for the file must not find it half-written.
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise UnusableArgumentError(
            f"--port-file {path} cannot be written: {error.strerror}; name another file"
        ) from None
