"""``mcp``: serves a mirror to programs with language models."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

from backread.cli.arguments import Folder, flag
from backread.cli.exits import UnusableArgumentError
from backread.cli.stderr import say


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
    if sys.flags.optimize >= 2:
        # The tools' descriptions are docstrings.
        raise UnusableArgumentError(
            "backread mcp cannot run under python -OO, which removes what tells a model how to use "
            "the tools; run it without -OO and PYTHONOPTIMIZE"
        )
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
