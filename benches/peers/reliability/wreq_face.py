"""One user by wreq."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from settings import Settings
from wreq import Client as AsyncClient
from wreq.blocking import Client, Response
from wreq.redirect import Policy

SYNC = True


def options(settings: Settings) -> dict[str, Any]:
    """The options of a client."""
    return {
        "headers": settings.headers,
        "timeout": timedelta(seconds=settings.timeout),
        "redirect": Policy.limited(10),
    }


def client(settings: Settings) -> Client:
    """A client that waits."""
    return Client(**options(settings))


def response(client: Client, settings: Settings) -> Response:
    """What a call gives."""
    response = client.get(settings.url)
    response.raise_for_status()
    return response


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
    return await response.json()
