"""One user by httpx."""

from __future__ import annotations

from typing import Any

from httpx import AsyncClient, Client, Response
from settings import Settings

SYNC = True


def options(settings: Settings) -> dict[str, Any]:
    """The options of a client."""
    return {
        "headers": settings.headers,
        "timeout": settings.timeout,
        "follow_redirects": True,
    }


def client(settings: Settings) -> Client:
    """A client that waits."""
    return Client(**options(settings))


def response(client: Client, settings: Settings) -> Response:
    """What a call gives."""
    return client.get(settings.url).raise_for_status()


def get(client: Client, settings: Settings) -> Any:
    """The user."""
    return response(client, settings).json()


async def async_client(settings: Settings) -> AsyncClient:
    """A client that is awaited."""
    return AsyncClient(**options(settings))


async def async_get(client: AsyncClient, settings: Settings) -> Any:
    """The user."""
    response = await client.get(settings.url)
    response.raise_for_status()
    return response.json()
