"""`NewMessagesTrigger`: checks for new messages from the triggerer."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import (  # type: ignore[import-not-found, unused-ignore]
    BaseTrigger,
    TriggerEvent,
)

from backread.integrations.airflow.checks import OPTIONS, Checks, PermanentError
from backread.integrations.airflow.hook import BackreadHook
from backread.integrations.airflow.names import AirflowFailException
from backread.integrations.airflow.new_messages_query import Mark

__all__ = ["NewMessagesTrigger"]


class NewMessagesTrigger(BaseTrigger):  # type: ignore[misc, unused-ignore]
    """Checks every ``poke_interval`` seconds, and fires once, when there is something new.

    It sends only the requests of `look`; its arguments contain no secret.

    Args:
        backread_conn_id: The connection.
        mark: The result of `Mark.to_dict`.
        poke_interval: Seconds between two checks.
        max_requests: The most requests of one check.
        until: When it gives up, ISO 8601.
        wait: Seconds until its first check.
        mirror: The mirror whose users are known, if any.

    Its event has a ``status``: ``"found"`` with ``news`` (`News`); ``"timeout"`` with ``failure``,
    the last check's error or None; or ``"failed"`` with ``message``, if later checks would fail
    too.
    """

    def __init__(
        self,
        *,
        backread_conn_id: str,
        mark: dict[str, Any],
        poke_interval: float,
        max_requests: int,
        until: str,
        wait: float = 0.0,
        mirror: str | None = None,
    ) -> None:
        super().__init__()
        self.backread_conn_id = backread_conn_id
        self.mark = mark
        self.poke_interval = poke_interval
        self.max_requests = max_requests
        self.until = until
        self.wait = wait
        self.mirror = mirror

    def serialize(self) -> tuple[str, dict[str, Any]]:
        arguments = inspect.signature(NewMessagesTrigger).parameters
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {name: getattr(self, name) for name in arguments},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        try:
            yield TriggerEvent(await self._checked())
        except (AirflowFailException, PermanentError) as error:
            yield TriggerEvent({"status": "failed", "message": str(error)})

    async def _checked(self) -> dict[str, Any]:
        hook = BackreadHook(self.backread_conn_id, **OPTIONS)
        checks = Checks(
            self.backread_conn_id,
            Mark.from_dict(self.mark),
            self.max_requests,
            self.log,
            self.mirror,
        )
        until, wait = datetime.fromisoformat(self.until), max(self.wait, self.poke_interval)
        async with await hook.aget_async_client() as client:
            while (left := (until - datetime.now(UTC)).total_seconds()) > 0:
                await asyncio.sleep(min(wait, left))
                news = await checks.check(client)
                if news is not None:
                    return {"status": "found", "news": dict(news)}
                wait = max(self.poke_interval, checks.asked_wait)
        return {"status": "timeout", "failure": checks.failure}
