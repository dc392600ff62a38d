"""What the operators that read have in common: waits that free the worker, and a clean end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from airflow.sdk import BaseOperator  # type: ignore[import-not-found, unused-ignore]

from backread.errors import BackreadError, RateLimitError
from backread.integrations.airflow.failures import permanent
from backread.integrations.airflow.hook import BackreadHook
from backread.integrations.airflow.names import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    conf,
)
from backread.integrations.airflow.values import one_of, seconds

if TYPE_CHECKING:
    from backread import Client

__all__ = ["OnRateLimit", "ReadingOperator", "ResumingOperator", "default_deferrable"]

OnRateLimit = Literal["reschedule", "wait"]

SECONDS_BETWEEN_LINES = 30.0
"""Progress is logged so often."""

UNNAMED_WAIT = 60.0
"""Seconds until the next attempt where a 429 names no wait."""

FRUITLESS_WAITS = 5
"""After so many 429s, with nothing new read between them, the next one ends the attempt."""

LONGEST_RESCHEDULE = 365 * 86_400.0
"""No wait is longer, whatever a service asks for: beyond it, dates end."""

Context = Mapping[str, Any]


class _EndedError(BaseException):
    """Raised where a signal found the read; no Exception, so that nothing on the way keeps it."""


class ReadingOperator(BaseOperator):  # type: ignore[misc, unused-ignore]
    """The base of the operators: `read` is their work, with a client that is closed after it.

    - ``backread_conn_id``: the connection, templated.

    Waits that the service asks for (429) are waited out in the worker, by the client.
    """

    template_fields: tuple[str, ...] = ("backread_conn_id",)
    template_fields_renderers: ClassVar[dict[str, str]] = {}
    ui_color = "#dcebe6"

    def __init__(
        self, *, backread_conn_id: str = BackreadHook.default_conn_name, **arguments: Any
    ) -> None:
        super().__init__(**arguments)
        self.backread_conn_id = backread_conn_id
        self._reading = False

    def read(self, context: Context, client: Client) -> Any:
        """The operator's work."""
        raise NotImplementedError

    def execute(self, context: Context) -> Any:
        return self._read(context)

    def on_kill(self) -> None:
        """Ends the read at once; what was committed is kept, as at Ctrl-C."""
        # Airflow calls this in a handler of SIGTERM, in the thread that reads.
        if self._reading:
            # Once: a second signal must not break off what the first one's end still writes.
            self._reading = False
            raise _EndedError

    def _read(self, context: Context) -> Any:
        with self._client("wait") as client:
            return self.read(context, client)

    @contextmanager
    def _client(self, waiting: Literal["wait", "raise"]) -> Iterator[Client]:
        hook = BackreadHook(self.backread_conn_id, on_rate_limit=waiting)
        with plain_failures(self.backread_conn_id), hook.get_conn() as client, self._endable():
            yield client

    @contextmanager
    def _endable(self) -> Iterator[None]:
        self._reading = True
        try:
            yield
        except _EndedError:
            raise AirflowException(
                "ended by a signal; what was committed is kept, and the next try goes on from there"
            ) from None
        finally:
            self._reading = False


