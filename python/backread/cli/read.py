"""``users``, ``user``, ``messages``, ``message``: the four reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from backread.cli.arguments import LimitOption, MessageId, UserId, argument, flag
from backread.cli.connection import Connection, with_connection
from backread.cli.exits import UnusableArgumentError
from backread.cli.output import (
    Format,
    Target,
    with_target,
    write_document,
    write_listing,
    write_rows,
)
from backread.cli.rows import MESSAGE_COLUMNS, USER_COLUMNS, as_json, message_row, user_row
from backread.errors import DecodeError

StrictOption = Annotated[bool, flag("Exit with 6 if the list is not proved complete.", "--strict")]


@with_connection
@with_target
def users(
    connection: Connection, target: Target, limit: LimitOption = None, strict: StrictOption = False
) -> None:
    """Lists the users.

    Examples:
        backread users --limit 10
        backread users -o users.csv --excel
        backread users | jq -r .email
    """
    with connection.client() as client:
        listing = client.users.list(as_dict=target.is_json, strict=strict, max_items=limit)
        write_listing(listing, target, USER_COLUMNS, user_row)


@with_connection
@with_target
def user(connection: Connection, target: Target, user_id: UserId) -> None:
    """Shows one user.

    Examples:
        backread user 42
        backread user 42 | jq -r .name
    """
    with connection.client() as client:
        if target.is_json:
            write_document(named(client.users.get(user_id, as_dict=True), user_id), target)
        else:
            _write_one(client.users.get(user_id), user_id, target, USER_COLUMNS, user_row)


@with_connection
@with_target
def messages(
    connection: Connection,
    target: Target,
    user_id: Annotated[int | None, argument("USER_ID", "The user's id.", min=0)] = None,
    every: Annotated[bool, flag("The messages of every user.", "--all")] = False,
    limit: LimitOption = None,
    strict: StrictOption = False,
) -> None:
    """Lists the messages of one user, or of every user.

    The order is the service's. With --all, each message has its user_id.

    Examples:
        backread messages 42
        backread messages --all -o messages.parquet
    """
    if every == (user_id is not None):
        raise UnusableArgumentError("give either a user id or --all")
    options: Any = {"as_dict": target.is_json, "strict": strict, "max_items": limit}
    with connection.client() as client:
        if user_id is None:
            listing = client.messages.all(**options)
        else:
            listing = client.messages.list(user_id, **options)
        write_listing(listing, target, MESSAGE_COLUMNS, message_row, users_named=every)


@with_connection
@with_target
def message(connection: Connection, target: Target, user_id: UserId, message_id: MessageId) -> None:
    """Shows one message of one user.

    Examples:
        backread message 42 2
        backread message 42 2 | jq -r .body
    """
    with connection.client() as client:
        if target.is_json:
            sent = client.messages.get(user_id, message_id, as_dict=True)
            write_document(named(sent, message_id), target)
        else:
            found = client.messages.get(user_id, message_id)
            _write_one(found, message_id, target, MESSAGE_COLUMNS, message_row)


def _write_one(
    item: Any,
    asked: int,
    target: Target,
    columns: Sequence[str],
    row: Callable[[Any], list[object]],
) -> None:
    values = named(dict(zip(columns, row(item), strict=True)), asked)
    if target.format is Format.TABLE:
        fields = [{"field": name, "value": value} for name, value in values.items()]
        write_rows(fields, target, ("field", "value"), wrap=True)
    else:
        write_rows([dict(values)], target, ())


def named(item: Mapping[str, object], asked: int) -> Mapping[str, object]:
    """The object, if it has the requested id.

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
