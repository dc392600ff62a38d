"""Arguments and options that several commands have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from backread.cli.exits import UnusableArgumentError
from backread.cli.paths import folder_to_write, to_read, to_write


def _moment(text: str) -> datetime:
    from backread.mirror.published.period import moment_of

    try:
        return moment_of("it", text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _until(text: str) -> datetime:
    return datetime.now(UTC) if text == "now" else _moment(text)


def byte_size(text: str) -> int:
    """Bytes from text such as ``2GB``."""
    from backread.mirror.store.database import read_size

    try:
        return read_size("it", text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def value(metavar: str, help: str, *names: str, **settings: Any) -> Any:  # noqa: A002
    """An option with a value; its name is that of the parameter unless ``names`` are given."""
    return typer.Option(*names, metavar=metavar, help=help, **settings)


def flag(help: str, *names: str) -> Any:  # noqa: A002
    """An option that is there or not, with its names, or Typer would add a ``--no-`` one."""
    return typer.Option(*names, help=help, metavar="")


def file_to_read(help: str, *names: str) -> Any:  # noqa: A002
    """An option that names a file to read."""
    return value("FILE", help, *names, parser=to_read)


def file_to_write(help: str, *names: str) -> Any:  # noqa: A002
    """An option that names a file to write."""
    return value("FILE", help, *names, parser=to_write)


def argument(metavar: str, help: str, **settings: Any) -> Any:  # noqa: A002
    """An argument."""
    return typer.Argument(metavar=metavar, help=help, show_default=False, **settings)


Folder = Annotated[Path, argument("FOLDER", "The mirror's folder.", parser=folder_to_write)]
UserId = Annotated[int, argument("USER_ID", "The user's id.", min=0)]
MessageId = Annotated[int, argument("MESSAGE_ID", "The message's id.", min=0)]
LimitOption = Annotated[int | None, value("NUMBER", "The maximum number of rows.", min=1)]
RawOption = Annotated[
    bool, flag("CSV with unchanged texts, even spreadsheet formulas.", "--raw-csv")
]
ExcelOption = Annotated[
    bool,
    flag("CSV for Excel: with a byte order mark, and times that it reads as times.", "--excel"),
]
JsonOption = Annotated[bool, flag("The same as --format json.", "--json")]
PagerOption = Annotated[
    bool, flag("Show what does not fit on the terminal in PAGER.", "--pager/--no-pager")
]
Since = Annotated[datetime | None, value("TIME", "From this date or time on, UTC.", parser=_moment)]
Until = Annotated[datetime | None, value("TIME", "Before this date or time, UTC.", parser=_moment)]
PortOption = Annotated[int, value("NUMBER", "The port; 0 for a free one.", min=0, max=65_535)]
WorldUntil = Annotated[
    datetime | None,
    value("DATE", "When the times of the rows end: such as 2026-11-30, or now.", parser=_until),
]


def option(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    """A parameter of a command, for `extended`."""
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def extended(
    command: Callable[..., Any],
    call: Callable[..., None],
    added: Sequence[inspect.Parameter],
    without: str = "",
) -> Callable[..., None]:
    """A command with more options; ``call`` gets all of them by name, and calls the command.

    Args:
        command: The function; its name and help stay.
        call: What is called instead.
        added: The further options, which come last.
        without: A parameter of the function that ``call`` gives, and the command line does not.
    """
    kept = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in inspect.signature(command, eval_str=True).parameters.values()
        if each.name != without
    ]
    parameters = [*kept, *added]

    def wrapped(**values: Any) -> None:
        call(**values)

    wrapped.__name__ = command.__name__
    wrapped.__doc__ = command.__doc__
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return wrapped


TextOrJson = StrEnum("TextOrJson", "TEXT JSON")
"""The values of ``--format`` of a command that prints no rows."""

TableOrJson = StrEnum("TableOrJson", "TABLE JSON")


def json_wanted(given: str | None, as_json: bool) -> bool:
    """Whether ``--format`` or ``--json`` asks for a document; an error if they do not agree."""
    if as_json and given not in (None, "json"):
        raise UnusableArgumentError(f"--json and --format {given} do not agree; give one")
    return as_json or given == "json"


def with_document(
    formats: type[StrEnum],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command that prints no rows ``--format`` and ``--json``, as ``as_json``."""
    people = next(iter(formats))
    about = typer.Option("--format", help="json is one document.", show_default=str(people))
    added = [
        option("shape", Annotated[formats | None, about]),
        option("as_json", JsonOption, False),
    ]

    def extend(command: Callable[..., None]) -> Callable[..., None]:
        def call(shape: StrEnum | None, as_json: bool, **values: Any) -> None:
            command(**values, as_json=json_wanted(shape, as_json))

        return extended(command, call, added, without="as_json")

    return extend
