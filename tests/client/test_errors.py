"""The error tree: what catches what, what each error carries, and that it survives a process."""

import copy
import pickle
from typing import Any

import pytest

from backread import errors
from backread.models import WalkReport

ATTEMPTS = (errors.Attempt(503, None, 0.1, 0.0), errors.Attempt(None, "connection reset", 0.2, 1.5))
REPORT = WalkReport(3, 3, 250, 250, 0, 251, 251, 1, 0, "uncertified", None, None, "1 row short")
URL = "https://chat.example.com/api/external/users/42"
MESSAGE = f"GET {URL}: it went wrong"

ANSWER: dict[str, Any] = {
    "status_code": 429,
    "headers": {"retry-after": "30", "content-type": "text/plain"},
    "body": b"slow \xff down",
    "request_id": "r-17",
}

CASES: list[tuple[type[errors.BackreadError], type[Exception], dict[str, Any]]] = [
    (errors.BackreadError, Exception, {}),
    (errors.ConfigurationError, ValueError, {}),
    (errors.TransportError, errors.BackreadError, {}),
    (errors.ConnectError, ConnectionError, {}),
    (errors.RequestTimeoutError, TimeoutError, {}),
    (errors.TruncatedBodyError, errors.TransportError, {}),
    (errors.ResponseTooLargeError, errors.TransportError, {}),
    (errors.DeadlineExceededError, TimeoutError, {"wait": 30.0}),
    (errors.DecodeError, errors.BackreadError, {"path": "$.users[3].id", "snippet": '{"id": "x"}'}),
    (errors.StatusError, errors.BackreadError, ANSWER),
    (errors.BadRequestError, errors.StatusError, ANSWER),
    (errors.AuthenticationError, errors.StatusError, ANSWER),
    (errors.PermissionDeniedError, errors.StatusError, ANSWER),
    (errors.NotFoundError, errors.StatusError, ANSWER),
    (errors.RateLimitError, errors.StatusError, {**ANSWER, "retry_after": 30.0}),
    (errors.ServerError, errors.StatusError, {**ANSWER, "request_id": None}),
    (errors.IncompleteError, errors.BackreadError, {"report": REPORT}),
    (errors.LandingError, errors.BackreadError, {}),
    (errors.MirrorBusyError, errors.BackreadError, {}),
    (errors.MirrorError, errors.BackreadError, {}),
]
"""Each error, what else catches it, and what it carries."""

USUAL: dict[type[errors.BackreadError], int] = {
    errors.BadRequestError: 400,
    errors.AuthenticationError: 401,
    errors.PermissionDeniedError: 403,
    errors.NotFoundError: 404,
    errors.RateLimitError: 429,
    errors.ServerError: 500,
}


def check(
    error: BaseException, kind: type[errors.BackreadError], attributes: dict[str, Any]
) -> None:
    assert type(error) is kind
    assert isinstance(error, errors.BackreadError)
    assert str(error) == MESSAGE
    assert repr(error) == f"{kind.__name__}({MESSAGE!r})"
    assert (error.attempts, error.url) == (ATTEMPTS, URL)
    for name, value in attributes.items():
        assert getattr(error, name) == value


def test_every_error_of_the_module_is_tested_here():
    names = {kind.__name__ for kind, _, _ in CASES}
    assert names == set(errors.__all__) - {"Attempt", "IncompleteWarning"}
    assert issubclass(errors.ConnectError, errors.TransportError)
    assert issubclass(errors.RequestTimeoutError, errors.TransportError)
    assert not issubclass(errors.DeadlineExceededError, errors.TransportError)


@pytest.mark.parametrize(
    ("kind", "base", "attributes"), CASES, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_copy_carries_all_that_the_error_did(kind, base, attributes):
    assert issubclass(kind, base)
    error = kind(MESSAGE, attempts=ATTEMPTS, **attributes)
    error.url = URL
    error.add_note("while syncing chats/")
    for copied in (error, copy.copy(error), copy.deepcopy(error)):
        check(copied, kind, attributes)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        unpickled = pickle.loads(pickle.dumps(error, protocol))
        check(unpickled, kind, attributes)
        assert unpickled.__notes__ == error.__notes__


@pytest.mark.parametrize("kind", [kind for kind, _, _ in CASES if kind is not errors.StatusError])
def test_an_error_can_be_made_from_its_message_as_celery_does(kind):
    error = kind(*kind(MESSAGE).args)
    attributes = {"status_code": USUAL[kind], "headers": {}, "body": b""} if kind in USUAL else {}
    assert error.attempts == ()
    assert type(pickle.loads(pickle.dumps(error))) is type(error) is kind
    assert str(error) == MESSAGE
    for name, value in attributes.items():
        assert getattr(error, name) == value
    with pytest.raises(TypeError, match="status_code"):
        errors.StatusError(MESSAGE)  # type: ignore[call-arg]
