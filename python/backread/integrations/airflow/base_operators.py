"""The base classes of reading operators, and how a folder appears in Airflow."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import (  # type: ignore[import-not-found, unused-ignore]
    Asset,
    AssetAlias,
    BaseOperator,  # type: ignore[import-not-found, unused-ignore]
    BaseOperatorLink,
)
from airflow.sdk.exceptions import (  # type: ignore[import-not-found, unused-ignore]
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
)

from backread.errors import BackreadError, RateLimitError
from backread.integrations.airflow.arguments import Parser, absolute, seconds
from backread.integrations.airflow.connection import permanent
from backread.integrations.airflow.hook import BackreadHook

if TYPE_CHECKING:
    from backread import Client

__all__ = ["MirrorReportLink", "emit", "folder_asset"]


def folder_asset(folder: str) -> Any:
    """The Asset of a mirror's or a landing's folder, for ``schedule``, ``inlets`` and ``outlets``.

    Its name and URI are that of the folder, such as ``file:///srv/chats`` or ``s3://bucket/chats``.
    ValueError for a relative path.
    """
    folder = absolute("folder", folder)
    return Asset(uri=folder if "://" in folder else PurePath(folder).as_uri())


def emit(context: Mapping[str, Any], outlets: Iterable[Any], folder: str, extra: Any) -> None:
    """Adds ``extra`` to the event of each outlet, which Airflow records if the task succeeds."""
    events = context["outlet_events"]
    for outlet in outlets:
        if isinstance(outlet, AssetAlias):
            events[outlet].add(folder_asset(folder), extra=extra)
        elif isinstance(outlet, Asset):
            events[outlet].extra = extra


class MirrorReportLink(BaseOperatorLink):  # type: ignore[misc, unused-ignore]
    """A button *Report* that leads to the operator's ``report_url``."""

    name = "Report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """The URL as the task rendered it."""
        return str(operator.report_url)


__all__ = ["Context", "LineInterval", "ReadingOperator", "ResumingOperator", "read_arguments"]

SECONDS_BETWEEN_LINES = 30.0
"""The interval between progress log lines."""

DEFAULT_WAIT = 60.0
"""Seconds until the next attempt if a 429 names no wait."""

FRUITLESS_WAITS = 5
"""After this many 429s with nothing new read in between, the next one fails the attempt."""

Context = Mapping[str, Any]


class _EndedError(BaseException):
    """Raised by a signal during the read; a BaseException, so that no handler swallows it."""


class ReadingOperator(BaseOperator):  # type: ignore[misc, unused-ignore]
    """The base operator: subclasses implement `read`; the client is closed after it.

    - ``backread_conn_id``: the connection, templated.

    The client waits in the worker if the service requests a wait (429).
    """

    template_fields: tuple[str, ...] = ("backread_conn_id",)
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
        with self._client("wait") as client:
            return self.read(context, client)

    def on_kill(self) -> None:
        """Ends the read at once; committed work is kept, as with Ctrl-C."""
        # Airflow calls this in its SIGTERM handler, in the reading thread.
        if self._reading:
            # Only once: a second signal must not interrupt the cleanup after the first.
            self._reading = False
            raise _EndedError

    @contextmanager
    def _client(self, waiting: Literal["wait", "raise"]) -> Iterator[Client]:
        """A client for the read; errors that a retry would not fix fail the task at once.

        Other backread errors are raised without their cause, so that the log has one exception.
        """
        try:
            with BackreadHook(self.backread_conn_id, on_rate_limit=waiting).get_conn() as client:
                self._reading = True
                yield client
        except _EndedError:
            raise AirflowException(
                "ended by a signal; committed rows are kept, and the next try continues from there"
            ) from None
        except BackreadError as error:
            if (reason := permanent(error, self.backread_conn_id)) is not None:
                raise AirflowFailException(reason) from None
            raise error from None
        finally:
            self._reading = False


class ResumingOperator(ReadingOperator):
    """The base of operators whose `read` continues where it stopped when called again.

    If the service requests a wait (429):

    - ``longest_wait``: a longer one (seconds or a timedelta; 60) frees the worker: the task is
      rescheduled, which uses no retry, and continues where it stopped. Shorter waits stay in the
      worker; the attempt fails after the sixth in a row with nothing new read in between. Keep it
      above 15, since Airflow may take seconds to record the end of a task.
    - ``give_up_after``: fails the task, regardless of ``retries``, instead of a reschedule that
      would end this long after the attempt began (seconds or a timedelta; 7 days). None leaves
      only the DAG's ``dagrun_timeout``.
    - All else as `ReadingOperator`.
    """

    def __init__(
        self,
        *,
        longest_wait: float | timedelta = 60.0,
        give_up_after: float | timedelta | None = timedelta(days=7),
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.longest_wait = seconds("longest_wait", longest_wait) or 0.0
        self.give_up_after = seconds("give_up_after", give_up_after)
        self._progressed = False

    def execute(self, context: Context) -> Any:
        began = datetime.now(UTC)
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
                    wait = DEFAULT_WAIT if error.retry_after is None else error.retry_after
                if wait > self.longest_wait:
                    self._reschedule(context, wait, began)
                self.log.info("The service requests a wait of %.1f s (429)", wait)
                time.sleep(wait)

    def _reschedule(self, context: Context, wait: float, began: datetime) -> None:
        """Ends this process of the task, which continues in another after the wait."""
        # Airflow records when an attempt that was rescheduled before began.
        began = context["ti"].get_first_reschedule_date(context) or began
        now, bound = datetime.now(UTC), self.give_up_after
        if bound is not None and (now - began).total_seconds() + wait > bound:
            raise AirflowFailException(
                f"gave up: the service requests a wait of {wait:.0f} s (429), which would end "
                f"later than give_up_after={bound:.0f} s after {began:%Y-%m-%d %H:%M:%S} UTC, when "
                "this task began; committed rows are kept, and the next run continues from there"
            )
        until = now + timedelta(seconds=wait)
        self.log.info("The service requests a wait of %.1f s (429): continuing at %s", wait, until)
        raise AirflowRescheduleException(until)


def read_arguments(parsers: Mapping[str, Parser], task: object) -> dict[str, Any]:
    """The values of a task's arguments; an invalid one fails the task at once."""
    try:
        return {name: parse(name, getattr(task, name)) for name, parse in parsers.items()}
    except ValueError as error:
        raise AirflowFailException(str(error)) from None


class LineInterval:
    """The time between progress log lines."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def is_over(self) -> bool:
        """Whether the interval is over; if so, starts the next one."""
        now = time.monotonic()
        if now - self._since < SECONDS_BETWEEN_LINES:
            return False
        self._since = now
        return True
