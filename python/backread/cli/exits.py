"""The exit codes, and the line on stderr that says what failed and what to do.

=====  ========================================================================================
0      success; also ``browse`` and ``mock`` that a signal below ended
1      a package is not installed, or a bug in backread
2      usage or configuration: an option, an argument, a missing secret, a file, a taken port
3      the service has no such user or message, or no list of users at this address
4      the service refused the secret, or the secret may not read this
5      the network or the service failed, even after the retries, or the deadline passed
6      a response cannot be decoded, a strict walk proved nothing, or the messages of some users
       could not be read
7      the folder of a mirror or a landing cannot be used, or a mirror has no such user or message
8      a probe found differences from a stored profile
9      another process is writing to the mirror, such as a sync
129    SIGHUP: the terminal was closed
130    Ctrl-C
141    the reader closed the pipe (``| head``)
143    SIGTERM
=====  ========================================================================================
"""

from __future__ import annotations

import errno
import os
import re
import traceback
from collections.abc import Sequence
from pathlib import Path

from backread._client.options import ARGUMENTS
from backread._display.words import amount
from backread._files.access import NO_MORE_FILES
from backread._files.paths import shown
from backread.cli.stderr import say, say_lines
from backread.cli.usage import usage_text
from backread.errors import (
    AuthenticationError,
    BackreadError,
    ConfigurationError,
    DecodeError,
    IncompleteError,
    LandingError,
    MirrorBusyError,
    MirrorError,
    NotFoundError,
    PermissionDeniedError,
)

__all__ = [
    "FAULT",
    "INTERRUPTED",
    "MIRROR",
    "NOT_FOUND",
    "REFUSED",
    "SERVICE",
    "SIGNALLED",
    "USAGE",
    "ServiceMovedError",
    "UnreadListsError",
    "UnusableArgumentError",
    "exit_code",
    "is_full",
    "say_failure",
]

FAULT = 1
USAGE = 2
NOT_FOUND = 3
REFUSED = 4
SERVICE = 5
INCOMPLETE = 6
MIRROR = 7
MOVED = 8
BUSY = 9
SIGNALLED = 128
"""Plus the number of the signal, as in a shell."""
INTERRUPTED = 130
CLOSED_PIPE = 141

OPTIONS = {
    name: "--secret-file" if name == "api_secret" else "--" + name.replace("_", "-")
    for name, option in ARGUMENTS.items()
    if option.on_command_line
}
"""The option of the command for each argument that an error's text may name."""

TRACEBACK_VARIABLE = "BACKREAD_TRACEBACK"

NAMED = 20
"""The most users named in one line."""

# The first matching class decides, so subclasses come before their bases.
CODES: tuple[tuple[type[Exception], int], ...] = (
    (ConfigurationError, USAGE),
    (NotFoundError, NOT_FOUND),
    (AuthenticationError, REFUSED),
    (PermissionDeniedError, REFUSED),
    (DecodeError, INCOMPLETE),
    (IncompleteError, INCOMPLETE),
    (MirrorBusyError, BUSY),
    (MirrorError, MIRROR),
    (LandingError, MIRROR),
    (BackreadError, SERVICE),
    (ImportError, FAULT),
    (OSError, USAGE),
    (ValueError, USAGE),
)


class UnusableArgumentError(Exception):
    """Arguments that cannot be used; the message says what to change."""


class ServiceMovedError(Exception):
    """The service differs from its stored profile."""


class UnreadListsError(Exception):
    """The messages of some users could not be read; ``then`` says what to do."""

    def __init__(
        self, users: Sequence[int], users_without_id: int, refused: str, then: str
    ) -> None:
        parts = [refused] if refused else []
        if users:
            named = ", ".join(map(str, users[:NAMED]))
            more = f" and {len(users) - NAMED} more" if len(users) > NAMED else ""
            lists = amount(len(users), "list")
            parts.append(f"{lists} of messages could not be read, of user {named}{more}")
        if users_without_id:
            count = amount(users_without_id, "user")
            parts.append(f"the messages of {count} without a usable id were not requested")
        super().__init__("; ".join([*parts, then]))


