"""``browse``: shows a mirror in a browser until it is stopped."""

from __future__ import annotations

import errno
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from backread.cli.arguments import Folder, PortOption, flag
from backread.cli.exits import UnusableArgumentError
from backread.cli.signals import ended_by_signal
from backread.cli.stderr import say
from backread.errors import BackreadError

if TYPE_CHECKING:
    from backread._browse import BrowseServer


def browse(
    folder: Folder,
    port: PortOption = 0,
    no_open: Annotated[bool, flag("Print the address; open no browser.", "--no-open")] = False,
) -> None:
    """Shows the mirror in FOLDER in a browser, until Ctrl-C: people, conversations, search.

    The page is served on this machine only, at an address with a random token. It loads
    nothing from elsewhere, writes nothing, and follows syncs.

    Examples:
        backread browse chats
        backread browse chats --no-open
    """
    with ended_by_signal() as wait_for_end, _served(folder, port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        if not no_open and not webbrowser.open(server.one_time_url()):
            say("no browser was found; open this address in one", named=False)
        say("Ctrl-C ends it", named=False)
        wait_for_end()


def _served(folder: Path, port: int) -> BrowseServer:
    from backread._browse import BrowseServer

    try:
        return BrowseServer(folder, port, on_error=say)
    except OSError as error:
        if isinstance(error, BackreadError):
            raise
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error})"
        raise UnusableArgumentError(
            f"port {port} {reason}; choose another with --port, or leave it out for a free one"
        ) from None
