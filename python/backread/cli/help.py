"""The help of the command: groups, examples, and the connection in one place."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from inspect import cleandoc
from pathlib import Path
from textwrap import wrap
from typing import Any

from typer.core import TyperCommand, TyperGroup

from backread.cli.color import ink_for
from backread.cli.examples import EXAMPLES
from backread.cli.usage import NO_MORE, choices_of, nearest

__all__ = ["CONNECTION", "WIDEST", "HelpCommand", "HelpGroup", "connection_help"]

CONNECTION = "Connection"
"""The group of the options that say which service to read, and how."""

WIDEST = 100
"""The most cells of a line of help."""

# The classes of Typer's contexts, formatters and parameters moved between its versions.
Context = Any
Formatter = Any
Parameter = Any


class HelpCommand(TyperCommand):
    """A command with our help."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Reads the command line; says what to do instead of a command that does not exist."""
        command = " ".join([ctx.command_path, *args[:1]])
        if command in NO_MORE:
            ctx.fail(f"there is no command {command}: {NO_MORE[command]}")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """``[OPTIONS] FOLDER [TABLE]``."""
        return ["[OPTIONS]", *_usage(self.get_params(ctx))]

    def format_help(self, ctx: Context, formatter: Formatter) -> None:
        """Writes the help."""
        _write_help(self, ctx, formatter)


class HelpGroup(TyperGroup):
    """A command with subcommands, in groups."""

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """``[OPTIONS] COMMAND``."""
        return ["[OPTIONS]", "[COMMAND]"]

    def format_help(self, ctx: Context, formatter: Formatter) -> None:
        """Writes the help."""
        _write_help(self, ctx, formatter, lambda: _write_commands(self, ctx, formatter))

    def resolve_command(self, ctx: Context, args: list[str]) -> Any:
        """The command that was named; names similar ones if there is none."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            hint = nearest(name, self.list_commands(ctx))
            ctx.fail(f"there is no command {name!r}{hint}")
        return super().resolve_command(ctx, args)


def connection_help(ctx: Context, group: TyperGroup) -> str:
    """The help of the options of the connection, which are the same for every command."""
    formatter = ctx.make_formatter()
    formatter.write_text(
        "These options say which service to read, and how. Every command that reads the service "
        "has them, and each can be set by a variable of the environment instead, BACKREAD_ and its "
        "name: BACKREAD_BASE_URL for --base-url. The secret is BACKREAD_API_SECRET or in a file, "
        "never an argument."
    )
    [users] = [command for name, command in group.commands.items() if name == "users"]
    rows = [_record(each, with_variable=False) for each in _of_connection(users.get_params(ctx))]
    with _section(formatter, CONNECTION):
        formatter.write_dl(rows)
    return str(formatter.getvalue())


def _write_help(
    command: TyperCommand | TyperGroup,
    ctx: Context,
    formatter: Formatter,
    write_commands: Any = None,
) -> None:
    formatter.write_usage(ctx.command_path, " ".join(command.collect_usage_pieces(ctx)))
    if command.help:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(cleandoc(command.help))
    parameters = [each for each in command.get_params(ctx) if not getattr(each, "hidden", False)]
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    options = [each for each in parameters if each.param_type_name != "argument"]
    connection = _of_connection(options)
    own = [each for each in options if each not in connection]
    if write_commands is not None:
        write_commands()
    for title, shown in (("Arguments", arguments), ("Options", own)):
        if shown:
            with _section(formatter, title):
                formatter.write_dl([_record(each) for each in shown])
    if connection:
        with _section(formatter, CONNECTION):
            names = ", ".join(each.opts[0] for each in connection)
            text = f"{names}: see backread --help-connection"
            indent = " " * formatter.current_indent
            # Not by the formatter, which breaks options at their hyphens.
            lines = wrap(text, formatter.width - len(indent), break_on_hyphens=False)
            formatter.write("".join(f"{indent}{line}\n" for line in lines))
    _write_examples(ctx, formatter)


def _write_commands(group: TyperGroup, ctx: Context, formatter: Formatter) -> None:
    panels: dict[str, list[tuple[str, str]]] = {}
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is None or command.hidden:
            continue
        panel = getattr(command, "rich_help_panel", None) or "Commands"
        # The first paragraph, which is one sentence.
        text = " ".join(cleandoc(command.help or "").split("\n\n")[0].split())
        panels.setdefault(str(panel), []).append((name, text))
    widest = max(len(name) for rows in panels.values() for name, _ in rows)
    for panel, rows in panels.items():
        with _section(formatter, panel):
            formatter.write_dl([(name.ljust(widest), text) for name, text in rows])


def _write_examples(ctx: Context, formatter: Formatter) -> None:
    examples = EXAMPLES.get(ctx.command_path.partition(" ")[2], ())
    if not examples:
        return
    with _section(formatter, "Examples"):
        for about, line in examples:
            formatter.write_text(f"{about}:")
            # Never wrapped, so that it can be copied.
            formatter.write(f"{'':{formatter.current_indent + 2}}{line}\n")


@contextmanager
def _section(formatter: Formatter, title: str) -> Iterator[None]:
    formatter.write_paragraph()
    formatter.write(ink_for(sys.stdout).bold(f"{title}:") + "\n")
    with formatter.indentation():
        yield


def _of_connection(parameters: Sequence[Parameter]) -> list[Parameter]:
    return [each for each in parameters if getattr(each, "rich_help_panel", None) == CONNECTION]


def _usage(parameters: Sequence[Parameter]) -> list[str]:
    return [
        (_metavar(each) if each.required else f"[{_metavar(each)}]")
        + ("..." if each.nargs != 1 and not _metavar(each).endswith("...") else "")
        for each in parameters
        if each.param_type_name == "argument"
    ]


def _record(parameter: Parameter, with_variable: bool = True) -> tuple[str, str]:
    """How an option or argument is written, and what it means."""
    notes = [
        note
        for note in (
            _default(parameter),
            _variable(parameter) if with_variable else "",
        )
        if note
    ]
    text = (parameter.help or "").strip()
    if notes:
        text = f"{text} [{'; '.join(notes)}]"
    if parameter.param_type_name == "argument":
        return _metavar(parameter), text
    names = ", ".join(sorted(parameter.opts, key=len))
    if parameter.secondary_opts:
        names = f"{names}, {', '.join(parameter.secondary_opts)}"
    metavar = "" if parameter.is_flag else f" {_metavar(parameter)}"
    return f"{names}{metavar}", text


def _metavar(parameter: Parameter) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    if choices := choices_of(parameter):
        return "|".join(choices)
    return str(parameter.name).upper() if parameter.param_type_name == "argument" else "NUMBER"


def _default(parameter: Parameter) -> str:
    shown = parameter.show_default
    if isinstance(shown, str):
        return f"default: {shown}"
    value = parameter.default
    # Typer's versions have marks of their own for no default.
    if shown is False or value is False or not isinstance(value, (str, int, float, Path)):
        return ""
    if value is True:
        return f"default: {parameter.opts[0]}" if parameter.secondary_opts else ""
    return f"default: {value.value if isinstance(value, Enum) else value}"


def _variable(parameter: Parameter) -> str:
    variable = getattr(parameter, "envvar", None)
    return f"or {variable}" if isinstance(variable, str) else ""
