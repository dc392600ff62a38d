"""The options that say which service to read and how, shared by every command that reads it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec

import typer

from backread._client.option_kinds import FILE, SWITCH
from backread._client.options import ARGUMENTS, Option
from backread._client.secret import read_secret_file
from backread.cli.paths import to_read

if TYPE_CHECKING:
    from backread._client.client import Client

__all__ = ["Connection", "with_connection"]

P = ParamSpec("P")


class Connection:
    """The arguments of a client, from the command line and the environment."""

    def __init__(self, *, secret_file: Path | None = None, **given: Any) -> None:
        self._secret_file = secret_file
        self._given = given

    def client(self) -> Client:
        """A `Client` with these arguments, and the defaults for all others.

        Raises:
            ConfigurationError: If an argument is missing or invalid.
        """
        from backread._client.client import Client

        file = self._secret_file
        secret = None if file is None else read_secret_file(file, "--secret-file")
        return Client(api_secret=secret, **self._given)


def with_connection(command: Callable[Concatenate[Connection, P], None]) -> Callable[..., None]:
    """Gives a command the client's options, and calls it with a `Connection` first."""
    client_options = [
        _secret_file() if name == "api_secret" else _parameter(name, option)
        for name, option in ARGUMENTS.items()
        if option.on_command_line
    ]
    parameters = [
        *(
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for each in list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        ),
        *client_options,
    ]

    def wrapped(**values: Any) -> None:
        given = {option.name: values.pop(option.name) for option in client_options}
        secret_file = given.pop("secret_file")
        options = {
            name: value if ARGUMENTS[name].kind is SWITCH else value[0]
            for name, value in given.items()
            if value
        }
        command(Connection(secret_file=secret_file, **options), **values)  # type: ignore[call-arg]

    wrapped.__name__ = command.__name__
    wrapped.__doc__ = command.__doc__
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return wrapped


def _parameter(name: str, option: Option) -> inspect.Parameter:
    default = option.default_in_words()
    note = "; ".join(each for each in (default, option.note) if each)
    # Its environment variable is shown anyway.
    shown = f" [default: {note}]" if note and "`BACKREAD_" not in default else ""
    settings: dict[str, Any] = {"help": f"{option.help}.{shown}".replace("`", "")}
    if option.kind is not SWITCH:
        settings.update(metavar=option.kind.metavar, parser=_parser(option))
    return _keyword(name, bool if option.kind is SWITCH else str | None, **settings)


def _secret_file() -> inspect.Parameter:
    return _keyword(
        "secret_file",
        Path | None,
        help="A file with the API Secret Key, instead of BACKREAD_API_SECRET.",
        metavar="FILE",
        parser=to_read,
    )


def _keyword(name: str, annotation: Any, **settings: Any) -> inspect.Parameter:
    information = typer.Option(
        "--" + name.replace("_", "-"),
        envvar=f"BACKREAD_{name.upper()}",
        show_default=False,
        **settings,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if annotation is bool else None,
        annotation=Annotated[annotation, information],
    )


def _parser(option: Option) -> Callable[[str], tuple[Any]]:
    """Reads the option's text; in a tuple, as the value None is not the option left out."""

    def parse(text: str) -> tuple[Any]:
        if option.kind is FILE:
            return (to_read(text),)
        try:
            return (option.kind.read(text),)
        except ValueError as error:
            raise typer.BadParameter(f"it must be {error}") from None

    return parse
