"""The error tree: what catches what, what each error carries, and that it survives a process."""

import copy
import pickle
from typing import Any

import pytest

from backread import errors
from backread.errors import (
    Attempt,
    AuthenticationError,
    BackreadError,
    BadRequestError,
    ConfigurationError,
    ConnectError,
    DeadlineExceededError,
    DecodeError,
    IncompleteError,
    LandingError,
    MirrorBusyError,
    MirrorError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    RequestTimeoutError,
    ResponseTooLargeError,
    ServerError,
    StatusError,
    TransportError,
    TruncatedBodyError,
)
from backread.models import WalkReport

ATTEMPTS = (Attempt(503, None, 0.1, 0.0), Attempt(None, "connection reset", 0.2, 1.5))
REPORT = WalkReport(3, 3, 250, 250, 0, 251, 251, 1, 0, "uncertified", None, None, "1 row short")
URL = "https://chat.example.com/api/external/users/42"
MESSAGE = f"GET {URL}: it went wrong"

ANSWER: dict[str, Any] = {
    "status_code": 429,
    "headers": {"retry-after": "30", "content-type": "text/plain"},
    "body": b"slow \xff down",
    "request_id": "r-17",
}

CASES: list[tuple[type[BackreadError], dict[str, Any]]] = [
    (BackreadError, {}),
    (ConfigurationError, {}),
    (TransportError, {}),
    (ConnectError, {}),
    (RequestTimeoutError, {}),
    (TruncatedBodyError, {}),
    (ResponseTooLargeError, {}),
    (DeadlineExceededError, {}),
    (DeadlineExceededError, {"wait": 30.0}),
    (DecodeError, {"path": "$.users[3].id", "snippet": '{"id": "x"}'}),
    (StatusError, ANSWER),
    (BadRequestError, ANSWER),
    (AuthenticationError, ANSWER),
    (PermissionDeniedError, ANSWER),
    (NotFoundError, ANSWER),
    (RateLimitError, {**ANSWER, "retry_after": 30.0}),
    (ServerError, {**ANSWER, "request_id": None}),
    (IncompleteError, {"report": REPORT}),
    (LandingError, {}),
    (MirrorBusyError, {}),
    (MirrorError, {}),
]

USUAL: dict[type[BackreadError], int] = {
    BadRequestError: 400,
    AuthenticationError: 401,
    PermissionDeniedError: 403,
    NotFoundError: 404,
    RateLimitError: 429,
    ServerError: 500,
}


def made(kind: type[BackreadError], attributes: dict[str, Any]) -> BackreadError:
    error = kind(MESSAGE, attempts=ATTEMPTS, **attributes)
    error.url = URL
    return error


def check(error: BaseException, kind: type[BackreadError], attributes: dict[str, Any]) -> None:
    assert type(error) is kind
    assert isinstance(error, BackreadError)
    assert str(error) == MESSAGE
    assert repr(error) == f"{kind.__name__}({MESSAGE!r})"
    assert (error.attempts, error.url) == (ATTEMPTS, URL)
    for name, value in attributes.items():
        assert getattr(error, name) == value


def test_every_error_of_the_module_is_tested_here():
    assert {kind.__name__ for kind, _ in CASES} == set(errors.__all__) - {
        "Attempt",
        "IncompleteWarning",
    }


@pytest.mark.parametrize(
    ("kind", "attributes"), CASES, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_copy_carries_all_that_the_error_did(kind, attributes):
    error = made(kind, attributes)
    error.add_note("while syncing chats/")
    for copied in (error, copy.copy(error), copy.deepcopy(error)):
        check(copied, kind, attributes)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        unpickled = pickle.loads(pickle.dumps(error, protocol))
        check(unpickled, kind, attributes)
        assert unpickled.__notes__ == error.__notes__


@pytest.mark.parametrize(
    ("kind", "base"),
    [
        (ConfigurationError, ValueError),
        (ConnectError, TransportError),
        (ConnectError, ConnectionError),
        (RequestTimeoutError, TransportError),
        (RequestTimeoutError, TimeoutError),
        (TruncatedBodyError, TransportError),
        (ResponseTooLargeError, TransportError),
        (DeadlineExceededError, TimeoutError),
        (BadRequestError, StatusError),
        (AuthenticationError, StatusError),
        (PermissionDeniedError, StatusError),
        (NotFoundError, StatusError),
        (RateLimitError, StatusError),
        (ServerError, StatusError),
    ],
)
def test_the_built_in_error_of_the_same_meaning_catches_it_too(kind, base):
    assert issubclass(kind, base)
    assert not issubclass(DeadlineExceededError, TransportError)


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in CASES} - {StatusError}, key=str))
def test_an_error_can_be_made_from_its_message_as_celery_does(kind):
    error = kind(*kind(MESSAGE).args)
    attributes = {"status_code": USUAL[kind], "headers": {}, "body": b""} if kind in USUAL else {}
    assert error.attempts == ()
    assert type(pickle.loads(pickle.dumps(error))) is type(error) is kind
    assert str(error) == MESSAGE
    for name, value in attributes.items():
        assert getattr(error, name) == value


def test_what_a_status_error_carries_is_required():
    with pytest.raises(TypeError, match="status_code"):
        StatusError(MESSAGE)  # type: ignore[call-arg]
