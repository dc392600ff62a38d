"""`BackreadHook`: the clients of an Airflow connection."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import BaseHook  # type: ignore[import-not-found, unused-ignore]
from airflow.sdk.log import mask_secret  # type: ignore[import-not-found, unused-ignore]

from backread import AsyncClient, Client
from backread._client.arguments import ClientOptions
from backread.errors import BackreadError, ConfigurationError
from backread.integrations.airflow.connection import (
    CONNECTION_TYPE,
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

OUTAGE_PATIENCE = 600.0
"""Seconds that a task waits while the whole service is down: it has more time than a person."""

SECONDS_TO_TEST = 15.0

OF_THE_CONNECTION = {"base_url": "host", "api_secret": "password", "vendor": "field vendor"}


class BackreadHook(BaseHook):  # type: ignore[misc, unused-ignore]
    """Makes clients from an Airflow connection of the type ``backread``.

    - ``backread_conn_id``: the connection, ``backread_default`` by default. Its host is the base
      URL, its password the API secret; its extra has the vendor word and the options of `Client`.
      What it leaves out comes from ``BACKREAD_BASE_URL``, ``BACKREAD_API_SECRET`` (only where the
      connection names no host) and ``BACKREAD_VENDOR``.
    - ``options``: options of `Client`, which go before those of the connection; TypeError for any
      other.

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
        _check_names(options)
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
        if IS_31:
            # Its triggerer never answers a thread that asks it to mask; on the loop it masks alone.
            return self._client(AsyncClient, connection)
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
        except BackreadError as error:
            return False, permanent(error, self.backread_conn_id) or str(error)
        except AirflowFailException as error:
            return False, str(error)

    # Airflow 3.1 asks the hook for its form; later ones read the provider's description.
    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """What the connection's form makes of the fields that every connection has."""
        return {name.replace("-", "_"): value for name, value in STANDARD_FIELDS.items()}

    @classmethod
    def get_connection_form_widgets(cls) -> dict[str, Any]:
        """The fields of the connection's form that stand in its extra, by their names."""
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
                **{"outage_patience": OUTAGE_PATIENCE, **settings.options, **self._options},
            )
        except ConfigurationError as error:
            raise AirflowFailException(permanent(error, self.backread_conn_id)) from None


def _check_names(options: Iterable[str]) -> None:
    """TypeError for the first that is no option of a client: what is misspelt is found at once."""
    known = ClientOptions.__annotations__
    for name in options:
        if name in known:
            continue
        if (field := OF_THE_CONNECTION.get(name)) is not None:
            hint = f"it is the connection's {field}"
        elif close := get_close_matches(name, known, 1):
            hint = f"did you mean {close[0]!r}?"
        else:
            hint = f"it has {', '.join(known)}"
        raise TypeError(f"BackreadHook has no option {name!r}: {hint}")


def _mask(settings: Settings) -> None:
    for secret in settings.masked:
        mask_secret(secret)


def _count(total: int | None) -> str:
    return "the service does not say" if total is None else f"{total:,}"
