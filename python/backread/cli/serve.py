"""``browse`` and ``mcp``: show a mirror in a browser, or to a language model, until stopped."""

from __future__ import annotations

import errno
import signal
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from backread.cli.arguments import Folder, PortOption, flag
from backread.cli.exits import UnusableArgumentError, ended_by_signal
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


def mcp(
    folder: Folder,
    emails: Annotated[bool, flag("Show e-mail addresses.", "--emails")] = False,
    sql: Annotated[bool, flag("Add a tool that runs one SELECT over the mirror.", "--sql")] = False,
) -> None:
    """Serves the mirror in FOLDER to a program with a language model, over stdin and stdout.

    Such programs (clients of the Model Context Protocol) start this command themselves. The tools
    only read: they find users, search, read conversations, and give figures and runs. What people
    wrote goes to the model unchanged, and may try to give it orders.

    Examples:
        backread mcp chats
    """
    try:
        from backread.integrations.mcp import serve
    except ImportError as error:
        # anyio comes with mcp.
        if (error.name or "").partition(".")[0] not in ("anyio", "mcp", "mcp_types"):
            raise
        raise ImportError(
            'backread mcp needs the package mcp; install it with: pip install "backread[mcp]"'
        ) from None
    if sys.stdin.isatty():
        say("waiting for an MCP client on stdin; Ctrl-C ends it", named=False)
    # There is nothing to clean up, and an interrupted server would wait for its stdin.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    serve(folder, emails=emails, sql=sql)
