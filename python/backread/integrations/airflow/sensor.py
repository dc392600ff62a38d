"""`NewMessagesSensor`: waits until there are new messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import (  # type: ignore[import-not-found, unused-ignore]
    BaseSensorOperator,
    PokeReturnValue,
)

from backread.integrations.airflow.assets import absolute, is_template
from backread.integrations.airflow.base_operators import Context, default_deferrable
from backread.integrations.airflow.checks import OPTIONS, Checks, PermanentError
from backread.integrations.airflow.hook import BackreadHook
from backread.integrations.airflow.names import (
    AirflowException,
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
)
from backread.integrations.airflow.new_messages_query import (
    LEAST_REQUESTS,
    Mark,
    News,
    mark_of,
    moment,
)
from backread.integrations.airflow.trigger import NewMessagesTrigger

if TYPE_CHECKING:
    from backread import AsyncClient

__all__ = ["NewMessagesSensor"]

TRIGGER_LATE = timedelta(minutes=2)


class NewMessagesSensor(BaseSensorOperator):  # type: ignore[misc, unused-ignore]
    """Waits until the service has new messages, by a few requests every ``poke_interval``.

    ``backread_conn_id`` names the connection. At most one argument defines what is new:

    - ``mirror``: not in the mirror in this folder (its last finished sync). Templated.
    - ``since``: created after this time, ISO 8601, UTC if it has no offset. Templated, such as
      ``"{{ data_interval_start }}"``.
    - neither: created after the newest time that the first check sees.

    A check counts the messages of the mirror's eight users who wrote last, reads the first and the
    last page of users, and for users there that were created, updated or online after the mark, the
    first and the last page of messages; in at most ``max_requests`` requests (12), without retries
    within a check. A new user on these pages, or a changed number of users, is news too. The API
    specifies neither the order of lists nor whether a message updates a user's times, so the sensor
    is a hint: what it finds exists, but it may miss a message of a user who is on neither page and
    not among the eight, one that changed none of the user's times, and one in the middle of a list.
    So give it a ``timeout``, with ``soft_fail`` or a sync downstream regardless.

    A failed check is logged, and the next one follows, until ``timeout``. Errors that waiting would
    not fix (401, 403, 404 and 406 for the list of users, a malformed connection) fail the task at
    once, without a retry, even with ``soft_fail``, which is only for timeouts; ``never_fail`` skips
    it. A mirror that does not exist yet skips the task with ``soft_fail``, and fails it otherwise.

    - ``deferrable``: the triggerer checks, after a first check in the worker; the default is
      Airflow's option ``[operators] default_deferrable``. Without it, ``mode="reschedule"`` needs
      ``mirror`` or ``since``, because no state is kept between its checks.
    - All else as Airflow's BaseSensorOperator.

    The XCom is a `News`: ``user_id``, ``created_at`` and ``reason``.
    """

    template_fields = ("mirror", "since", "backread_conn_id")
    ui_color = "#dcebe6"

    def __init__(
        self,
        *,
        mirror: str | None = None,
        since: str | None = None,
        backread_conn_id: str = BackreadHook.default_conn_name,
        max_requests: int = LEAST_REQUESTS,
        deferrable: bool | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        if mirror is not None and since is not None:
            raise ValueError("pass mirror or since, not both: each defines what is new")
        if max_requests < LEAST_REQUESTS:
            raise ValueError(f"max_requests must be {LEAST_REQUESTS} or more, not {max_requests}")
        self.deferrable = default_deferrable() if deferrable is None else deferrable
        if mirror is None and since is None and self.reschedule and not self.deferrable:
            raise ValueError(
                "mode='reschedule' keeps no state between its checks, so it needs mirror or since, "
                "or deferrable=True"
            )
        if mirror is not None and not is_template(mirror):
            absolute("mirror", mirror)
        if since is not None and not is_template(since):
            moment(since)
        self.mirror = mirror
        self.since = since
        self.backread_conn_id = backread_conn_id
        self.max_requests = max_requests
        self._checks: Checks | None = None
        self._client: AsyncClient | None = None

    def poke(self, context: Context) -> Any:
        """Checks once; the result is the sensor's XCom."""
        news = self._check()
        return PokeReturnValue(is_done=news is not None, xcom_value=news)

    def _get_next_poke_interval(
        self, started_at: Any, run_duration: Callable[[], float], poke_count: int
    ) -> float:
        # Airflow's interval for both modes; the service may request a longer wait.
        usual: float = super()._get_next_poke_interval(started_at, run_duration, poke_count)
        left: float = max(0.0, self.timeout - run_duration())
        asked = 0.0 if self._checks is None else self._checks.asked_wait
        return max(usual, min(asked, left))

    def execute(self, context: Context) -> Any:
        until = datetime.now(UTC) + timedelta(seconds=self.timeout)
        try:
            with self._failures_seen():
                return self._deferred(until) if self.deferrable else super().execute(context)
        finally:
            client, self._client, self._checks = self._client, None, None
            if client is not None:
                asyncio.run(client.aclose())

    def resume_execution(self, *arguments: Any, **more: Any) -> Any:
        with self._failures_seen():
            return super().resume_execution(*arguments, **more)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> News:
        """Returns what the trigger found; raises its reason if it gave up."""
        if event["status"] == "failed":
            raise AirflowFailException(event["message"])
        if event["status"] == "timeout":
            failed = f"; the last check failed: {event['failure']}" if event["failure"] else ""
            message = f"nothing new within timeout={self.timeout:g} s{failed}"
            # With soft_fail Airflow does not log the exception's text.
            self.log.info("%s", message)
            raise AirflowSensorTimeout(message)
        news: News = event["news"]
        self.log.info("Found: %s", news)
        return news

    def _deferred(self, until: datetime) -> Any:
        news = self._check()
        if news is not None:
            return news
        assert self._checks is not None
        return self.defer(
            trigger=NewMessagesTrigger(
                backread_conn_id=self.backread_conn_id,
                mark=self._checks.mark.to_dict(),
                poke_interval=self.poke_interval,
                max_requests=self.max_requests,
                until=until.isoformat(),
                wait=self._checks.asked_wait,
                mirror=self.mirror,
            ),
            method_name="execute_complete",
            # The trigger ends by itself and says why; this is in case it does not run.
            timeout=timedelta(seconds=self.timeout) + TRIGGER_LATE,
        )

    def _check(self) -> News | None:
        if self._checks is None:
            self._checks = Checks(
                self.backread_conn_id, self._first_mark(), self.max_requests, self.log, self.mirror
            )
        if self._client is None:
            hook = BackreadHook(self.backread_conn_id, **OPTIONS)
            # Outside an event loop, where the worker of Airflow 3.1 would find no connection.
            self._client = hook.get_async_client()
        try:
            news = asyncio.run(self._checks.check(self._client))
        except PermanentError as error:
            raise AirflowFailException(str(error)) from None
        if news is not None:
            self.log.info("Found: %s", news)
        return news

    def _first_mark(self) -> Mark:
        try:
            if self.mirror is not None:
                return self._mark_of(absolute("mirror", self.mirror))
            return Mark(None if self.since is None else moment(self.since))
        except ValueError as error:
            raise AirflowFailException(f"since or mirror: {error}") from None

    def _mark_of(self, folder: str) -> Mark:
        from backread import Mirror
        from backread.mirror.manifest import read_manifest

        if read_manifest(Path(folder)) is not None:
            return mark_of(Mirror(folder))
        message = f"there is no synced mirror in {folder} yet to compare with"
        if self.soft_fail or self.never_fail:
            self.log.info("%s: skipping", message)
            raise AirflowSkipException(message)
        raise AirflowException(
            f"{message}: schedule BackreadSyncOperator(mirror={folder!r}) before this sensor, or "
            "give it soft_fail=True"
        )

    @contextmanager
    def _failures_seen(self) -> Iterator[None]:
        """Fails the task for errors that waiting would not fix, even with ``soft_fail``.

        Airflow would otherwise skip it and everything downstream, in each run.
        """
        try:
            yield
        except AirflowFailException as failure:
            if self.never_fail:
                raise AirflowSkipException(str(failure)) from failure
            raise
        except AirflowSkipException as skipped:
            reason = skipped.__cause__
            if self.never_fail or not isinstance(reason, AirflowFailException):
                raise
            raise reason from None
