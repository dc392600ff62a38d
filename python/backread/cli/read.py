"""``users``, ``user``, ``messages``, ``message``: the four reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from backread._client.arguments import LARGEST
from backread.cli.connection import Connection, with_connection
from backread.cli.exits import UnusableArgumentError
from backread.cli.output import Csv, Format, format_of, write_item, write_listing
from backread.cli.paths import to_write
from backread.cli.rows import MESSAGE_COLUMNS, USER_COLUMNS, as_json, message_row, user_row
from backread.errors import DecodeError

__all__ = ["csv_options", "message", "messages", "user", "users"]

FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="JSON lines as the service sent them, or columns.",
        show_default="the suffix of --output, else json",
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option("--limit", min=1, max=LARGEST, metavar="NUMBER", help="The most rows to read."),
]
StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Exit with 6 if the list is not proved complete."),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        parser=to_write,
        help="Write here, completely or not at all.",
    ),
]
RawOption = Annotated[
    bool,
    typer.Option("--raw-csv", help="CSV with unchanged texts, even spreadsheet formulas."),
]
ExcelOption = Annotated[
    bool, typer.Option("--excel", help="CSV that Excel opens as UTF-8, with a byte order mark.")
]
UserId = Annotated[
    int, typer.Argument(min=0, metavar="USER_ID", show_default=False, help="The user's id.")
]
MessageId = Annotated[
    int, typer.Argument(min=0, metavar="MESSAGE_ID", show_default=False, help="The message's id.")
]


@with_connection
def users(
    connection: Connection,
    shape: FormatOption = None,
    limit: LimitOption = None,
    strict: StrictOption = False,
    output: OutputOption = None,
    raw_csv: RawOption = False,
    excel: ExcelOption = False,
) -> None:
    """Lists the users."""
    chosen = format_of(shape, output)
    options = csv_options(chosen, raw_csv, excel)
    with connection.client() as client:
        listing = client.users.list(as_dict=chosen is Format.JSON, strict=strict, max_items=limit)
        write_listing(listing, chosen, output, USER_COLUMNS, user_row, options)


@with_connection
def user(connection: Connection, user_id: UserId) -> None:
    """Shows one user as a JSON object."""
    with connection.client() as client:
        write_item(named(client.users.get(user_id, as_dict=True), user_id))


@with_connection
def messages(
    connection: Connection,
    user_id: Annotated[
        int | None,
        typer.Argument(min=0, metavar="USER_ID", show_default=False, help="The user's id."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="The messages of every user.")] = False,
    shape: FormatOption = None,
    limit: LimitOption = None,
    strict: StrictOption = False,
    output: OutputOption = None,
    raw_csv: RawOption = False,
    excel: ExcelOption = False,
) -> None:
    """Lists the messages of one user, or of every user.

    The order is the service's. With --all, each message has its user_id.
    """
    if every == (user_id is not None):
        raise UnusableArgumentError("give either a user id or --all")
    chosen = format_of(shape, output)
    options = csv_options(chosen, raw_csv, excel)
    as_dict = chosen is Format.JSON
    with connection.client() as client:
        if user_id is None:
            listing = client.messages.all(as_dict=as_dict, strict=strict, max_items=limit)
        else:
            listing = client.messages.list(user_id, as_dict=as_dict, strict=strict, max_items=limit)
        write_listing(
            listing, chosen, output, MESSAGE_COLUMNS, message_row, options, users_named=every
        )


@with_connection
def message(connection: Connection, user_id: UserId, message_id: MessageId) -> None:
    """Shows one message of one user as a JSON object."""
    with connection.client() as client:
        write_item(named(client.messages.get(user_id, message_id, as_dict=True), message_id))


def named(item: Mapping[str, object], asked: int) -> Mapping[str, object]:
    """The object, if it has the id that was asked for.

    `DecodeError` for another one, such as an error that came with status 200.
    """
    if str(item.get("id")) == str(asked):
        return item
    snippet = as_json(item)[:80]
    raise DecodeError(
        f"another object than the one with id {asked} came, near {snippet!r}; check --base-url "
        "and the secret",
        path="$.id",
        snippet=snippet,
    )


def csv_options(shape: Format, raw: bool, excel: bool) -> Csv:
    """How CSV is written; `UnusableArgumentError` for an option of CSV with another format."""
    if (raw or excel) and shape is not Format.CSV:
        option = "--raw-csv" if raw else "--excel"
        raise UnusableArgumentError(f"{option} needs CSV; add --format csv or --output FILE.csv")
    return Csv(raw, excel)
