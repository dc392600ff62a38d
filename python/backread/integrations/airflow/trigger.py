"""`NewMessagesTrigger`: checks for new messages from the triggerer."""

from __future__ import annotations

import asyncio
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

    ``mark`` is `Mark.to_dict`, ``until`` the time (ISO 8601) at which it gives up, ``wait`` the
    seconds until its first check, and ``mirror`` the folder whose users are known, if any. It sends
    only the requests of `look`; its arguments name the connection and contain no secret.

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
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "backread_conn_id": self.backread_conn_id,
                "mark": self.mark,
                "poke_interval": self.poke_interval,
                "max_requests": self.max_requests,
                "until": self.until,
                "wait": self.wait,
                "mirror": self.mirror,
            },
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
