"""One user by aiohttp, which has no face that waits."""

from __future__ import annotations

from typing import Any

from aiohttp import ClientResponse, ClientSession, ClientTimeout
from settings import Settings

SYNC = False


async def async_client(settings: Settings) -> ClientSession:
    """A client that is awaited."""
    timeout = ClientTimeout(total=settings.timeout)
    return ClientSession(headers=settings.headers, timeout=timeout, raise_for_status=True)


async def async_response(client: ClientSession, settings: Settings) -> ClientResponse:
    """What a call gives."""
    async with client.get(settings.url) as response:
        await response.read()
        return response


async def async_get(client: ClientSession, settings: Settings) -> Any:
    """The user."""
    async with client.get(settings.url) as response:
        return await response.json()
