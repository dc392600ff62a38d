"""`NewMessagesSensor`: waits until there are new messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk import (  # type: ignore[import-not-found, unused-ignore]
    BaseSensorOperator,
    PokeReturnValue,
)

from backread.errors import RateLimitError
from backread.integrations.airflow.assets import absolute, is_template
from backread.integrations.airflow.hook import BackreadHook
from backread.integrations.airflow.look import (
    LEAST_REQUESTS,
    Look,
    Mark,
    News,
    look,
    mark_of,
    moment,
)
from backread.integrations.airflow.names import AirflowException, AirflowFailException
from backread.integrations.airflow.reading import Context, default_deferrable, plain_failures
from backread.integrations.airflow.trigger import SECONDS_A_REQUEST, NewMessagesTrigger

__all__ = ["NewMessagesSensor"]


class NewMessagesSensor(BaseSensorOperator):  # type: ignore[misc, unused-ignore]
    """Waits until the service has messages that are new, by a few requests every ``poke_interval``.

    New is, by at most one of:

    - ``mirror``: what the mirror in this folder does not hold (its last finished sync). Templated.
    - ``since``: what was created after this time, ISO 8601, UTC where it names no offset.
      Templated, such as ``"{{ data_interval_start }}"``.
    - neither: what was created after the newest time that the first look sees.

    A look counts the messages of the eight users of the mirror who wrote last, reads the first and
    the last page of users, and of users there that were created, updated or online after the mark
    the first and the last page of messages; in at most ``max_requests`` requests (12), retries
    apart. The interface says nothing about the order of lists, nor whether a message moves a user's
    times, so this is a hint: what it finds is there, but it may miss a message of a user who is on
    neither page and not among the eight, one that moved none of the user's times, and one in the
    middle of a list. Give it a ``timeout``, with ``soft_fail`` or a sync downstream all the same.

    - ``deferrable``: the triggerer looks, after a first look in the worker; the default is
      Airflow's option ``[operators] default_deferrable``. Without it, ``mode="reschedule"`` needs
      ``mirror`` or ``since``, because nothing is kept between its looks.
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
            raise ValueError("give mirror or since, not both: each says what is new")
        if max_requests < LEAST_REQUESTS:
            raise ValueError(f"max_requests is {LEAST_REQUESTS} or more, not {max_requests}")
        self.deferrable = default_deferrable() if deferrable is None else deferrable
        if mirror is None and since is None and self.reschedule and not self.deferrable:
            raise ValueError(
                "mode='reschedule' keeps nothing between its looks, so it cannot tell what is new: "
                "give mirror or since, or deferrable=True"
            )
        if mirror is not None and not is_template(mirror):
            absolute("mirror", mirror)
        if since is not None and not is_template(since):
            moment(since)
        self.mirror = mirror
        self.since = since
        self.backread_conn_id = backread_conn_id
        self.max_requests = max_requests
        self._mark: Mark | None = None
        self._asked_wait = 0.0

    def poke(self, context: Context) -> Any:
        """One look; what it found is the sensor's XCom."""
        with plain_failures(self.backread_conn_id):
            if self._mark is None:
                self._mark = self._first_mark()
            self._asked_wait = 0.0
            try:
                news = self._look(self._mark)
            except RateLimitError as error:
                self._asked_wait = error.retry_after or 0.0
                wait = max(self.poke_interval, self._asked_wait)
                self.log.info("The service asks for a wait (429): looking again in %.0f s", wait)
                news = None
        return PokeReturnValue(is_done=news is not None, xcom_value=news)

    def _get_next_poke_interval(
        self, started_at: Any, run_duration: Callable[[], float], poke_count: int
    ) -> float:
        # Airflow's own, which both modes ask; a wait that the service asks for may be longer.
        usual: float = super()._get_next_poke_interval(started_at, run_duration, poke_count)
        left: float = max(0.0, self.timeout - run_duration())
        return max(usual, min(self._asked_wait, left))

    def execute(self, context: Context) -> Any:
        if not self.deferrable:
            return super().execute(context)
        poked = self.poke(context)
        if poked.is_done:
            return poked.xcom_value
        assert self._mark is not None
        return self.defer(
            trigger=NewMessagesTrigger(
                backread_conn_id=self.backread_conn_id,
                mark=self._mark.to_dict(),
                poke_interval=self.poke_interval,
                max_requests=self.max_requests,
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> News:
        """Takes what the trigger found; AirflowException with its reason where it gave up."""
        if event["status"] != "found":
            raise AirflowException(f"the wait for new messages ended: {event['message']}")
        news: News = event["news"]
        self.log.info("Found: %s", news)
        return news

    def _first_mark(self) -> Mark:
        try:
            if self.mirror is not None:
                from backread import Mirror

                return mark_of(Mirror(absolute("mirror", self.mirror)))
            return Mark(None if self.since is None else moment(self.since))
        except ValueError as error:
            raise AirflowFailException(f"since or mirror: {error}") from None

    def _look(self, mark: Mark) -> News | None:
        hook = BackreadHook(
            self.backread_conn_id, on_rate_limit="raise", deadline=SECONDS_A_REQUEST
        )
        # Not from within a loop: the worker of Airflow 3.1 finds no connection there.
        client = hook.get_async_client()

        async def looked() -> Look:
            async with client:
                return await look(client, mark, self.max_requests)

        found = asyncio.run(looked())
        self._mark = found.mark
        return found.news