def exit_code(error: BaseException) -> int:
    """The exit code for the exception that ended a command."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError) and not isinstance(error, BackreadError):
        return CLOSED_PIPE
    # Typer's exceptions have their own code; their classes moved between its versions.
    code = getattr(error, "exit_code", None)
    if isinstance(code, int):
        return code
    if isinstance(error, UnusableArgumentError):
        return USAGE
    if isinstance(error, ServiceMovedError):
        return MOVED
    if isinstance(error, UnreadListsError):
        return INCOMPLETE
    return next((code for kind, code in CODES if isinstance(error, kind)), FAULT)


def is_full(error: OSError) -> bool:
    """Whether a write failed for lack of space: on the disk, in a quota, or in one file."""
    return error.errno in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", None))


def say_failure(error: BaseException) -> None:
    """Writes the line for a failure; nothing for a closed pipe or success."""
    code = exit_code(error)
    if code in (0, CLOSED_PIPE):
        return
    if os.environ.get(TRACEBACK_VARIABLE):
        say_lines("".join(traceback.format_exception(error)).rstrip("\n"))
    say(_text(error, code))


def _text(error: BaseException, code: int) -> str:
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "stopped by Ctrl-C"
    if (usage := usage_text(error)) is not None:
        return usage
    # The path in the text of the other two may contain an argument's name.
    if isinstance(error, BackreadError) and not isinstance(error, MirrorError | LandingError):
        return _with_options(str(error))
    if isinstance(error, OSError) and not isinstance(error, BackreadError) and is_full(error):
        # Errors about files have a filename by now, so an error without one is about stdout.
        return (
            f"{error.filename or 'stdout'} cannot be written: {error.strerror}; free some space, "
            "or write elsewhere"
        )
    if isinstance(error, OSError) and not isinstance(error, BackreadError):
        if error.errno == errno.EMFILE:
            return NO_MORE_FILES
        if isinstance(error.filename, str):
            return f"{shown(error.filename)} cannot be used: {error.strerror}; {_remedy(error)}"
        if isinstance(error, FileNotFoundError) and not _is_somewhere():
            return "the current folder was removed; change to another one"
    if isinstance(error, RuntimeError) and "home directory" in str(error):
        # Typer, which writes the completion there.
        return "the home folder of this user is unknown; set HOME"
    known = isinstance(
        error,
        (
            BackreadError,
            UnusableArgumentError,
            ServiceMovedError,
            UnreadListsError,
            OSError,
            ValueError,
            ImportError,
        ),
    )
    if known and str(error):
        return str(error)
    return (
        f"bug in backread: {type(error).__name__}: {error}; please report it with the output of "
        f"{TRACEBACK_VARIABLE}=1"
    )


def _remedy(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "change its permissions or those of the folders above it, or name another path"
    return "name another path"


def _is_somewhere() -> bool:
    try:
        Path.cwd()
    except OSError:
        return False
    return True


def _with_options(text: str) -> str:
    """The error of a client with the options of the command instead of Python's arguments."""
    text = text.replace("strict=True", "--strict")
    # Either may be meant: the option's name alone would say that it was given.
    text = re.sub(r" \((BACKREAD_[A-Z_]+)\)", r" or \1", text)
    named = set()
    for name, option in OPTIONS.items():
        # A single word may be meant as such: "the proxy".
        pattern = rf"\b{name}\b" if "_" in name else rf"\b{name}(?= (\(|or )BACKREAD_)"
        text, count = re.subn(rf"(?<!-){pattern}(=\w+)?", option, text)
        if count:
            named.add(name)
    more = [
        option
        for name, option in OPTIONS.items()
        if name not in named and re.search(rf"(?<!-)\b{name}\b", text)
    ]
    return f"{text}; see {', '.join(more)}" if more else text
