"""One user by backread."""

from __future__ import annotations

from typing import Any

from settings import Settings

from backread import AsyncClient, Client, User

SYNC = True


def options(settings: Settings) -> dict[str, Any]:
    """The options of a client; a deadline bounds all its attempts."""
    return {
        "base_url": settings.base_url,
        "api_secret": settings.secret,
        "vendor": "bench",
        "timeout": settings.timeout,
        "deadline": settings.deadline,
        "user_agent": settings.agent,
    }


def client(settings: Settings) -> Client:
    """A client that waits."""
    return Client(**options(settings))


def response(client: Client, settings: Settings) -> User:
    """What a call gives."""
    return client.users.get(settings.user)


def get(client: Client, settings: Settings) -> Any:
    """The user, with the fields that the interface does not name."""
    return plain(client.users.get(settings.user))


async def async_client(settings: Settings) -> AsyncClient:
    """A client that is awaited."""
    return AsyncClient(**options(settings))


async def async_get(client: AsyncClient, settings: Settings) -> Any:
    """The user, with the fields that the interface does not name."""
    return plain(await client.users.get(settings.user))


def plain(user: User) -> dict[str, Any]:
    """A user as the others give it."""
    known = {name: getattr(user, name) for name in ("id", "name", "email", "reference")}
    return known | dict(user.extra)
