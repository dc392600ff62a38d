"""Options that there are not are refused by name, with the nearest that there is."""

import inspect
import re
import traceback
from pathlib import Path

import pytest

import backread
from backread import AsyncClient, Client
from backread.testing import Dialect, Fault, MockServer, Rate, World

HERE = {"base_url": "http://127.0.0.1:1", "api_secret": "mock_s3cret", "vendor": "example"}


@pytest.mark.parametrize(
    ("call", "options", "problem"),
    [
        (Client, {"max_retry": 3}, "Client() has no option max_retry; did you mean max_retries?"),
        (
            AsyncClient,
            {"time_out": 3},
            "AsyncClient() has no option time_out; did you mean timeout?",
        ),
        (
            Client,
            {"verify": False},
            "Client() has no option verify; it has allow_http, api_secret,",
        ),
        (World, {"user": 3}, "World() has no option user; did you mean users?"),
        (
            World,
            {"size": 3},
            "World() has no option size; it has messages_per_user, seed, until, users",
        ),
        (MockServer, {"fault": ""}, "MockServer() has no option fault; did you mean faults?"),
        (Dialect, {"ordr": "id"}, "Dialect() has no option ordr; did you mean order?"),
        (Dialect.hostile, {"null": "both"}, "Dialect() has no option null; did you mean nulls?"),
        (Fault.drip, {"byte": 3}, "Fault.drip() has no option byte; did you mean bytes?"),
    ],
)
def test_client_names_an_unknown_option(call, options, problem):
    with pytest.raises(TypeError, match=f"^{re.escape(problem)}"):
        call(**options)


def test_fault_rate_and_lane_name_an_unknown_option(backread_mock):
    for call, nearest in (
        (lambda: Fault.status(503, retry=3), "retry_after"),
        (lambda: Rate(5, brust=3), "burst"),  # type: ignore[call-arg]
        (lambda: backread_mock.on("users", ofset=3), "offset"),
        (lambda: backread_mock.on("users").fail("reset()", attempts=3), "attempt"),
        (lambda: backread_mock.between_pages("users", after_=3), "after"),
        (lambda: backread_mock.client(timeouts=3), "timeout"),
    ):
        with pytest.raises(TypeError, match=rf"did you mean {nearest}\?$"):
            call()


def test_with_options_tells_what_is_unknown_from_what_cannot_change():
    with Client(**HERE) as client:
        with pytest.raises(TypeError, match="no option max_retry; did you mean max_retries"):
            client.with_options(max_retry=3)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"cannot change proxy: .* make a new Client"):
            client.with_options(proxy="")  # type: ignore[call-arg]


def test_signatures_name_each_option():
    assert inspect.signature(Client).parameters["max_retries"].default == 5
    assert list(inspect.signature(Fault.status).parameters) == ["code", "retry_after", "body"]
    world = list(inspect.signature(World).parameters)
    assert world == ["seed", "users", "messages_per_user", "until"]


def test_no_frame_of_the_error_keeps_the_secret():
    with pytest.raises(TypeError) as caught:
        Client(**HERE, max_retry=3)  # type: ignore[arg-type]
    frames = traceback.TracebackException.from_exception(caught.value, capture_locals=True).stack
    ours = str(Path(backread.__file__).parent)
    own = [frame for frame in frames if frame.filename.startswith(ours)]
    assert own
    assert all(HERE["api_secret"] not in str(frame.locals) for frame in own)


def test_limit_of_a_list_names_max_items():
    said = "has no option limit; max_items ends the walk after that many rows; page_size is"
    with Client(**HERE) as client:
        for method, name in (
            (client.users.list, "Users.list"),
            (lambda **given: client.messages.list(42, **given), "Messages.list"),
            (client.messages.all, "Messages.all"),
        ):
            with pytest.raises(TypeError, match=rf"^{name}\(\) {said}"):
                method(limit=10)
        with pytest.raises(TypeError, match="no option max_item; did you mean max_items"):
            client.users.list(max_item=10)  # type: ignore[call-overload]
        # Where there is a limit, it is one.
        assert "limit" in inspect.signature(client.users.page).parameters


def test_limit_of_an_async_list_names_max_items():
    client = AsyncClient(**HERE)
    for method in (client.users.list, client.messages.all):
        with pytest.raises(TypeError, match=r"^Async\w+\.\w+\(\) has no option limit; max_items"):
            method(limit=10)  # type: ignore[call-overload]
