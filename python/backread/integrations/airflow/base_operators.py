"""The base classes of reading operators: waits that free the worker, and clean termination."""

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
"""The interval between progress log lines."""

DEFAULT_WAIT = 60.0
"""Seconds until the next attempt if a 429 names no wait."""

FRUITLESS_WAITS = 5
"""After this many 429s with nothing new read in between, the next one fails the attempt."""

LONGEST_RESCHEDULE = 365 * 86_400.0
"""The longest wait, whatever the service requests; longer ones could overflow dates."""

Context = Mapping[str, Any]


class _EndedError(BaseException):
    """Raised by a signal during the read; a BaseException, so that no handler swallows it."""


class ReadingOperator(BaseOperator):  # type: ignore[misc, unused-ignore]
    """The base operator: subclasses implement `read`; the client is closed after it.

    - ``backread_conn_id``: the connection, templated.

    The client waits in the worker if the service requests a wait (429).
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
        """Ends the read at once; committed work is kept, as with Ctrl-C."""
        # Airflow calls this in its SIGTERM handler, in the reading thread.
        if self._reading:
            # Only once: a second signal must not interrupt the cleanup after the first.
            self._reading = False
            raise _EndedError

    def _read(self, context: Context) -> Any:
        with self._client("wait") as client:
            return self.read(context, client)

    @contextmanager
    def _client(self, waiting: Literal["wait", "raise"]) -> Iterator[Client]:
        hook = BackreadHook(self.backread_conn_id, on_rate_limit=waiting)
        with as_airflow_failures(self.backread_conn_id), hook.get_conn() as client, self._endable():
            yield client

    @contextmanager
    def _endable(self) -> Iterator[None]:
        self._reading = True
        try:
            yield
        except _EndedError:
            raise AirflowException(
                "ended by a signal; committed rows are kept, and the next try continues from there"
            ) from None
        finally:
            self._reading = False


class ResumingOperator(ReadingOperator):
    """The base of operators whose `read` continues where it stopped when called again.

    - ``on_rate_limit``: ``"reschedule"`` frees the worker if the service requests a wait (429)
      longer than ``longest_wait`` (seconds or a timedelta; 60; keep it above 15, since Airflow may
      take seconds to record the end of a task). Shorter waits stay in the worker, and the attempt
      fails after the sixth in a row with nothing new read in between. A reschedule
      is not a failure and uses no retry; the task continues where it stopped. ``"wait"`` always
      waits in the worker, within the connection's ``deadline`` and ``max_retries``.
    - ``give_up_after``: fails the task, regardless of ``retries``, instead of a reschedule that
      would end this long after the attempt began (seconds or a timedelta; 7 days, like a sensor's
      ``timeout``). None leaves only the DAG's ``dagrun_timeout``.
    - ``deferrable``: waits in the triggerer instead of the scheduler; the default is Airflow's
      option ``[operators] default_deferrable``.
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
        """Continues after a deferred wait, in an attempt that began at ``began``."""
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
                    asked = DEFAULT_WAIT if error.retry_after is None else error.retry_after
                    self._wait(context, asked)

    def _wait(self, context: Context, wait: float) -> None:
        if wait <= self.longest_wait:
            self.log.info("The service requests a wait of %.1f s (429): waiting in this task", wait)
            time.sleep(wait)
            return
        began = self._beginning(context)
        until = datetime.now(UTC) + timedelta(seconds=min(wait, LONGEST_RESCHEDULE))
        bound = self.give_up_after
        if bound is not None and (until - began).total_seconds() > bound:
            raise AirflowFailException(
                f"gave up: the service requests a wait of {wait:.0f} s (429), which would end "
                f"later than give_up_after={bound:.0f} s after {began:%Y-%m-%d %H:%M:%S} UTC, when "
                "this task began; committed rows are kept, and the next run continues from there"
            )
        self.log.info("The service requests a wait of %.1f s (429): continuing at %s", wait, until)
        self._reading = False
        if not self.deferrable:
            raise AirflowRescheduleException(until)
        # From the standard provider, which apache-airflow installs.
        from airflow.providers.standard.triggers.temporal import (  # type: ignore[import-not-found, unused-ignore]
            DateTimeTrigger,
        )

        self.defer(
            trigger=DateTimeTrigger(moment=until),
            method_name="resume",
            kwargs={"began": began.isoformat()},
        )

    def _beginning(self, context: Context) -> datetime:
        """When the attempt began: Airflow records it for reschedules, and deferrals pass it on."""
        before: datetime | None = context["ti"].get_first_reschedule_date(context)
        return self._began if before is None else min(before, self._began)


@contextmanager
def fail_on_bad_arguments() -> Iterator[None]:
    """Fails the task at once for an invalid rendered argument."""
    try:
        yield
    except ValueError as error:
        raise AirflowFailException(str(error)) from None


@contextmanager
def as_airflow_failures(backread_conn_id: str) -> Iterator[None]:
    """Fails the task at once for errors that a retry would not fix, with only their text.

    Other backread errors are raised without their cause, so that the log has one exception.
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
