"""The reference of the command line, from the commands themselves: docs/reference/command-line.md.

Usage: ``python tools/docs/command_line.py [--write]``. Fails if the page is not what the commands
say; ``--write`` writes it. Run it again after a change of a command, an option or an exit code.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Any, TypeAlias

import typer

from backread.cli import exits
from backread.cli.app import app

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/command-line.md"

INTRODUCTION = """\
# Command line

`pip install "backread[cli]"` ([not on PyPI yet](../how-to/install.md)) brings the command
`backread`. Data goes to stdout, everything else to stderr. `--help` of each command shows what is
here. Every command takes `-q` (`--quiet`), which prints no notes and no summaries, only errors and
the data that was asked for, and `-v` (`--verbose`), which logs each request to stderr.

<!-- Written by tools/docs/command_line.py from the commands; --write writes it anew. -->
"""

OTHER_VARIABLES = {
    "BACKREAD_API_SECRET": "The API Secret Key. The secret is never an argument.",
    "BACKREAD_CONFIG": "The config file with the named services of `--service`.",
    exits.TRACEBACK_VARIABLE: "If set, an error also shows its traceback, for a bug report.",
    "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY": (
        "The proxy, if `--proxy` is not given. No proxy is used for loopback."
    ),
    "NO_COLOR": "If set, nothing is in colour.",
    "FORCE_COLOR": "If set, everything is in colour, also in a pipe.",
    "PAGER": "The program that shows what is longer than the terminal, such as `less`.",
    "TERM": "`dumb` means plain lines instead of progress bars, and no pager.",
}
"""The variables that no option names."""

EVERYWHERE = {"help", "quiet", "verbose"}
"""What every command has, by its parameters."""

OF_CONNECTIONS = "--base-url"
"""What the commands that have this option have in common is described once."""

Cells: TypeAlias = tuple[str, str, str, str]

NOTE = re.compile(r"\s*\[([^\[\]]*)\]\s*$")
RANGES = (
    (re.compile(r"^x>=(\S+)$"), r"At least \1."),
    # The largest number of 64 bits is said where it is exceeded.
    (re.compile(r"^(\S+)<=x<=9223372036854775807$"), r"At least \1."),
    (re.compile(r"^(\S+)<=x<=(\S+)$"), r"From \1 to \2."),
)


class Entry:
    """One option or argument, as ``--help`` describes it."""

    def __init__(self, parameter: Any, context: Any) -> None:
        self.is_argument = parameter.param_type_name == "argument"
        names, text = parameter.get_help_record(context)
        # Typer's names of a type and of a choice.
        names = names.replace("<int range>", "NUMBER").replace("<list[", "<").replace("]>", ">")
        self.names = names
        self.default = ""
        self.variable = getattr(parameter, "envvar", None) or ""
        self.required = False
        remarks: list[str] = []
        while match := NOTE.search(text):
            text = text[: match.start()]
            for each in match[1].split("; "):
                self._read_note(each, remarks)
        self.text = " ".join([text.strip(), *reversed(remarks)])

    def _read_note(self, note: str, remarks: list[str]) -> None:
        if note.startswith("default: "):
            self.default = note.removeprefix("default: ").removeprefix("(").removesuffix(")")
        elif note == "required":
            self.required = True
        else:
            for pattern, words in RANGES:
                if pattern.match(note):
                    note = pattern.sub(words, note)
            remarks.append(note if note.endswith(".") else f"{note[:1].upper()}{note[1:]}.")

    def cells(self) -> Cells:
        """Its line in a table of options."""
        default = "required" if self.required else self.default
        variable = f"`{self.variable}`" if self.variable else ""
        return ticked(self.names), cell(self.text), cell(default), variable


def ticked(names: str) -> str:
    """The forms of an option as code. Markdown has no way to write a bar in code in a table."""
    forms = (html.escape(each, quote=False).replace("|", "&#124;") for each in names.split(", "))
    return ", ".join(f"<code>{each}</code>" if "&" in each else f"`{each}`" for each in forms)


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return prose(text).replace("|", "\\|")


def prose(text: str) -> str:
    """Text with the options that it names as code."""
    parts = " ".join(text.split()).replace("<", "&lt;").split("`")
    # Every other part is code already.
    parts[::2] = [re.sub(r"(?<!\S)--[a-z][a-z-]*", r"`\g<0>`", each) for each in parts[::2]]
    return "`".join(parts)


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a help text; lines that it keeps as they are stay so."""
    if not text.strip():
        return
    for part in re.split(r"\n\s*\n", text.strip()):
        if part.startswith("\b"):
            lines = "\n".join(line.rstrip() for line in part.splitlines()[1:])
            yield f"<pre><code>{html.escape(lines, quote=False)}</code></pre>"
        else:
            yield prose(part)


