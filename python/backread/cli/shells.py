"""Lines that set environment variables, for each common shell."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from shlex import quote

from backread.cli.exits import UnusableArgumentError

__all__ = ["Shell", "assignments", "other_shell"]

# PowerShell ends a text at each of these (about_Quoting_Rules); doubled, they stand for themselves.
POWERSHELL_QUOTES = re.compile("(['\u2018\u2019\u201a\u201b])")


class Shell(StrEnum):
    """The values of ``--shell``."""

    SH = "sh"
    FISH = "fish"
    POWERSHELL = "powershell"
    CMD = "cmd"


def assignments(shell: Shell | None, variables: Mapping[str, str]) -> str:
    """One line per variable; for sh, or on Windows PowerShell, if no shell is named.

    Raises:
        UnusableArgumentError: If a value cannot be written for that shell.
    """
    line = LINES[shell or (Shell.POWERSHELL if os.name == "nt" else Shell.SH)]
    return "".join(f"{line(name, value)}\n" for name, value in variables.items())


def other_shell() -> str | None:
    """The option for another shell that the user may have, in words."""
    if os.name == "nt":
        return "for cmd.exe: --shell cmd"
    # The login shell: scripts have it too, so it is a hint, and the lines are for sh.
    name = os.path.basename(os.environ.get("SHELL", ""))  # noqa: PTH119
    if name in ("fish", "pwsh"):
        return f"for {name}: --shell {'powershell' if name == 'pwsh' else name}"
    return None


def _fish(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"set -gx {name} '{escaped}'"


def _powershell(name: str, value: str) -> str:
    doubled = POWERSHELL_QUOTES.sub(r"\1\1", value)
    return f"$env:{name} = '{doubled}'"


def _cmd(name: str, value: str) -> str:
    # Nothing escapes these on a typed line.
    if found := sorted(set(value) & set('%!"')):
        raise UnusableArgumentError(
            f"--shell cmd: {name} has {' '.join(found)}, which cmd.exe would change; use another "
            "shell, or another secret"
        )
    return f'set "{name}={value}"'


LINES: dict[Shell, Callable[[str, str], str]] = {
    Shell.SH: lambda name, value: f"export {name}={quote(value)}",
    Shell.FISH: _fish,
    Shell.POWERSHELL: _powershell,
    Shell.CMD: _cmd,
}
