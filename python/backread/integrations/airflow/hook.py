"""`BackreadHook`: the clients of an Airflow connection."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import BaseHook  # type: ignore[import-not-found, unused-ignore]
from airflow.sdk.exceptions import (  # type: ignore[import-not-found, unused-ignore]
    AirflowFailException,
    AirflowNotFoundException,
)
from airflow.sdk.log import mask_secret  # type: ignore[import-not-found, unused-ignore]

from backread import AsyncClient, Client
from backread.errors import BackreadError, ConfigurationError
from backread.integrations.airflow.connection import CONNECTION_TYPE, Settings, read_settings

if TYPE_CHECKING:
    from typing import Unpack

    from backread._arguments import ClientOptions

__all__ = ["BackreadHook"]

C = TypeVar("C", Client, AsyncClient)

SECONDS_TO_TEST = 15.0


class BackreadHook(BaseHook):  # type: ignore[misc, unused-ignore]
    """Makes clients from an Airflow connection of the type ``backread``.

    - ``backread_conn_id``: the connection, ``backread_default`` by default. Its host is the base
      URL, its password the API secret; its extra has the vendor word and the options of `Client`.
      What it leaves out comes from ``BACKREAD_BASE_URL``, ``BACKREAD_API_SECRET`` (only where the
      connection names no host) and ``BACKREAD_VENDOR``.
    - ``options``: options of `Client`, which go before those of the connection.

    The secret and the password of a proxy are masked in Airflow's logs. A connection that is not
    there, lacks something or is malformed is an ``AirflowFailException``: a retry would not mend
    it, so the task fails at once.
    """

    conn_name_attr = "backread_conn_id"
    default_conn_name = "backread_default"
    conn_type = CONNECTION_TYPE
    hook_name = "backread"

    def __init__(
        self, backread_conn_id: str = default_conn_name, **options: Unpack[ClientOptions]
    ) -> None:
        super().__init__()
        self.backread_conn_id = backread_conn_id
        self._options = options

    def get_conn(self) -> Client:
        """A new `Client`; close it, or use it in a ``with`` block."""
        return self._client(Client, self._found(self.backread_conn_id))

    def get_async_client(self) -> AsyncClient:
        """A new `AsyncClient`; for a task, not for a trigger, whose loop this would block."""
        return self._client(AsyncClient, self._found(self.backread_conn_id))

    async def aget_async_client(self) -> AsyncClient:
        """A new `AsyncClient`, the connection being awaited: for triggers."""
        try:
            connection = await self.aget_connection(self.backread_conn_id)
        except AirflowNotFoundException:
            raise self._not_found() from None
        # Masking asks Airflow's supervisor and waits for it, which a loop must not.
        return await asyncio.to_thread(self._client, AsyncClient, connection)

    def test_connection(self) -> tuple[bool, str]:
        """Whether one user can be read, and what was found or what to do: Airflow's test button."""
        try:
            with self.get_conn() as client:
                brief = client.with_options(
                    deadline=SECONDS_TO_TEST, max_retries=1, on_rate_limit="raise"
                )
                page = brief.users.page(limit=1)
                return True, f"{client.base_url} answers; users there: {_count(page.total)}"
        except (BackreadError, AirflowFailException) as error:
            return False, str(error)

    def _found(self, backread_conn_id: str) -> Any:
        try:
            return self.get_connection(backread_conn_id)
        except AirflowNotFoundException:
            raise self._not_found() from None

    def _not_found(self) -> Exception:
        failure: Exception = AirflowFailException(
            f"there is no connection {self.backread_conn_id!r}; make one of the type "
            f"{CONNECTION_TYPE!r}, or name another in backread_conn_id"
        )
        return failure

    def _client(self, kind: type[C], connection: Any) -> C:
        try:
            settings = read_settings(connection, os.environ)
            _mask(settings)
            return kind(
                settings.base_url,
                settings.api_secret,
                settings.vendor,
                **{**settings.options, **self._options},
            )
        except ConfigurationError as error:
            raise AirflowFailException(_named(error, self.backread_conn_id)) from None


def _mask(settings: Settings) -> None:
    for secret in settings.masked:
        mask_secret(secret)


def _named(error: ConfigurationError, backread_conn_id: str) -> str:
    text, name = str(error), f"the connection {backread_conn_id!r}"
    return text if text.startswith(name) else f"{name}: {text}"


def _count(total: int | None) -> str:
    return "the service does not say" if total is None else f"{total:,}"
