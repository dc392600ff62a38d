"""Repeated checks for new messages, shared by the sensor and its trigger.

Does not import Airflow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from logging import Logger
from typing import TYPE_CHECKING

from backread._client.options import ClientOptions
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
"""Client options for checks: no retries, since the next check follows anyway."""

SECONDS_BETWEEN_LINES = 300.0
"""The minimum time between log lines about checks that find nothing."""


class PermanentError(Exception):
    """A check failed in a way that waiting does not fix."""


class Checks:
    """A series of checks, which update ``mark``.

    A failed check is logged in one line, and the next one follows. ``asked_wait`` is the wait that
    the service requested in the last check, ``failure`` the last check's error, if any.
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
        """Checks once; PermanentError for an error that later checks would get too."""
        self.asked_wait, self.failure = 0.0, None
        unknown = None if self._held is None else self._held.unknown
        try:
            found = await look(client, self.mark, self._max_requests, unknown)
        except RateLimitError as error:
            # Not a failure: the service says when to try again.
            self.asked_wait = error.retry_after or 0.0
            self._log.info("The service requests a wait of %.0f s (429)", self.asked_wait)
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
    """The users in a mirror; if this machine cannot read it, assumes that it has all users."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: set[int] = set()

    async def unknown(self, user_ids: Iterable[int]) -> set[int]:
        """The users that the mirror neither has nor leaves out, as forgotten or rejected ones."""
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

        query = (
            "FROM (SELECT id FROM users WHERE deleted_at IS NULL UNION ALL "
            "SELECT user_id FROM forgotten UNION ALL "
            "SELECT id FROM rejects WHERE resource = 'users') WHERE list_contains(?, id)"
        )
        return {user_id for (user_id,) in Mirror(self._folder).sql(query, [[*user_ids]]).fetchall()}
