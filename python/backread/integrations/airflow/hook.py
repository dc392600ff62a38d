"""`BackreadHook`: creates clients from an Airflow connection."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

from airflow.sdk import BaseHook  # type: ignore[import-not-found, unused-ignore]
from airflow.sdk.exceptions import (  # type: ignore[import-not-found, unused-ignore]
    AirflowFailException,
    AirflowNotFoundException,
)
from airflow.sdk.log import mask_secret  # type: ignore[import-not-found, unused-ignore]

from backread import AsyncClient, Client
from backread._client.options import ClientOptions
from backread.errors import BackreadError, ConfigurationError
from backread.integrations.airflow.connection import (
    CONNECTION_TYPE,
    DEFAULTS,
    permanent,
    read_settings,
)

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["BackreadHook"]

C = TypeVar("C", Client, AsyncClient)

SECONDS_TO_TEST = 15.0


class BackreadHook(BaseHook):  # type: ignore[misc, unused-ignore]
    """Creates clients from an Airflow connection of the type ``backread``.

    The secret and the password of a proxy are masked in Airflow's logs.

    Args:
        backread_conn_id: The connection. Its host is the base URL, its password the API secret; its
            extra has the vendor word and the options of `Client`. Missing values come from
            ``BACKREAD_BASE_URL``, ``BACKREAD_API_SECRET`` (only if the connection names no host)
            and ``BACKREAD_VENDOR``.
        options: Options of `Client`, which override the connection's.

    Raises:
        TypeError: From the methods, for an unknown option.
        AirflowFailException: From the methods, if the connection is missing, incomplete or
            malformed. It fails the task at once, because a retry would not help.

    Example:
        >>> with BackreadHook("chats", max_retries=3).get_conn() as client:
        ...     users = client.users.list().to_list()
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
        return self._client(Client)

    def get_async_client(self) -> AsyncClient:
        """A new `AsyncClient`; make it before the event loop starts, since Airflow's look-up of the
        connection blocks.
        """
        return self._client(AsyncClient)

    def test_connection(self) -> tuple[bool, str]:
        """Whether one user can be read, and a message, for Airflow's test button."""
        try:
            with self.get_conn() as client:
                brief = client.with_options(
                    deadline=SECONDS_TO_TEST, max_retries=1, on_rate_limit="raise"
                )
                total = brief.users.page(limit=1).total
                count = "unknown" if total is None else f"{total:,}"
                return True, f"{client.base_url} answers; number of users: {count}"
        except BackreadError as error:
            return False, permanent(error, self.backread_conn_id) or str(error)
        except AirflowFailException as error:
            return False, str(error)

    def _client(self, kind: type[C]) -> C:
        try:
            settings = read_settings(self.get_connection(self.backread_conn_id), os.environ)
            for secret in settings.masked:
                mask_secret(secret)
            return kind(
                settings.base_url,
                settings.api_secret,
                settings.vendor,
                **{**DEFAULTS, **settings.options, **self._options},
            )
        except AirflowNotFoundException:
            raise AirflowFailException(
                f"there is no connection {self.backread_conn_id!r}; create one of type "
                f"{CONNECTION_TYPE!r}, or set backread_conn_id to another"
            ) from None
        except ConfigurationError as error:
            raise AirflowFailException(permanent(error, self.backread_conn_id)) from None
