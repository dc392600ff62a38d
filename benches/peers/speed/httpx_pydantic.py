"""httpx with the models of pydantic."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import httpx
import pages
from measured import measure
from pydantic import BaseModel


class Attribute(BaseModel):
    """A custom property of a user."""

    name: str | None
    value: str | None


class User(BaseModel):
    """A user."""

    id: int
    name: str | None = None
    email: str | None = None
    reference: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    online_at: datetime | None = None
    last_url: str | None = None
    user_attributes: list[Attribute] | None = None


class Sender(BaseModel):
    """A sender of either kind."""

    id: int
    name: str | None = None
    email: str | None = None
    forename: str | None = None
    surname: str | None = None
    picture_thumb_url: str | None = None


class Message(BaseModel):
    """A message."""

    id: int
    body: str | None = None
    read_by_user: bool | None = None
    read_by_operator: bool | None = None
    created_at: datetime | None = None
    file_url: str | None = None
    auto_invitation: bool | None = None
    sender_type: str | None = None
    sender: Sender | None = None


class UsersPage(BaseModel):
    """A page of users."""

    total: int
    users: list[User]


class MessagesPage(BaseModel):
    """A page of messages."""

    total: int
    messages: list[Message]


def users(body: bytes) -> tuple[int, Sequence[User]]:
    """A page of users from its bytes."""
    page = UsersPage.model_validate_json(body)
    return page.total, page.users


def messages(body: bytes) -> tuple[int, Sequence[Message]]:
    """A page of messages from its bytes."""
    page = MessagesPage.model_validate_json(body)
    return page.total, page.messages


async def main() -> list[Any]:
    """Reads all."""
    url, most = pages.arguments()
    async with httpx.AsyncClient(base_url=url, headers=pages.HEADERS) as client:

        async def fetch(path: str) -> bytes:
            response = await client.get(path)
            response.raise_for_status()
            return response.content

        return await pages.read(fetch, users, messages, most, lambda user: user.id)


measure(lambda: pages.run(main()))
