"""`NewMessagesTrigger`: looks for new messages from the triggerer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import (  # type: ignore[import-not-found, unused-ignore]
    BaseTrigger,
    TriggerEvent,
)

from backread.errors import (
    AuthenticationError,
    BackreadError,
    PermissionDeniedError,
    RateLimitError,
)
from backread.integrations.airflow.hook import BackreadHook
from backread.integrations.airflow.look import Mark, look
from backread.integrations.airflow.names import AirflowFailException

__all__ = ["FAILURES", "SECONDS_A_REQUEST", "NewMessagesTrigger"]

FAILURES = 5
"""So many looks that failed, one after another, end the wait."""

SECONDS_A_REQUEST = 60.0
"""What a request of a look may take with its retries."""


class NewMessagesTrigger(BaseTrigger):  # type: ignore[misc, unused-ignore]
    """Looks every ``poke_interval`` seconds, and fires once, when there is something new.

    ``mark`` is `Mark.to_dict`. It sends no request but those of `look`; what it is made of names
    the connection, and holds no secret. Its event is ``{"status": "found", "news": News}``, or
    ``{"status": "failed", "message": str}`` after five failed looks one after another, or one that
    was refused the secret.
    """

    def __init__(
        self,
        *,
        backread_conn_id: str,
        mark: dict[str, Any],
        poke_interval: float,
        max_requests: int,
    ) -> None:
        super().__init__()
        self.backread_conn_id = backread_conn_id
        self.mark = mark
        self.poke_interval = poke_interval
        self.max_requests = max_requests

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "backread_conn_id": self.backread_conn_id,
                "mark": self.mark,
                "poke_interval": self.poke_interval,
                "max_requests": self.max_requests,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        hook = BackreadHook(
            self.backread_conn_id, on_rate_limit="raise", deadline=SECONDS_A_REQUEST
        )
        try:
            client = await hook.aget_async_client()
        except AirflowFailException as error:
            yield TriggerEvent({"status": "failed", "message": str(error)})
            return
        async with client:
            mark, failures = Mark.from_dict(self.mark), 0
            wait = self.poke_interval
            while True:
                await asyncio.sleep(wait)
                wait = self.poke_interval
                try:
                    found = await look(client, mark, self.max_requests)
                except (AuthenticationError, PermissionDeniedError) as error:
                    yield TriggerEvent({"status": "failed", "message": str(error)})
                    return
                except RateLimitError as error:
                    # No failure of the service's: it says when to look again.
                    wait = max(wait, error.retry_after or 0.0)
                    self.log.info(
                        "The service asks for a wait (429): looking again in %.0f s", wait
                    )
                    continue
                except BackreadError as error:
                    failures += 1
                    self.log.warning("A look failed, %d of %d: %s", failures, FAILURES, error)
                    if failures == FAILURES:
                        yield TriggerEvent({"status": "failed", "message": str(error)})
                        return
                    continue
                mark, failures = found.mark, 0
                if found.news is not None:
                    yield TriggerEvent({"status": "found", "news": dict(found.news)})
                    return
