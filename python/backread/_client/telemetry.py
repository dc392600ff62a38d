"""Reports requests to `logging`, and to OpenTelemetry if the program uses it.

The native module imports this once the program has imported either, and calls `begin` at the start
of each operation; it passes on the requests' outcomes whenever the operation returns to Python.
"""

from __future__ import annotations

import logging
import os
import sys
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer
    from opentelemetry.util.types import AttributeValue

    Attempt: TypeAlias = tuple[
        str,
        int,
        int | None,
        tuple[str, str] | None,
        float,
        float,
        float,
        float | None,
        list[tuple[bool, float]],
    ]
    """path, attempt number, status, (class of error, text), start, seconds taken, seconds waited,
    seconds until the retry, outages: (True, seconds so far) if one began, (False, length) if it
    ended.
    """

LOGGER = logging.getLogger("backread.http")
NANOSECONDS = 1_000_000_000
# Statuses that may mean an outage, which is logged once per service, not per request. The last ones
# are Cloudflare's.
DOWN = {502, 503, 504, *range(520, 525), 530}
SOON = 1.0
"""Failures retried within this many seconds are logged once an outage is ruled out."""
OUTAGE_BEGAN = "%s has stopped answering (%.1f s ago); requests wait while one at a time probes it"
OUTAGE_ENDED = "%s answers again, after an outage of %.1f s"


def begin(
    name: str, base_url: str, traceparent: bool
) -> tuple[Operation, str | None, str | None] | None:
    """Starts an operation; None if neither logging nor tracing is on.

    With it come the requests' ``traceparent`` and ``tracestate`` (W3C Trace Context); None is not
    sent.
    """
    logs = LOGGER.isEnabledFor(logging.INFO)
    # Programs can block an import by setting its entry to None.
    if sys.modules.get("opentelemetry.trace") is None:
        return (Operation(base_url), None, None) if logs else None
    from opentelemetry import trace

    tracer = trace.get_tracer("backread")
    span = tracer.start_span(f"backread {name}", attributes=_server(base_url))
    if not (logs or traceparent or span.is_recording()):
        return None
    operation = Operation(base_url)
    if span.is_recording():
        operation.span, operation.tracer = span, tracer
    parent, state = _trace_headers(span) if traceparent else (None, None)
    return operation, parent, state