class Command:
    """A command with its parameters; a group has further ones below it."""

    def __init__(self, command: Any, name: str, parent: Any = None) -> None:
        self.command = command
        context = command.context_class(command, info_name=name, parent=parent)
        self.name = context.command_path
        self.usage = " ".join(command.get_usage(context).split()[1:])
        self.entries = [
            Entry(each, context)
            for each in command.get_params(context)
            if not getattr(each, "hidden", False) and each.name not in EVERYWHERE
        ]
        self.below = [
            Command(each, key, context)
            for key, each in getattr(command, "commands", {}).items()
            if not each.hidden
        ]

    def all(self) -> Iterator[Command]:
        """This command and all below it."""
        yield self
        for each in self.below:
            yield from each.all()

    def text(self, shared: set[Cells]) -> Iterator[str]:
        """Its part of the page."""
        yield f"## {self.name}"
        yield from paragraphs((self.command.help or "").replace("\\[", "["))
        yield f"`{self.usage}`"
        arguments = [each for each in self.entries if each.is_argument]
        if arguments:
            yield "\n".join(
                ["| argument | what it is |", "|---|---|"]
                + [f"| {ticked(each.names.split()[0])} | {cell(each.text)} |" for each in arguments]
            )
        options = [each for each in self.entries if not each.is_argument]
        own = [each for each in options if each.cells() not in shared]
        if own:
            yield "\n".join(table(own))
        if len(own) < len(options):
            yield "It also takes the [connection options](#connection-options)."
        examples = (self.command.epilog or "").replace("\\[", "[").partition("\n")[2]
        if examples:
            # No test runs these: each is parsed with the command's help.
            yield f"```text\n{cleandoc(examples)}\n```"


def table(entries: list[Entry]) -> list[str]:
    """The lines of a table of options, without columns that would be empty."""
    rows = [("option", "what it does", "default", "variable"), *(each.cells() for each in entries)]
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    lines = [f"| {' | '.join(row)} |" for row in zip(*columns, strict=True)]
    return [lines[0], "|" + "---|" * len(columns), *lines[1:]]


def exit_codes() -> str:
    """The table in the docstring of the module that has them."""
    rows: list[list[str]] = []
    body = (exits.__doc__ or "").split("=====  ")[1].partition("\n")[2]
    for line in body.splitlines():
        if line[:1].isdigit():
            code, _, text = line.partition(" ")
            rows.append([code, text.strip()])
        elif line.strip():
            rows[-1][1] += f" {line.strip()}"
    lines = [f"| {code} | {cell(text.replace('``', ''))} |" for code, text in rows]
    return "\n".join(["| code | what happened |", "|---|---|", *lines])


def page() -> str:
    """The whole page."""
    root = Command(typer.main.get_command(app), "backread")
    commands = [each for each in root.all() if each is not root]
    connected = [
        {entry.cells(): entry for entry in command.entries}
        for command in commands
        if any(entry.names.startswith(OF_CONNECTIONS) for entry in command.entries)
    ]
    shared = [cells for cells in connected[0] if all(cells in each for each in connected)]
    # Commands that read no service have it as well.
    shared = [cells for cells in shared if cells[0] != "`--json`"]
    parts = [INTRODUCTION.rstrip(), *(part for each in commands for part in each.text(set(shared)))]
    parts += [
        "## Connection options",
        "Every command that reads the service takes these. An option wins over its variable.",
        "\n".join(table([connected[0][cells] for cells in shared])),
        "## Exit codes",
        "An error is one line on stderr, which says what happened and what to do.",
        exit_codes(),
        "## Other environment variables",
        "\n".join(
            ["| variable | what it does |", "|---|---|"]
            + [
                f"| {ticked(names)} | {cell(text)} |"
                for names, text in sorted(OTHER_VARIABLES.items())
            ]
        ),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Checks or writes the page; the exit code."""
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") != page():
        print(
            f"{PAGE.name} is not what the commands say; run: python tools/docs/command_line.py "
            "--write",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
