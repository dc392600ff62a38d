"""The options that say which service to read and how, shared by every command that reads it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backread._client.option_kinds import FILE, SWITCH
from backread._client.options import ARGUMENTS, Option
from backread._client.secret import read_secret_file
from backread._client.services import REQUIRED, find_service, read_services
from backread._display.words import repaired_text
from backread.cli.arguments import extended, option
from backread.cli.exits import OPTIONS, UnusableArgumentError
from backread.cli.paths import to_read
from backread.cli.stderr import say
from backread.errors import BackreadError, ConfigurationError

if TYPE_CHECKING:
    from backread._client.client import Client


CONNECTION = "Connection (or a variable: BACKREAD_TIMEOUT for --timeout)"
"""The group of the options that say which service to read, and how."""

SECRET_FILE = Option(FILE, "A file with the API Secret Key, instead of BACKREAD_API_SECRET")
GIVEN = {
    "secret_file" if name == "api_secret" else name: SECRET_FILE if name == "api_secret" else each
    for name, each in ARGUMENTS.items()
    if each.on_command_line
}
"""The client's arguments on the command line, where the secret is in a file."""

SETTINGS = {
    "base_url": "the service's address, such as https://chat.example.com",
    "api_secret": "the API Secret Key, from the page Integration (General) of its console",
    "vendor": "the vendor word of the service's media type, application/vnd.WORD.v1+json",
}


class Connection:
    """The arguments of a client, from the command line and the environment.

    With ``service``, they are from the command line and the config file.

    Attributes:
        service: The name of a service of the config file.
        secret_file: The file with the secret, if one was named.
        sources: The option or variable that each argument came from.
    """

    def __init__(
        self,
        *,
        service: str | None = None,
        secret_file: Path | None = None,
        sources: Mapping[str, str] | None = None,
        **given: Any,
    ) -> None:
        self.service = service
        self.secret_file = secret_file
        self.sources = sources or {}
        self._given = given
        self._clients: list[Client] = []

    def client(self) -> Client:
        """A `Client` with these arguments, and the defaults for all others.

        Raises:
            ConfigurationError: If an argument is invalid.
            UnusableArgumentError: If settings are missing, or the named service cannot be used.
        """
        self._clients.append(client := self._client())
        return client

    def say_repaired_text(self) -> None:
        """Writes a line on stderr if text that its clients read was not valid."""
        if said := repaired_text(sum(each._native.repaired_text for each in self._clients)):
            say(said)

    def _client(self) -> Client:
        from backread._client.client import Client

        if self.service is not None:
            try:
                return Client(service=self.service, **self._given)
            except ConfigurationError as error:
                # Its text has the names of the file's settings, which are not options.
                raise UnusableArgumentError(str(error)) from None
        file = self.secret_file
        secret = None if file is None else read_secret_file(file, "--secret-file")
        refuse_missing({"api_secret": secret, **self._given})
        return Client(api_secret=secret, **self._given)

    def proxy(self) -> str | None:
        """The proxy's URL, which may have a password; None if the environment decides."""
        options = {} if self.service is None else find_service(self.service).options
        return {**options, **self._given}.get("proxy")


def with_connection(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the client's options, and a `Connection` as ``connection``."""
    client_options = [_service(), *(_parameter(name, each) for name, each in GIVEN.items())]
    context = option("context", typer.Context, inspect.Parameter.empty)

    def call(context: typer.Context, **values: Any) -> None:
        # Texts, which are read only if they are used: with --service, those of the environment
        # are not.
        given = {each.name: values.pop(each.name) for each in client_options}
        service = given.pop("service")
        if service is not None:
            given = _for_service(context, given)
        options: dict[str, Any] = {
            name: value if value is True else _read(context, name, value)
            for name, value in given.items()
            if value is not None and value is not False
        }
        connection = Connection(
            service=service,
            sources={name: _source(context, name) for name in options},
            **options,
        )
        try:
            command(connection=connection, **values)
        finally:
            connection.say_repaired_text()

    return extended(command, call, [context, *client_options], without="connection")


def _for_service(context: typer.Context, given: dict[str, Any]) -> dict[str, Any]:
    """The options of the command line; those of the environment belong to another service."""
    named = {
        name: value for name, value in given.items() if _source(context, name) == _option(name)
    }
    if refused := [_option(name) for name in REQUIRED if name in named]:
        raise UnusableArgumentError(
            f"--service brings its own address and secret: leave out {', '.join(refused)}"
        )
    return named


def _read(context: typer.Context, name: str, text: str) -> Any:
    """Parses an option; raises a BadParameter that names it and says what it accepts."""
    try:
        kind = GIVEN[name].kind
        return to_read(text) if kind is FILE else kind.read(text)
    except typer.BadParameter as error:
        said = error.message
    except ValueError as error:
        said = f"it must be {error}"
    hint = f"{_option(name)} or BACKREAD_{name.upper()}"
    raise typer.BadParameter(said, ctx=context, param_hint=hint)


def _source(context: typer.Context, name: str) -> str:
    """The option or the variable that a value came from."""
    source = context.get_parameter_source(name)
    if source is not None and source.name == "COMMANDLINE":
        return _option(name)
    return f"BACKREAD_{name.upper()}"


def complete_service(incomplete: str) -> list[str]:
    """The services whose names begin with a text, for the shell's completion."""
    try:
        return [name for name in read_services() if name.startswith(incomplete)]
    except BackreadError:
        return []


def _service() -> inspect.Parameter:
    information = typer.Option(
        "--service",
        metavar="NAME",
        autocompletion=complete_service,
        show_default=False,
        rich_help_panel=CONNECTION,
        help="A service of the config file; the environment's BACKREAD_ settings are not used.",
    )
    return option("service", Annotated[str | None, information])


def _parameter(name: str, given: Option) -> inspect.Parameter:
    default = given.default_in_words()
    note = ", ".join(each for each in (default, given.note) if each).replace("`", "")
    is_switch = given.kind is SWITCH
    information = typer.Option(
        _option(name),
        envvar=f"BACKREAD_{name.upper()}",
        show_envvar=False,
        rich_help_panel=CONNECTION,
        help=f"{given.help}.".replace("`", ""),
        # Its environment variable is shown anyway.
        show_default=note if note and "`BACKREAD_" not in default else False,
        metavar=None if is_switch else given.kind.metavar,
        parser=None if is_switch else str,
    )
    return option(
        name,
        Annotated[bool if is_switch else str | None, information],
        False if is_switch else None,
    )


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def refuse_missing(given: Mapping[str, object]) -> None:
    """Raises `UnusableArgumentError` if the service is not configured.

    Args:
        given: The client's arguments from the command line, by their names.
    """
    missing = [
        f"BACKREAD_{name.upper()} or {OPTIONS[name]} ({what})"
        for name, what in SETTINGS.items()
        if not given.get(name) and not os.environ.get(f"BACKREAD_{name.upper()}", "").strip()
    ]
    if missing:
        *others, last = missing
        listed = f"{', '.join(others)} and {last}" if others else last
        raise UnusableArgumentError(
            f"the service is not configured: set {listed}; to try backread without a service, run "
            "backread demo"
        )
