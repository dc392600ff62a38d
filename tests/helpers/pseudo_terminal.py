"""A command under a pseudo-terminal, as a person sees it."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers.command_line import COMMAND, SECONDS

__all__ = ["Shown", "each_on_terminal", "on_terminal"]

END = "\x1e"
EACH = f"""
import json, sys
from backread.cli.app import run
for arguments in json.loads(sys.argv[1]):
    code = run(arguments)
    print(end={END!r} + str(code) + {END!r}, flush=True)
"""


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
    command = [*COMMAND, *map(str, arguments)]
    return _shown(command, environment, cwd=cwd, stderr=stderr, typed=typed)


def each_on_terminal(
    commands: Sequence[Sequence[object]], *, cwd: Path, **environment: str
) -> list[Shown]:
    """Runs command lines in one process, which takes less time than a process for each."""
    lines = json.dumps([[str(each) for each in arguments] for arguments in commands])
    shown = _shown([sys.executable, "-c", EACH, lines], environment, cwd=cwd)
    *parts, rest = shown.text.split(END)
    assert (shown.code, rest, len(parts)) == (0, "", 2 * len(commands)), shown.text
    return [Shown(int(code), text) for text, code in zip(parts[::2], parts[1::2], strict=True)]


def _shown(
    command: Sequence[str],
    environment: dict[str, str],
    *,
    cwd: Path | None = None,
    stderr: int | None = None,
    typed: str | None = None,
) -> Shown:
    import pty

    terminal, end = pty.openpty()
    if typed:
        os.write(terminal, typed.encode())
    with subprocess.Popen(
        command,
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
