"""The options that say which service to read and how, shared by every command that reads it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec, get_type_hints

import typer

from backread._client.secret import secret_in
from backread.cli.paths import to_read

__all__ = ["Connection", "with_connection"]

P = ParamSpec("P")


def _option(
    name: str,
    help_text: str,
    *,
    minimum: float | None = None,
    metavar: str,
    parser: Callable[[str], Any] | None = None,
) -> Any:
    variable = "BACKREAD_" + name.removeprefix("--").replace("-", "_").upper()
    return typer.Option(
        name,
        envvar=variable,
        help=help_text,
        min=minimum,
        metavar=metavar,
        parser=parser,
        show_default=False,
    )


@dataclass(frozen=True, slots=True)
class Connection:
    """One field for each option; None leaves the client's default."""

    base_url: Annotated[
        str | None, _option("--base-url", "Where the service is.", metavar="URL")
    ] = None
    vendor: Annotated[
        str | None, _option("--vendor", "The vendor word of its media type.", metavar="WORD")
    ] = None
    secret_file: Annotated[
        Path | None,
        _option(
            "--secret-file",
            "A file with the API secret; otherwise BACKREAD_API_SECRET has it.",
            metavar="FILE",
            parser=to_read,
        ),
    ] = None
    timeout: Annotated[
        float | None,
        _option("--timeout", "For one attempt [30].", minimum=0, metavar="SECONDS"),
    ] = None
    deadline: Annotated[
        float | None,
        _option("--deadline", "For the whole call with its retries.", minimum=0, metavar="SECONDS"),
    ] = None
    max_retries: Annotated[
        int | None,
        _option("--max-retries", "Attempts after the first one [5].", minimum=0, metavar="NUMBER"),
    ] = None
    max_concurrency: Annotated[
        int | None,
        _option("--max-concurrency", "Requests in flight [16].", minimum=1, metavar="NUMBER"),
    ] = None
    rate_limit: Annotated[
        float | None,
        _option("--rate-limit", "Requests per second.", minimum=0, metavar="NUMBER"),
    ] = None
    max_response_bytes: Annotated[
        int | None,
        _option(
            "--max-response-bytes",
            "The largest answer once decoded [67108864].",
            minimum=1,
            metavar="BYTES",
        ),
    ] = None
    outage_patience: Annotated[
        float | None,
        _option(
            "--outage-patience",
            "How long to wait while the whole service is down [60; sync: 600].",
            minimum=0,
            metavar="SECONDS",
        ),
    ] = None
    proxy: Annotated[
        str | None, _option("--proxy", "A proxy; otherwise the environment's.", metavar="URL")
    ] = field(default=None, repr=False)  # it may hold a password
    ca_bundle: Annotated[
        Path | None,
        _option(
            "--ca-bundle",
            "PEM certificates to trust besides the usual.",
            metavar="FILE",
            parser=to_read,
        ),
    ] = None
    allow_http: Annotated[
        bool,
        typer.Option(
            "--allow-http",
            envvar="BACKREAD_ALLOW_HTTP",
            help="Send the secret over plain http to another machine.",
        ),
    ] = False

    def client(self) -> Any:
        """A `Client` with these options; `ConfigurationError` where something is missing."""
        from backread._client.client import Client

        names = {one.name for one in fields(self)} - {"base_url", "vendor", "secret_file"}
        options = {name: getattr(self, name) for name in sorted(names)}
        given = {name: value for name, value in options.items() if value is not None}
        return Client(self.base_url, self._secret(), self.vendor, **given)

    def _secret(self) -> str | None:
        return None if self.secret_file is None else secret_in(self.secret_file, "--secret-file")


def with_connection(command: Callable[Concatenate[Connection, P], None]) -> Callable[..., None]:
    """Gives a command the options of `Connection`, and calls it with one as its first argument."""
    kinds = get_type_hints(Connection, include_extras=True)
    shared = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=one.default,
            annotation=kinds[one.name],
        )
        for one in fields(Connection)
    ]
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    parameters = [
        *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own),
        *shared,
    ]

    def wrapped(**values: Any) -> None:
        connection = Connection(**{each.name: values.pop(each.name) for each in shared})
        command(connection, **values)  # type: ignore[call-arg]

    wrapped.__name__ = command.__name__
    wrapped.__doc__ = command.__doc__
    wrapped.__annotations__ = {each.name: each.annotation for each in parameters}
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return wrapped