class Operation:
    """Log records and a span for one client call or one walk, with a child span per request.

    Retries and the start and end of an outage are logged at INFO, all other requests at DEBUG. In a
    series of outage-like failures (connection errors, 502, 503, 504) only the first is logged at
    INFO, or none if it is an outage. Neither records nor spans contain headers or bodies.
    """

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._context = copy_context()
        self._process = os.getpid()
        self.span: Span | None = None
        self.tracer: Tracer | None = None
        self._in_outage = False
        # The time of the first failure of what may be an outage, and its attempt until logged.
        self._failing_since: float | None = None
        self._pending: Attempt | None = None

    def tell(self, attempts: list[Attempt], left_out: int) -> None:
        """Logs and traces the requests since the last call."""
        if left_out:
            LOGGER.info(
                "%d requests are not logged: too many ended between two log flushes", left_out
            )
        failed = None
        for attempt in attempts:
            for show in (self._log, self._trace):
                # A failure of one must not prevent the other.
                try:
                    show(attempt)
                except Exception as error:
                    failed = error
        if failed is not None:
            raise failed

    def tell_in_context(self, attempts: list[Attempt], left_out: int) -> None:
        """The same in the context of the caller, whose context variables log filters may read."""
        self._context.run(self.tell, attempts, left_out)

    def end(self, error: BaseException | None) -> None:
        """Ends the span, with the class of the error; later calls do nothing."""
        if self._process == os.getpid():
            self._log_pending(logging.INFO)
        span, self.span = self.span, None
        # After a fork, the parent process ends the span.
        if span is None or self._process != os.getpid():
            return
        if error is not None:
            from opentelemetry.trace import StatusCode

            span.set_attribute("error.type", type(error).__name__)
            span.set_status(StatusCode.ERROR, type(error).__name__)
        span.end()

    def __del__(self) -> None:
        # The operation was cancelled or abandoned.
        if getattr(self, "span", None) is not None or getattr(self, "_pending", None) is not None:
            self.end(None)

    def _log(self, attempt: Attempt) -> None:
        _, _, status, error, began, taken, _, again_in, outages = attempt
        for is_new, length in outages:
            self._in_outage, self._failing_since = is_new, None
            self._log_pending(logging.DEBUG)
            LOGGER.info(OUTAGE_BEGAN if is_new else OUTAGE_ENDED, self._base_url, length)
        is_down = status in DOWN or (error is not None and error[0] == "ConnectError")
        level = logging.DEBUG if again_in is None else logging.INFO
        if again_in is not None and is_down:
            if self._in_outage or self._failing_since is not None:
                level = logging.DEBUG
            else:
                self._failing_since = began + taken
                if again_in < SOON:
                    self._pending = attempt
                    return
        elif self._failing_since is not None and began >= self._failing_since:
            # A request sent after the failure had another outcome: there is no outage.
            self._failing_since = None
            self._log_pending(logging.INFO)
        self._log_attempt(attempt, level)

    def _log_pending(self, level: int) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            self._log_attempt(pending, level)

    def _log_attempt(self, attempt: Attempt, level: int) -> None:
        request, number, status, error, began, taken, waited, again_in, _ = attempt
        if not LOGGER.isEnabledFor(level):
            return
        outcome = str(status or "")
        if error is not None:
            outcome = f"{outcome}, {error[1]}".removeprefix(", ")
        message, arguments = "GET %s: %s in %.3f s (attempt %d)", [request, outcome, taken, number]
        if again_in is not None:
            message, arguments = f"{message}, retry in %.3f s", [*arguments, again_in]
        record = LOGGER.makeRecord(
            LOGGER.name, level, __file__, 0, message, tuple(arguments), None, "request"
        )
        # `extra` would raise an error if a record factory sets fields of these names.
        vars(record).update(
            base_url=self._base_url,
            method="GET",
            request=request,
            status=status,
            error=None if error is None else error[0],
            attempt=number,
            seconds_taken=taken,
            seconds_waited=waited,
            again_in=again_in,
        )
        # The record's time is the end of the request, not the time of this call.
        late = max(record.created - (began + taken), 0.0)
        record.created -= late
        record.relativeCreated -= late * 1000
        record.msecs = int(record.created % 1 * 1000)
        LOGGER.handle(record)

    def _trace(self, attempt: Attempt) -> None:
        if self.span is None or self.tracer is None:
            return
        from opentelemetry import trace

        request, number, status, error, began, taken, _, _, _ = attempt
        attributes: dict[str, AttributeValue] = {
            "http.request.method": "GET",
            "url.full": self._base_url + request,
            **_server(self._base_url),
        }
        if number > 1:
            attributes["http.request.resend_count"] = number - 1
        if status is not None:
            attributes["http.response.status_code"] = status
        failed = error[0] if error is not None else str(status)
        is_failed = error is not None or status is None or status >= 400
        if is_failed:
            attributes["error.type"] = failed
        span = self.tracer.start_span(
            "GET",
            trace.set_span_in_context(self.span),
            trace.SpanKind.CLIENT,
            attributes,
            start_time=int(began * NANOSECONDS),
        )
        if is_failed:
            span.set_status(trace.StatusCode.ERROR)
        span.end(int((began + taken) * NANOSECONDS))


def _server(base_url: str) -> dict[str, AttributeValue]:
    parts = urlsplit(base_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {"server.address": parts.hostname or "", "server.port": port}


def _trace_headers(span: Span) -> tuple[str | None, str | None]:
    from opentelemetry.trace import set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers, set_span_in_context(span))
    return headers.get("traceparent"), headers.get("tracestate")
