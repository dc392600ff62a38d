"""The errors that backread raises, except for wrong arguments to a call.

All derive from `BackreadError`, and from the matching built-in exception where there is one. Each
has the URL of the request that failed in ``url`` and its attempts in ``attempts``, and pickles with
all of its attributes.
None contains the API secret. All but `StatusError` itself can be made from their message alone, as
Celery does with JSON results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from backread._display.words import plain
from backread.models import Attempt

if TYPE_CHECKING:
    from backread.models import WalkReport

__all__ = [
    "Attempt",
    "AuthenticationError",
    "BackreadError",
    "BadRequestError",
    "ConfigurationError",
    "ConnectError",
    "DeadlineExceededError",
    "DecodeError",
    "IncompleteError",
    "IncompleteWarning",
    "LandingError",
    "MirrorBusyError",
    "MirrorError",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitError",
    "RequestTimeoutError",
    "ResponseTooLargeError",
    "ServerError",
    "StatusError",
    "TransportError",
    "TruncatedBodyError",
]


class BackreadError(Exception):
    """The base class. ``attempts`` has one entry per attempt of the request that failed, in order.

    It is empty if no request failed, as of an `IncompleteError`. ``url`` is that of the request, or
    of the list that was read, without the secret; ``None`` if neither was begun.
    """

    attempts: tuple[Attempt, ...]
    url: str | None = None

    def __init__(self, message: str, *, attempts: Iterable[Attempt] = ()) -> None:
        # Names of folders or machines may contain terminal control sequences.
        super().__init__(plain(message))
        self.attempts = tuple(attempts)

    # The inherited method calls the class with only the message; subclasses need more arguments.
    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__.copy())


def _restore(
    kind: type[BackreadError], arguments: tuple[Any, ...], attributes: Mapping[str, Any]
) -> BackreadError:
    error = kind.__new__(kind, *arguments)
    # An OSError that defines __init__ takes its arguments there, not in __new__.
    BaseException.__init__(error, *arguments)
    error.__dict__.update(attributes)
    return error


class ConfigurationError(BackreadError, ValueError):
    """A client option is missing or malformed; the message names the argument and the variable.

    Also raised when a client is unpickled and ``BACKREAD_API_SECRET`` is not set.
    """


class TransportError(BackreadError):
    """No complete response arrived, even after the retries, or a redirect was refused.

    Also raised as such for a response whose headers are not HTTP.

    Redirects to another origin are never followed, since that would send the secret there.
    """


class ConnectError(TransportError, ConnectionError):
    """The connection could not be made, or broke before the response."""


class RequestTimeoutError(TransportError, TimeoutError):
    """One attempt, the last one, took longer than ``timeout``."""


class TruncatedBodyError(TransportError):
    """The body is shorter than declared."""


class ResponseTooLargeError(TransportError):
    """The decoded body is larger than ``max_response_bytes``. Not retried."""


class DeadlineExceededError(BackreadError, TimeoutError):
    """The whole call passed its ``deadline``, or the next wait would have.

    ``wait`` is that next wait, in seconds; ``None`` if the call was not waiting for a retry.
    """

    wait: float | None

    def __init__(
        self, message: str, *, wait: float | None = None, attempts: Iterable[Attempt] = ()
    ) -> None:
        super().__init__(message, attempts=attempts)
        self.wait = wait


class DecodeError(BackreadError):
    """A successful response is not JSON, or not of the documented shape.

    ``path`` locates the value (such as ``$.users[3].id``), ``snippet`` is the text around it.
    """

    path: str
    snippet: str

    def __init__(
        self,
        message: str,
        *,
        path: str = "",
        snippet: str = "",
        attempts: Iterable[Attempt] = (),
    ) -> None:
        super().__init__(message, attempts=attempts)
        self.path = path
        self.snippet = snippet


class StatusError(BackreadError):
    """The service answered with an error status, even after the retries.

    ``status_code`` is the status. Error bodies are undocumented, so ``body`` is the raw bytes,
    decompressed, or a sentence if they cannot be. ``headers`` are the response's, names in lower
    case. If the service repeats the secret in body or headers, it is replaced by stars.
    ``request_id`` is the service's id of the request, ``None`` if it sent none.
    """

    status_code: int
    headers: dict[str, str]
    body: bytes
    request_id: str | None

    _usual_status: ClassVar[int | None] = None

    def __init__(
        self,
        message: str,
        *,
        status_code: int | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        request_id: str | None = None,
        attempts: Iterable[Attempt] = (),
    ) -> None:
        super().__init__(message, attempts=attempts)
        status_code = self._usual_status if status_code is None else status_code
        if status_code is None:
            raise TypeError(f"{type(self).__name__}() needs the keyword argument status_code")
        self.status_code = status_code
        self.headers = dict(headers or {})
        self.body = body
        self.request_id = request_id


class BadRequestError(StatusError):
    """400 or 422: the service rejected the request's arguments. Not retried."""

    _usual_status = 400


class AuthenticationError(StatusError):
    """401: the API secret is missing or wrong. Not retried."""

    _usual_status = 401


class PermissionDeniedError(StatusError):
    """403: the API secret may not read this. Not retried."""

    _usual_status = 403


class NotFoundError(StatusError):
    """404 or 410: no such user or message, or the base URL is wrong. Not retried."""

    _usual_status = 404


class RateLimitError(StatusError):
    """429: too many requests.

    ``retry_after`` is the wait that the service requested, in seconds from the response (from
    ``Retry-After``, RFC 9110 10.2.3, or ``X-RateLimit-Reset``); ``None`` if it sent neither.
    """

    retry_after: float | None

    _usual_status = 429

    def __init__(
        self,
        message: str,
        *,
        status_code: int | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        request_id: str | None = None,
        retry_after: float | None = None,
        attempts: Iterable[Attempt] = (),
    ) -> None:
        super().__init__(
            message,
            status_code=status_code,
            headers=headers,
            body=body,
            request_id=request_id,
            attempts=attempts,
        )
        self.retry_after = retry_after


class ServerError(StatusError):
    """5xx: the service failed, even after the retries."""

    _usual_status = 500


class IncompleteError(BackreadError):
    """A walk with ``strict=True`` ended without a certificate; ``report`` says what is missing.

    No request failed, so ``attempts`` is empty; ``report.requests`` counts what was sent.
    """

    report: WalkReport

    def __init__(
        self, message: str, *, report: WalkReport | None = None, attempts: Iterable[Attempt] = ()
    ) -> None:
        super().__init__(message, attempts=attempts)
        # Every walk gives one; only an error made from its message alone has none.
        self.report = cast("WalkReport", report)


class IncompleteWarning(UserWarning):
    """A walk over many users' messages skipped lists, or users, that could not be read."""


class MirrorError(BackreadError):
    """The mirror's folder cannot be used; the message says why and what to do."""


class MirrorBusyError(MirrorError):
    """Another process is writing to the mirror's folder, such as a sync; the message names it."""


class LandingError(BackreadError):
    """A landing folder cannot be used or a run in it cannot be committed; the message says why."""
