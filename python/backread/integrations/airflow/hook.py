"""`BackreadHook`: creates clients from an Airflow connection."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import BaseHook  # type: ignore[import-not-found, unused-ignore]
from airflow.sdk.log import mask_secret  # type: ignore[import-not-found, unused-ignore]

from backread import AsyncClient, Client
from backread._client.arguments import refuse_options
from backread._client.options import ClientOptions
from backread.errors import BackreadError, ConfigurationError
from backread.integrations.airflow.connection import (
    CONNECTION_TYPE,
    DEFAULTS,
    FIELDS,
    STANDARD_FIELDS,
    Settings,
    read_settings,
)
from backread.integrations.airflow.failures import permanent
from backread.integrations.airflow.names import (
    IS_31,
    AirflowFailException,
    AirflowNotFoundException,
)

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["BackreadHook"]

C = TypeVar("C", Client, AsyncClient)

SECONDS_TO_TEST = 15.0

IN_CONNECTION = {
    "base_url": "it is the connection's host",
    "api_secret": "it is the connection's password",
    "vendor": "it is the connection's field vendor",
}


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
        TypeError: For an unknown option.
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
        refuse_options("BackreadHook", options, ClientOptions.__annotations__, IN_CONNECTION)
        self.backread_conn_id = backread_conn_id
        self._options = options

    def get_conn(self) -> Client:
        """A new `Client`; close it, or use it in a ``with`` block."""
        return self._client(Client, self._found(self.backread_conn_id))

    def get_async_client(self) -> AsyncClient:
        """A new `AsyncClient` for a task; in a trigger this would block the event loop."""
        return self._client(AsyncClient, self._found(self.backread_conn_id))

    async def aget_async_client(self) -> AsyncClient:
        """A new `AsyncClient` for triggers; awaits the connection."""
        try:
            connection = await self.aget_connection(self.backread_conn_id)
        except AirflowNotFoundException:
            raise self._not_found() from None
        if IS_31:
            # The 3.1 triggerer never answers masking requests from a thread; on the loop it masks
            # locally.
            return self._client(AsyncClient, connection)
        # Masking waits for Airflow's supervisor, which would block the event loop.
        return await asyncio.to_thread(self._client, AsyncClient, connection)

    def test_connection(self) -> tuple[bool, str]:
        """Whether one user can be read, and a message, for Airflow's test button."""
        try:
            with self.get_conn() as client:
                brief = client.with_options(
                    deadline=SECONDS_TO_TEST, max_retries=1, on_rate_limit="raise"
                )
                page = brief.users.page(limit=1)
                return True, f"{client.base_url} answers; number of users: {_count(page.total)}"
        except BackreadError as error:
            return False, permanent(error, self.backread_conn_id) or str(error)
        except AirflowFailException as error:
            return False, str(error)

    # Airflow 3.1 gets the form from the hook; later versions from the provider's description.
    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """How the connection's form shows the standard fields."""
        return {name.replace("-", "_"): value for name, value in STANDARD_FIELDS.items()}

    @classmethod
    def get_connection_form_widgets(cls) -> dict[str, Any]:
        """The form's fields for the connection's extra, by name."""
        import wtforms  # type: ignore[import-not-found, import-untyped, unused-ignore]

        kinds = {"integer": wtforms.IntegerField, "boolean": wtforms.BooleanField}
        return {
            name: (
                wtforms.PasswordField
                if field.format == "password"
                else kinds.get(field.kind, wtforms.StringField)
            )(field.label, description=field.description)
            for name, field in FIELDS.items()
        }

    def _found(self, backread_conn_id: str) -> Any:
        try:
            return self.get_connection(backread_conn_id)
        except AirflowNotFoundException:
            raise self._not_found() from None

    def _not_found(self) -> Exception:
        failure: Exception = AirflowFailException(
            f"there is no connection {self.backread_conn_id!r}; create one of type "
            f"{CONNECTION_TYPE!r}, or set backread_conn_id to another"
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
                **{**DEFAULTS, **settings.options, **self._options},
            )
        except ConfigurationError as error:
            raise AirflowFailException(permanent(error, self.backread_conn_id)) from None


def _mask(settings: Settings) -> None:
    for secret in settings.masked:
        mask_secret(secret)


def _count(total: int | None) -> str:
    return "unknown" if total is None else f"{total:,}"
