"""How the command ends: an exit code, and for a failure one line on stderr that says what to do.

=====  ========================================================================================
0      done
1      a package is not installed, or a fault of backread's own
2      usage or configuration: an option, an argument, a missing secret, a file, a taken port
3      the service has no such user or message
4      the service refused the secret, or the secret may not read this
5      the network or the service failed, also after the retries, or the deadline passed
6      the answer cannot be read, a strict walk proved nothing, or the messages of some users
       could not be read
7      the mirror's folder, or a landing's, cannot be used as it is
8      a probe found the service otherwise than a stored profile says
130    Ctrl-C
141    whoever read the output closed it (``| head``)
=====  ========================================================================================
"""

from __future__ import annotations

import errno
import os
import re
import traceback
from collections.abc import Sequence

from backread.cli.stderr import say, say_lines
from backread.errors import (
    AuthenticationError,
    BackreadError,
    ConfigurationError,
    DecodeError,
    IncompleteError,
    LandingError,
    MirrorError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    ResponseTooLargeError,
)

__all__ = [
    "CLOSED_PIPE",
    "FAULT",
    "INCOMPLETE",
    "INTERRUPTED",
    "MIRROR",
    "MOVED",
    "NOT_FOUND",
    "REFUSED",
    "SERVICE",
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
INTERRUPTED = 130
CLOSED_PIPE = 141

OPTIONS = {
    "base_url": "--base-url",
    "api_secret": "--secret-file",
    "vendor": "--vendor",
    "timeout": "--timeout",
    "deadline": "--deadline",
    "max_retries": "--max-retries",
    "max_concurrency": "--max-concurrency",
    "rate_limit": "--rate-limit",
    "outage_patience": "--outage-patience",
    "proxy": "--proxy",
    "ca_bundle": "--ca-bundle",
    "max_response_bytes": "--max-response-bytes",
    "allow_http": "--allow-http",
}
"""What the errors of the package call an argument, and the option of the command for it."""

TRACEBACK_VARIABLE = "BACKREAD_TRACEBACK"

NAMED = 20
"""Users that a line names."""

# The first class that fits decides, so the narrower ones stand above their bases.
CODES: tuple[tuple[type[Exception], int], ...] = (
    (ConfigurationError, USAGE),
    (NotFoundError, NOT_FOUND),
    (AuthenticationError, REFUSED),
    (PermissionDeniedError, REFUSED),
    (DecodeError, INCOMPLETE),
    (IncompleteError, INCOMPLETE),
    (MirrorError, MIRROR),
    (LandingError, MIRROR),
    (BackreadError, SERVICE),
    (ImportError, FAULT),
    (OSError, USAGE),
    (ValueError, USAGE),
)


class UnusableArgumentError(Exception):
    """The command cannot do what it was asked; the text says what to change."""


class ServiceMovedError(Exception):
    """A service is not as a profile of it says."""


class UnreadListsError(Exception):
    """All was read but the messages of some users; ``then`` says what may be done about it."""

    def __init__(self, users: Sequence[int], then: str) -> None:
        named = ", ".join(map(str, users[:NAMED]))
        more = f" and {len(users) - NAMED} more" if len(users) > NAMED else ""
        lists = "1 list" if len(users) == 1 else f"{len(users):,} lists"
        super().__init__(f"{lists} of messages could not be read, of user {named}{more}; {then}")


def exit_code(error: BaseException) -> int:
    """The exit code for what ended a command."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError) and not isinstance(error, BackreadError):
        return CLOSED_PIPE
    # Typer's own exceptions, which moved between its versions, carry their code.
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
    """Whether a write failed for want of room: on the disk, in a quota, in one file."""
    return error.errno in (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", None))


def say_failure(error: BaseException) -> None:
    """Writes the line for what ended a command; nothing for a closed pipe or an ordinary end."""
    code = exit_code(error)
    if code in (0, CLOSED_PIPE):
        return
    if os.environ.get(TRACEBACK_VARIABLE):
        say_lines("".join(traceback.format_exception(error)).rstrip("\n"))
    say(_text(error, code))


def _text(error: BaseException, code: int) -> str:
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "stopped by Ctrl-C"
    describe = getattr(error, "format_message", None)
    if describe is not None:
        return f"{str(describe()).rstrip('.')}; --help shows what there is"
    told = (ConfigurationError, AuthenticationError, RateLimitError, ResponseTooLargeError)
    if isinstance(error, told):
        return f"{error}{_options_for(str(error))}"
    if code == REFUSED:
        return f"{error}; check BACKREAD_API_SECRET or --secret-file"
    if isinstance(error, OSError) and not isinstance(error, BackreadError) and is_full(error):
        # Files are named where they are written, so what is left without a name is stdout.
        return (
            f"{error.filename or 'stdout'} cannot be written: {error.strerror}; free some space, "
            "or write elsewhere"
        )
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
        f"a fault of its own: {type(error).__name__}: {error}; please report it with what "
        f"{TRACEBACK_VARIABLE}=1 shows"
    )


def _options_for(text: str) -> str:
    named = [option for name, option in OPTIONS.items() if re.search(rf"\b{name}\b", text)]
    return f"; on the command line: {', '.join(named)}" if named else ""
