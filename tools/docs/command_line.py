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
from typing import Any

import typer

from backread.cli import exits
from backread.cli.app import app

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/command-line.md"

MARK = "<!-- The rest is written by tools/docs/command_line.py from the commands. -->"

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

SHARED = {"--base-url": "connection options", "--format <table|json|jsonl": "output options"}
"""The options that all commands with this option share are listed once, under this heading."""

SHARED_NOTES = {
    "connection options": (
        "Every command that reads the service takes these. An option wins over its variable, "
        "which has its name, as `BACKREAD_RATE_LIMIT` for `--rate-limit`. `--service` has none."
    )
}
"""The text above these options."""

KNOWN_ARGUMENTS = {"The mirror's folder.", "The user's id."}
"""Arguments that the introduction describes."""

NOTE = re.compile(r"\s*\[([^\[\]]*)\]\s*$")
RANGE = re.compile(r"^(\S+)<=x<=(\S+)$")
# That a count is not negative, and an id a number of 64 bits, need not be said.
EXPECTED_RANGE = re.compile(r"^x>=[01]$|^[01]<=x<=9223372036854775807$")


class Entry:
    """One option or argument, as ``--help`` describes it."""

    def __init__(self, parameter: Any, context: Any) -> None:
        self.is_argument = parameter.param_type_name == "argument"
        names, text = parameter.get_help_record(context)
        # Typer's names of a type and of a choice.
        names = names.replace("<int range>", "NUMBER").replace("<list[", "<").replace("]>", ">")
        self.names = names.split()[0] if self.is_argument else names
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
            self.required = not self.is_argument
        elif not EXPECTED_RANGE.match(note):
            note = RANGE.sub(r"From \1 to \2.", note)
            remarks.append(note if note.endswith(".") else f"{note[:1].upper()}{note[1:]}.")

    def line(self) -> str:
        """Its line in a list of options."""
        line = f"- {ticked(self.names)}: {prose(self.text)}"
        if self.required:
            line += " Required."
        if self.default:
            line += f" Default: {prose(self.default)}."
        if self.variable and self.variable != variable_of(self.names):
            line += f" Variable: `{self.variable}`."
        return line


def variable_of(names: str) -> str:
    """The usual variable of an option: that of ``--rate-limit`` is ``BACKREAD_RATE_LIMIT``."""
    return "BACKREAD_" + names.split()[0].strip("-").replace("-", "_").upper()


def ticked(names: str) -> str:
    """The forms of an option as code."""
    return ", ".join(f"`{each}`" for each in names.split(", "))


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
        usage = " ".join(command.get_usage(context).split()[1:])
        self.usage = re.sub(r"[{}]| ?\[OPTIONS\]|(?<=\.\.\.)\.+", "", usage)
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

    def text(self, shared: dict[str, list[str]]) -> Iterator[str]:
        """Its part of the page."""
        yield f"## {self.name}"
        yield from paragraphs((self.command.help or "").replace("\\[", "["))
        if any(each.is_argument and each.text not in KNOWN_ARGUMENTS for each in self.entries):
            yield f"`{self.usage}`"
        lines = [
            each.line()
            for each in self.entries
            if not (each.is_argument and each.text in KNOWN_ARGUMENTS)
        ]
        groups = [name for name, common in shared.items() if set(common) <= set(lines)]
        own = [line for line in lines if not any(line in shared[name] for name in groups)]
        if groups:
            links = " and ".join(
                f"[{name.split()[0]}](#{name.replace(' ', '-')})" for name in groups
            )
            own.append(f"- All {links} options.")
        if own:
            yield "\n".join(own)
        examples = (self.command.epilog or "").replace("\\[", "[").partition("\n")[2]
        if examples:
            # No test runs these: each is parsed with the command's help.
            yield f"```text\n{cleandoc(examples)}\n```"


def shared_lines(commands: list[Command], option: str) -> list[str]:
    """The lines that all commands with an option have in common."""
    having = [
        [entry.line() for entry in command.entries if not entry.is_argument]
        for command in commands
        if any(entry.names.startswith(option) for entry in command.entries)
    ]
    return [line for line in having[0] if all(line in each for each in having)]


def exit_codes() -> str:
    """Those in the docstring of the module that has them."""
    rows: list[list[str]] = []
    body = (exits.__doc__ or "").split("=====  ")[1].partition("\n")[2]
    for line in body.splitlines():
        if line[:1].isdigit():
            code, _, text = line.partition(" ")
            rows.append([code, text.strip()])
        elif line.strip():
            rows[-1][1] += f" {line.strip()}"
    return "\n".join(f"- {code}: {prose(text.replace('``', ''))}" for code, text in rows)


def page(present: str) -> str:
    """The whole page: what stands in it above the mark, and the commands."""
    root = Command(typer.main.get_command(app), "backread")
    commands = [each for each in root.all() if each is not root]
    shared = {name: shared_lines(commands, option) for option, name in SHARED.items()}
    parts = [present.partition(MARK)[0] + MARK]
    for name, lines in shared.items():
        parts += [f"## {name.capitalize()}", SHARED_NOTES.get(name, ""), "\n".join(lines)]
    parts += [part for each in commands for part in each.text(shared)]
    parts += [
        "## Exit codes",
        "An error is one line on stderr, which says what happened and what to do.",
        exit_codes(),
        "## Other environment variables",
        "\n".join(
            f"- {ticked(names)}: {prose(text)}" for names, text in sorted(OTHER_VARIABLES.items())
        ),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def main() -> int:
    """Checks or writes the page; the exit code."""
    present = PAGE.read_text(encoding="utf-8")
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(present), encoding="utf-8")
        return 0
    if present != page(present):
        print(
            f"{PAGE.name} is not what the commands say; run: python tools/docs/command_line.py "
            "--write",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
