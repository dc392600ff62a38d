"""Checks for new messages, one after another: what the sensor and its trigger have in common.

Nothing of Airflow's is imported here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from logging import Logger
from typing import TYPE_CHECKING

from backread._client.arguments import ClientOptions
from backread.errors import BackreadError, MirrorError, RateLimitError
from backread.integrations.airflow.failures import permanent
from backread.integrations.airflow.intervals import Interval
from backread.integrations.airflow.new_messages_query import Mark, News, look

if TYPE_CHECKING:
    from backread import AsyncClient

__all__ = ["OPTIONS", "Checks", "PermanentError"]

OPTIONS: ClientOptions = {
    "on_rate_limit": "raise",
    "deadline": 60.0,
    "max_retries": 0,
    "outage_patience": 0.0,
}
"""Those of a client that checks: a request that fails is not sent again, as the next check is."""

SECONDS_BETWEEN_LINES = 300.0
"""Checks that find nothing are logged so often at most."""


class PermanentError(Exception):
    """A check failed as the next one would: waiting does not help."""


class Checks:
    """A row of checks; ``mark`` moves on with them.

    A check that failed is logged in one line, and the next one follows. ``asked_wait`` is the wait
    that the service asked for in the last one, ``failure`` what was wrong with it, if anything.
    """

    def __init__(
        self,
        backread_conn_id: str,
        mark: Mark,
        max_requests: int,
        log: Logger,
        mirror: str | None = None,
    ) -> None:
        self.mark = mark
        self.asked_wait = 0.0
        self.failure: str | None = None
        self._backread_conn_id = backread_conn_id
        self._max_requests = max_requests
        self._log = log
        self._held = None if mirror is None else _HeldUsers(mirror)
        self._failures = 0
        self._without_news = 0
        self._silence = Interval(SECONDS_BETWEEN_LINES)

    async def check(self, client: AsyncClient) -> News | None:
        """Looks once; PermanentError for what a later check would meet again."""
        self.asked_wait, self.failure = 0.0, None
        unknown = None if self._held is None else self._held.unknown
        try:
            found = await look(client, self.mark, self._max_requests, unknown)
        except RateLimitError as error:
            # No failure of the service's: it says when to ask again.
            self.asked_wait = error.retry_after or 0.0
            self._log.info("The service asks for a wait of %.0f s (429)", self.asked_wait)
            return None
        except BackreadError as error:
            if (reason := permanent(error, self._backread_conn_id)) is not None:
                raise PermanentError(reason) from None
            self._failures += 1
            self.failure = str(error)
            self._log.warning("Check failed (%d in a row): %s", self._failures, error)
            return None
        self.mark, self._failures = found.mark, 0
        if found.news is None:
            self._say_nothing_new()
        return found.news

    def _say_nothing_new(self) -> None:
        self._without_news += 1
        if self._silence.is_over():
            self._log.info("Nothing new in %d checks", self._without_news)


class _HeldUsers:
    """Which users a mirror holds; where this machine cannot read it, it is taken to hold all."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: set[int] = set()

    async def unknown(self, user_ids: Iterable[int]) -> set[int]:
        """Those of the users whom the mirror does not hold."""
        asked = set(user_ids)
        if asked <= self._known:
            return set()
        try:
            held = await asyncio.to_thread(self._read, asked)
        except MirrorError:
            return set()
        self._known = asked & held
        return asked - held

    def _read(self, user_ids: set[int]) -> set[int]:
        from backread import Mirror

        query = "SELECT id FROM users WHERE deleted_at IS NULL AND list_contains(?, id)"
        return {user_id for (user_id,) in Mirror(self._folder).sql(query, [[*user_ids]]).fetchall()}
