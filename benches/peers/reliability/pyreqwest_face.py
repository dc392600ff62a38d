"""One user by pyreqwest."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pyreqwest.client import Client as AsyncClient
from pyreqwest.client import ClientBuilder, SyncClient, SyncClientBuilder
from pyreqwest.response import SyncResponse
from settings import Settings

SYNC = True


def client(settings: Settings) -> SyncClient:
    """A client that waits."""
    builder = SyncClientBuilder().default_headers(settings.headers).error_for_status()
    return builder.timeout(timedelta(seconds=settings.timeout)).build()


def response(client: SyncClient, settings: Settings) -> SyncResponse:
    """What a call gives."""
    return client.get(settings.url).build().send()


def get(client: SyncClient, settings: Settings) -> Any:
    """The user."""
    return response(client, settings).json()


async def async_client(settings: Settings) -> AsyncClient:
    """A client that is awaited."""
    builder = ClientBuilder().default_headers(settings.headers).error_for_status()
    return builder.timeout(timedelta(seconds=settings.timeout)).build()


async def async_get(client: AsyncClient, settings: Settings) -> Any:
    """The user."""
    response = await client.get(settings.url).build().send()
    return await response.json()
