"""The application and its commands."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, cast

import typer

from backread.cli import version_line
from backread.cli.arguments import VARIABLE
from backread.cli.browse import browse
from backread.cli.changes import changes
from backread.cli.color import Color, choose
from backread.cli.demo import demo
from backread.cli.doctor import doctor
from backread.cli.exits import SIGNALLED, USAGE, exit_code, say_failure
from backread.cli.export import export
from backread.cli.forget import forget
from backread.cli.help import WIDEST, HelpCommand, HelpGroup, connection_help
from backread.cli.mcp import mcp
from backread.cli.mock import mock
from backread.cli.probe import probe
from backread.cli.read import message, messages, user, users
from backread.cli.report import report
from backread.cli.search import search
from backread.cli.show import show
from backread.cli.signals import ended_like_ctrl_c
from backread.cli.sql import sql
from backread.cli.status import status
from backread.cli.stderr import drop_stderr, said_delays, say
from backread.cli.sync import runs, sync
from backread.cli.tables import tables
from backread.errors import IncompleteWarning

__all__ = ["app", "run"]

READ = "Read the service"
MIRROR = "Keep a mirror of it, and read that"
TEST = "Try and test"
ABOUT = "About"

app = typer.Typer(
    name="backread",
    cls=HelpGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
)


def _add(group: str, *commands: Callable[..., None]) -> None:
    for command in commands:
        app.command(cls=HelpCommand, rich_help_panel=group)(command)


_add(READ, users, user, messages, message)
# The help has them in this order.
_add(MIRROR, sync, status, runs)
_add(MIRROR, report, browse)
_add(MIRROR, search, show, sql, tables)
_add(MIRROR, export, changes, forget)
_add(MIRROR, mcp)
_add(TEST, demo, mock, probe)
_add(ABOUT, doctor)


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"{version_line()}\n")
        raise typer.Exit


def _show_connection(context: typer.Context, wanted: bool) -> None:
    if wanted:
        sys.stdout.write(connection_help(context, cast("HelpGroup", context.command)))
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
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
    help_connection: Annotated[
        bool,
        typer.Option(
            "--help-connection",
            callback=_show_connection,
            is_eager=True,
            help="Show the options of the connection to the service and exit.",
        ),
    ] = False,
) -> None:
    """Reads every user and every message of a chat widget's service, and never writes to it.

    The service is named by BACKREAD_BASE_URL, BACKREAD_API_SECRET and BACKREAD_VENDOR. Data goes to
    stdout, everything else to stderr. `backread COMMAND --help` has the options and examples of a
    command.
    """
    choose(color)
    if context.invoked_subcommand is None:
        sys.stdout.write(f"{context.get_help()}\n")


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
        if os.environ.get(VARIABLE):
            command.main(given, "backread")
        with warnings.catch_warnings(), said_delays():
            # The commands report unread lists themselves.
            warnings.simplefilter("ignore", IncompleteWarning)
            with command.make_context("backread", given) as context:
                command.invoke(context)
        sys.stdout.flush()
    except SystemExit as error:
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
