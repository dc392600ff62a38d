"""How a command ends: its exit code, a line on stderr that says what failed, and signals.

=====  ========================================================================================
0      success; also ``browse`` and ``mock`` that a signal below ended
1      a package is not installed, or a bug in backread
2      usage or configuration: an option, an argument, a missing secret, a wrong vendor, a file,
       a taken port
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
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType

from backread._client.listing import unread_lists
from backread._client.options import ARGUMENTS
from backread._display.words import amount
from backread._files.access import NO_MORE_FILES
from backread._files.paths import shown
from backread.cli.stderr import say, say_lines
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

NOT_ACCEPTABLE = 406
"""The status for a media type that the service does not have, so for a wrong vendor."""

NAMED_ALIKE = (
    *(*ARGUMENTS, "since", "until", "timezone", "opening_hours", "memory_limit"),
    *("raw_csv", "excel", "codec", "everything", "rate"),
)
OPTIONS = {
    **{name: f"--{name.replace('_', '-')}" for name in NAMED_ALIKE},
    "api_secret": "--secret-file",
    "users": "--user",
    "tables": "--table",
    "words": "WORDS",
}
"""The option of the command for each argument of a function that an error may be about."""

TRACEBACK_VARIABLE = "BACKREAD_TRACEBACK"

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

    exit_code = USAGE


class ServiceMovedError(Exception):
    """The service differs from its stored profile."""

    exit_code = MOVED


class UnreadListsError(Exception):
    """The messages of some users could not be read; ``then`` says what to do."""

    exit_code = INCOMPLETE

    def __init__(
        self, users: Sequence[int], users_without_id: int, refused: str, then: str
    ) -> None:
        parts = [refused] if refused else []
        if users:
            parts.append(unread_lists(users))
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
    # Of Typer's errors, whose classes moved between its versions, and of those above.
    code = getattr(error, "exit_code", None)
    if isinstance(code, int):
        return code
    if getattr(error, "status_code", None) == NOT_ACCEPTABLE:
        return USAGE
    return next((code for kind, code in CODES if isinstance(error, kind)), FAULT)


def _in_options(text: str) -> str:
    """An error that begins with the name of an argument, with the option's name instead."""
    name = text.split(" ", 1)[0].rstrip(":")
    return OPTIONS.get(name, name) + text[len(name) :]


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
    say(_text(error), error=True)


def _text(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "stopped by Ctrl-C"
    if (describe := getattr(error, "format_message", None)) is not None:
        # Typer's; its classes moved between its versions.
        context = getattr(error, "ctx", None)
        path = "backread" if context is None else context.command_path
        text = " ".join(str(describe()).split()).rstrip(".").replace("Value error, ", "")
        return f"{text}; see {path} --help"
    # The path in the text of the other two may contain an argument's name.
    if isinstance(error, BackreadError) and not isinstance(error, MirrorError | LandingError):
        text = _in_options(str(error))
        for name, flag in OPTIONS.items():
            either = f" or BACKREAD_{name.upper()}"
            text = text.replace(f" {name}{either}", f" {flag}{either}")
        return text
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
        if isinstance(error, FileNotFoundError):
            return "the current folder was removed; change to another one"
    known = isinstance(error, tuple(kind for kind, _ in CODES)) or hasattr(error, "exit_code")
    if known and str(error):
        return _in_options(str(error)) if isinstance(error, ValueError) else str(error)
    return (
        f"bug in backread: {type(error).__name__}: {error}; please report it with the output of "
        f"{TRACEBACK_VARIABLE}=1"
    )


def _remedy(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "change its permissions or those of the folders above it, or name another path"
    return "name another path"


@contextmanager
def ended_by_signal() -> Iterator[Callable[[], None]]:
    """Gives a function that waits for Ctrl-C, SIGTERM or the end of the terminal."""
    stopped = Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    def wait() -> None:
        # In slices, because a signal does not end a wait on Windows.
        while not stopped.wait(0.5):
            pass

    held = {each: signal.signal(each, stop) for each in _endings()}
    try:
        yield wait
    finally:
        for each, handler in held.items():
            signal.signal(each, handler)


@contextmanager
def ended_like_ctrl_c() -> Iterator[list[int]]:
    """Makes SIGTERM and the end of the terminal a KeyboardInterrupt; gives those that came.

    Otherwise they would end the process at once, or not at all if it is the first of a container:
    Linux ignores signals without a handler there.
    """
    came: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt(f"stopped by {signal.Signals(number).name}")

    # Python sets handlers only in the main thread.
    endings = _endings() if current_thread() is main_thread() else []
    held = [each for each in endings if signal.getsignal(each) is signal.SIG_DFL]
    for each in held:
        signal.signal(each, stop)
    try:
        yield came
    finally:
        for each in held:
            signal.signal(each, signal.SIG_DFL)


def _endings() -> list[signal.Signals]:
    """The signals that end the command."""
    endings = [signal.SIGINT, signal.SIGTERM]
    # Sent when the terminal closes; Windows lacks it, and nohup ignores it.
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:
        endings.append(hang_up)
    return endings
