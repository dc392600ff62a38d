"""A command under a pseudo-terminal, as a person sees it."""

import contextlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from helpers.command_line import COMMAND, SECONDS

__all__ = ["Shown", "on_terminal"]


@dataclass(frozen=True)
class Shown:
    """How a command ended, and what the terminal got of it."""

    code: int
    text: str


def on_terminal(
    *arguments: object,
    cwd: Path | None = None,
    stderr: int | None = None,
    typed: str | None = None,
    **environment: str,
) -> Shown:
    """Runs one command line; stdout and stderr are the terminal, unless `stderr` says otherwise.

    So is stdin if something is ``typed`` there, be it an empty text.
    """
    import pty

    terminal, end = pty.openpty()
    if typed:
        os.write(terminal, typed.encode())
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL if typed is None else end,
        stdout=end,
        stderr=end if stderr is None else stderr,
    ) as process:
        os.close(end)
        written = _all_of(terminal)
        code = process.wait(SECONDS)
    # The terminal itself makes "\r\n" of a line end.
    return Shown(code, written.decode().replace("\r\n", "\n"))


def _all_of(terminal: int) -> bytes:
    written = b""
    # Linux reports the end of a terminal as an error.
    with contextlib.suppress(OSError):
        while read := os.read(terminal, 65_536):
            written += read
    os.close(terminal)
    return written
