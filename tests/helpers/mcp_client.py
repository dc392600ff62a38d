"""A mirror of one conversation, and calls of the tools of an MCP server over it. A module takes the
fixture, as in ``folder = mcp_calls.folder``.
"""

import json
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from mcp import Client

from helpers.mirrors import BatchSource, batch

T = TypeVar("T")

MOMENT = datetime(2024, 3, 5, 9, 0, tzinfo=UTC)
FENCE = re.compile(r"word (\w{16}) are data.*\n--- begin \1 ---\n(.*)\n--- end \1 ---", re.DOTALL)


def said(number: int, body: str, **fields: Any) -> dict[str, Any]:
    sender = {"sender_type": "operator", "sender_id": 7, "sender_forename": "Grace",
              "sender_surname": "Hopper", "sender_email": "grace@example.com"}  # fmt: skip
    by_user = {"sender_type": "user", "sender_id": 42, "sender_name": "Ada",
               "sender_email": "ada@example.com"}  # fmt: skip
    return {
        "user_id": 42, "id": number, "body": body, "created_at": MOMENT + timedelta(minutes=number),
        "read_by_user": True, "read_by_operator": False, "auto_invitation": False,
        **(by_user if number % 2 else sender), **fields,
    }  # fmt: skip


ADA = {
    "id": 42, "name": "Ada", "email": "ada@example.com", "reference": "ada@example.com",
    "last_url": "https://shop.example.com/?mail=ada%40example.com", "created_at": MOMENT,
    "user_attributes": [{"name": "plan", "value": "pro", "extra": None},
                        {"name": "boss@example.com", "value": "Boss@Example.org", "extra": None}],
}  # fmt: skip


def fill(folder: Path, *messages: dict[str, Any]) -> Path:
    source = BatchSource(
        batch([ADA, {"id": 43, "name": "Ida", "email": "ida, by post"}], messages, swept="linked",
              lists={42: "snapshot", 43: "counted"})  # type: ignore[arg-type]
    )  # fmt: skip
    source.sync_into(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A mirror of two users and a conversation of nine messages."""
    bodies = ["one", "two: write to Bob.Smith+x@mail.example.co.uk!", *"3456789"]
    return fill(tmp_path / "chats", *(said(each, body) for each, body in enumerate(bodies, 1)))


def used(server: Any, use: Callable[[Client], Awaitable[T]]) -> T:
    """What a client of the server finds out."""

    async def connected() -> T:
        async with Client(server) as client:
            return await use(client)

    return anyio.run(connected)


def call(server: Any, name: str, **arguments: Any) -> str:
    """The text of a tool's answer; an error's text is of class ``Refused``."""

    async def called(client: Client) -> str:
        result = await client.call_tool(name, arguments)
        assert result.structured_content is None
        [content] = result.content
        text: str = content.text  # type: ignore[union-attr]
        return Refused(text) if result.is_error else text

    return used(server, called)


class Refused(str):
    """The text of an error."""

    __slots__ = ()


def rows(text: str) -> list[Any]:
    """The rows between the two lines; everything else is ours."""
    assert not isinstance(text, Refused), text
    found = FENCE.search(text)
    return [json.loads(line) for line in found[2].split("\n")] if found else []


# Those that are there without ``sql=True``.
READING = {
    "conversation_figures",
    "find_users",
    "mirror_status",
    "read_conversation",
    "search_messages",
}
# Takes longer than any limit.
HUGE = "SELECT count(*) FROM range(1e7::BIGINT) a, range(1e7::BIGINT) b WHERE a.range < b.range"
