"""The application and its commands."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from inspect import cleandoc
from typing import Annotated, Any

import typer

from backread.cli import version_line
from backread.cli.arguments import extended, flag, option
from backread.cli.changes import changes
from backread.cli.demo import demo
from backread.cli.doctor import doctor
from backread.cli.exits import (
    CLOSED_PIPE,
    SIGNALLED,
    USAGE,
    ended_like_ctrl_c,
    exit_code,
    say_failure,
)
from backread.cli.export import export
from backread.cli.files import files
from backread.cli.forget import forget
from backread.cli.mock import mock
from backread.cli.probe import probe
from backread.cli.read import message, messages, user, users
from backread.cli.report import report
from backread.cli.search import search
from backread.cli.serve import browse, mcp
from backread.cli.show import show
from backread.cli.sql import sql, tables
from backread.cli.status import runs, status
from backread.cli.stderr import be_quiet_or_verbose, drop_stderr, logged_requests, say
from backread.cli.sync import sync
from backread.cli.text import Color, Coloring
from backread.errors import IncompleteWarning

COMPLETION = "_BACKREAD_COMPLETE"
"""Set by the shell's script when it wants completions."""

Command = Callable[..., None]

COMMANDS: dict[str, tuple[Command, ...]] = {
    "Read the service": (users, user, messages, message),
    "Keep a mirror of it, and read that": (
        *(sync, files, status, runs, report, browse, search, show, sql, tables, export, changes),
        *(forget, mcp),
    ),
    "Try, test and check": (demo, mock, probe, doctor),
}
"""The commands by their groups in the help, in its order."""

ABOUT = """
Reads every user and every message of a chat widget's service, and never writes to it.

The service is named by BACKREAD_BASE_URL, BACKREAD_API_SECRET and BACKREAD_VENDOR. Data goes to
stdout, everything else to stderr. backread COMMAND --help has the options and examples of a
command.

Examples:
  backread demo chats       # a mirror of made-up people, to try it
  backread sync chats       # copies a service, later only what is new
  backread show chats 42    # reads a conversation of the mirror
"""


Quiet = Annotated[bool, flag("Print no notes, only errors.", "-q", "--quiet")]
Verbose = Annotated[bool, flag("Log requests, with times.", "-v", "--verbose")]


def _help(text: str) -> dict[str, Any]:
    """The help and the examples of a docstring, for Rich to wrap, and without markup."""
    about, _, examples = cleandoc(text).replace("[", "\\[").partition("\n\nExamples:\n")
    paragraphs = (" ".join(each.split()) for each in about.split("\n\n"))
    return {"help": "\n\n".join(paragraphs), "epilog": f"Examples:\n{examples}"}


def _called(command: Command, *, quiet: bool, verbose: bool, **values: Any) -> None:
    be_quiet_or_verbose(quiet, verbose)
    command(**values)


app = typer.Typer(
    name="backread",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for group, commands in COMMANDS.items():
    for command in commands:
        verbosity = [option("quiet", Quiet, False), option("verbose", Verbose, False)]
        made = extended(command, partial(_called, command), verbosity)
        app.command(rich_help_panel=group, **_help(command.__doc__ or ""))(made)


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"{version_line()}\n")
        raise typer.Exit


@app.callback(invoke_without_command=True, **_help(ABOUT))
def start(
    context: typer.Context,
    quiet: Quiet = False,
    verbose: Verbose = False,
    color: Annotated[
        Color,
        typer.Option(
            "--color",
            help="Colour; by default on a terminal, unless NO_COLOR is set.",
            show_default=False,
        ),
    ] = Color.AUTO,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Handles the options before the command."""
    be_quiet_or_verbose(quiet, verbose)
    Coloring.choice = color
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code; a failure writes at most one line."""
    if sys.stderr is None:
        # Closed by the caller (2>&-).
        drop_stderr()
    if sys.stdout is None:
        say(
            "stdout is closed, so the output cannot be written; redirect it to a file or to "
            "/dev/null"
        )
        return USAGE
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Rows may have any script; a terminal may support only one.
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="replace")
        else:
            sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    with ended_like_ctrl_c() as signals:
        code = _invoke(arguments)
    return SIGNALLED + signals[-1] if signals else code


def _invoke(arguments: Sequence[str] | None) -> int:
    command = typer.main.get_command(app)
    try:
        # Not command.main(), which handles Ctrl-C and a closed pipe differently.
        given = list(sys.argv[1:] if arguments is None else arguments)
        if os.environ.get(COMPLETION):
            command.main(given, "backread")
        with warnings.catch_warnings(), logged_requests():
            # The commands report unread lists themselves.
            warnings.simplefilter("ignore", IncompleteWarning)
            with command.make_context("backread", given) as context:
                command.invoke(context)
        sys.stdout.flush()
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):
            # What Rich makes of a closed pipe, in the help.
            return CLOSED_PIPE
        return error.code if isinstance(error.code, int) else 0
    except typer.Exit as error:
        # Typer has said why, for example that it completes nothing in this shell.
        return error.exit_code
    except BaseException as error:
        with suppress(BrokenPipeError):
            say_failure(error)
        _drop_output()
        return exit_code(error)
    return 0


def _drop_output() -> None:
    # Buffered output would fail again when the interpreter closes stdout.
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