class ResumingOperator(ReadingOperator):
    """The base of operators whose `read`, called again, goes on where it was.

    - ``on_rate_limit``: ``"reschedule"`` gives the worker back where the service asks for a wait
      (429) of more than ``longest_wait`` (seconds or a timedelta; 60); shorter ones are waited out,
      and the attempt fails after the sixth in a row with nothing new read between them. A
      reschedule is no failure and costs no retry; the task goes on where it was. ``"wait"`` waits
      out all of them in the worker, as far as the connection's ``deadline`` and ``max_retries``
      allow.
    - ``give_up_after``: fails the task, whatever ``retries`` says, instead of a reschedule that
      would end so long after the attempt began (seconds or a timedelta; 7 days, as a sensor's
      ``timeout``). None is no bound but the DAG's ``dagrun_timeout``.
    - ``deferrable``: such a wait is left to the triggerer, and not to the scheduler; the default is
      Airflow's option ``[operators] default_deferrable``.
    - All else as `ReadingOperator`.
    """

    _began: datetime

    def __init__(
        self,
        *,
        on_rate_limit: OnRateLimit = "reschedule",
        longest_wait: float | timedelta = 60.0,
        give_up_after: float | timedelta | None = timedelta(days=7),
        deferrable: bool | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        one_of("on_rate_limit", on_rate_limit, get_args(OnRateLimit))
        self.on_rate_limit = on_rate_limit
        self.longest_wait = seconds("longest_wait", longest_wait) or 0.0
        self.give_up_after = seconds("give_up_after", give_up_after)
        self.deferrable = default_deferrable() if deferrable is None else deferrable
        self._progressed = False

    def execute(self, context: Context) -> Any:
        self._began = datetime.now(UTC)
        return self._read(context)

    def resume(self, context: Context, event: Any = None, began: str | None = None) -> Any:
        """Goes on after a wait that was left to the triggerer, in an attempt that began then."""
        self._began = datetime.now(UTC) if began is None else datetime.fromisoformat(began)
        return self._read(context)

    def _read(self, context: Context) -> Any:
        if self.on_rate_limit == "wait":
            return super()._read(context)
        fruitless = 0
        with self._client("raise") as client:
            while True:
                self._progressed = False
                try:
                    return self.read(context, client)
                except RateLimitError as error:
                    fruitless = 0 if self._progressed else fruitless + 1
                    if fruitless > FRUITLESS_WAITS:
                        raise
                    asked = UNNAMED_WAIT if error.retry_after is None else error.retry_after
                    self._wait(context, asked)

    def _wait(self, context: Context, wait: float) -> None:
        if wait <= self.longest_wait:
            self.log.info("The service asks for a wait of %.1f s (429), waited out here", wait)
            time.sleep(wait)
            return
        began = self._beginning(context)
        until = datetime.now(UTC) + timedelta(seconds=min(wait, LONGEST_RESCHEDULE))
        bound = self.give_up_after
        if bound is not None and (until - began).total_seconds() > bound:
            raise AirflowFailException(
                f"given up: the service asks for a wait of {wait:.0f} s (429), which ends later "
                f"than give_up_after={bound:.0f} s after {began:%Y-%m-%d %H:%M:%S} UTC, when this "
                "task began; what was committed is kept, and the next run goes on from there"
            )
        self.log.info("The service asks for a wait of %.1f s (429): going on at %s", wait, until)
        self._reading = False
        if not self.deferrable:
            raise AirflowRescheduleException(until)
        # With the standard provider, which comes with apache-airflow.
        from airflow.providers.standard.triggers.temporal import (  # type: ignore[import-not-found, unused-ignore]
            DateTimeTrigger,
        )

        self.defer(
            trigger=DateTimeTrigger(moment=until),
            method_name="resume",
            kwargs={"began": began.isoformat()},
        )

    def _beginning(self, context: Context) -> datetime:
        """When the attempt began, whose reschedules Airflow counts, and deferrals hand on."""
        before: datetime | None = context["ti"].get_first_reschedule_date(context)
        return self._began if before is None else min(before, self._began)


@contextmanager
def bad_arguments() -> Iterator[None]:
    """Makes a rendered argument that is no good fail the task at once."""
    try:
        yield
    except ValueError as error:
        raise AirflowFailException(str(error)) from None


@contextmanager
def plain_failures(backread_conn_id: str) -> Iterator[None]:
    """Makes errors that no retry would mend fail the task at once, with their text alone.

    Other errors of backread's pass, without what led to them: the log has one exception.
    """
    try:
        yield
    except BackreadError as error:
        if (reason := permanent(error, backread_conn_id)) is not None:
            raise AirflowFailException(reason) from None
        raise error from None


def default_deferrable() -> bool:
    """Airflow's default for ``deferrable``."""
    return bool(conf.getboolean("operators", "default_deferrable", fallback=False))
