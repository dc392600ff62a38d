"""What is logged: each request under the logger ``backread``, and nothing of what is secret."""

import asyncio
import contextvars
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest

from backread import AsyncClient, BackreadError, Client, Mirror
from backread.testing import Fault, MockServer, World
from helpers.api_rows import paged, user, users
from helpers.scripted_server import HANG_UP, answer
from helpers.waiting import AT_ONCE, PATIENCE


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "backread")
    return caplog


def told(log: pytest.LogCaptureFixture) -> list[str]:
    """The messages of backread's records, without the times."""
    return [
        " ".join("#" if part.replace(".", "").isdigit() and "." in part else part for part in parts)
        for record in log.records
        if record.name.startswith("backread") and (parts := record.getMessage().split())
    ]


def test_each_request_is_logged_with_status_and_attempt(face, scripted, log):
    server = scripted(answer(503), answer(200, user(42)), HANG_UP, HANG_UP)
    client = face.client(server)
    face.call(client.users.get, 42)
    with pytest.raises(BackreadError):
        face.call(client.with_options(max_retries=0).users.get, 43)
    assert told(log)[:2] == [
        "GET /external/users/42: 503 in # s (attempt 1), retry in # s",
        "GET /external/users/42: 200 in # s (attempt 2)",
    ]
    first, second, failed, _ = (one for one in log.records if one.name == "backread.http")
    assert (first.levelname, second.levelname) == ("INFO", "DEBUG")
    assert (failed.status, failed.error) == (None, "ConnectError")
    assert "no answer" in failed.getMessage()


def test_a_record_has_the_request_in_its_fields(face, scripted, log):
    server = scripted(answer(429, b"", {"retry-after": "1"}), answer(200, user(42)))
    before = time.time()
    face.call(face.client(server).users.get, 42)
    first, second = (record for record in log.records if record.name == "backread.http")
    assert (first.base_url, first.method, first.request) == (
        server.url,
        "GET",
        "/external/users/42",
    )
    assert (first.status, first.attempt, first.again_in, first.error) == (429, 1, 1.0, None)
    assert (second.status, second.attempt, second.again_in) == (200, 2, None)
    assert second.seconds_waited >= 0.9
    assert 0 < second.seconds_taken < AT_ONCE
    assert before <= first.created <= second.created - 0.9 <= time.time()


@pytest.mark.parametrize(
    "said",
    [
        answer(200, "sentinel of a body"),
        answer(200, {"id": "sentinel"}),
        answer(200, {"id": 42, "sentinel": [{}], "user_attributes": {"sentinel": 1}}),
        answer(400, "sentinel", {"x-request-id": "sentinel"}),
    ],
)
def test_no_record_holds_a_part_of_a_body_or_the_secret(face, scripted, log, said):
    server = scripted(said)
    client = face.client(server, max_retries=0)
    # A log that shows the error itself is the program's own doing.
    with suppress(BackreadError):
        face.call(client.users.get, 42)
    records = [vars(record) for record in log.records if record.name.startswith("backread")]
    assert records
    assert "sentinel" not in str(records)
    assert server.secret not in str(records)


CALLS: dict[str, Callable[[Client, Mirror], Any]] = {
    "a page": lambda client, mirror: client.users.page(),
    "a walk by pages": lambda client, mirror: list(client.users.list().pages()),
    "every message": lambda client, mirror: client.messages.all().to_list(),
    "an Arrow stream": lambda client, mirror: client.messages.all().to_arrow(),
    "a probe": lambda client, mirror: client.probe(),
    "a sync": lambda client, mirror: mirror.sync(client),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_request_of_every_kind_of_call_is_logged(mirror, log, name):
    pytest.importorskip("pyarrow")
    pytest.importorskip("duckdb")
    with MockServer(World(seed=7, users=120, messages_per_user=(0, 2))) as server:
        CALLS[name](server.client(), mirror)
        records = [record for record in log.records if record.name == "backread.http"]
        assert len(records) == server.calls().count > 0


@contextmanager
def filtered(check: Callable[[logging.LogRecord], bool]) -> Iterator[None]:
    """Each record of a request goes through the filter."""
    logging.getLogger("backread.http").addFilter(check)
    try:
        yield
    finally:
        logging.getLogger("backread.http").removeFilter(check)


def test_a_handler_that_raises_costs_neither_the_read_nor_another_record(
    each_face, scripted, log, monkeypatch
):
    raised: list[Any] = []
    tried: list[str] = []

    def fails_once(record: logging.LogRecord) -> bool:
        tried.append(record.getMessage())
        if len(tried) == 1:
            raise RuntimeError("a broken filter")
        return True

    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    server = scripted(paged(users(300)))
    with filtered(fails_once):
        rows = each_face.call(each_face.client(server).users.list().to_list)
    assert len(rows) == 300
    assert [str(one.exc_value) for one in raised] == ["a broken filter"]
    assert len(tried) == len(server.requests) > 3


def test_a_wait_is_told_of_while_it_lasts(each_face, scripted, log):
    server = scripted(answer(503, b"", {"retry-after": "2"}), answer(200, user(42)))
    seen: list[tuple[int, float]] = []

    def note(record: logging.LogRecord) -> bool:
        seen.append((len(server.requests), time.monotonic()))
        return True

    with filtered(note):
        each_face.call(each_face.client(server).users.get, 42)
    (requests, first), (_, last) = seen
    assert requests == 1
    assert last - first > 1


def test_a_record_is_made_in_the_context_of_its_call(mock, log):
    """Log filters read context variables: the id of a web request, for example."""
    request_id = contextvars.ContextVar("request_id", default="none")
    seen: dict[str, set[str]] = {}
    user_ids = mock.world.user_ids()[:5]
    mock.on("user").fail(Fault.status(429, retry_after=1), times=1, each=True)

    def note(record: logging.LogRecord) -> bool:
        user_id = record.request.rpartition("/")[2]  # type: ignore[attr-defined]
        seen.setdefault(user_id, set()).add(request_id.get())
        return True

    async def get(client: AsyncClient, user_id: int) -> None:
        request_id.set(f"of {user_id}")
        await client.users.get(user_id)

    async def main() -> None:
        async with mock.async_client() as client:
            await asyncio.create_task(get(client, user_ids[0]))
            await asyncio.gather(*(asyncio.create_task(get(client, one)) for one in user_ids[1:]))

    with filtered(note):
        asyncio.run(main())
    assert seen == {str(one): {f"of {one}"} for one in user_ids}


def test_requests_that_nobody_looked_at_are_counted(log):
    from backread._client.telemetry import Operation

    Operation("http://127.0.0.1:1").tell([], 3)
    assert told(log) == ["3 requests are not logged: too many ended between two log flushes"]


def test_no_request_waits_for_a_thread_that_has_the_interpreter(backread_mock, log):
    # One message is given, and lists are read ahead while this thread lets no other run.
    backread_mock.on("messages").fail(Fault.latency(20))
    switch_interval = sys.getswitchinterval()
    with backread_mock.client() as client, closing(iter(client.messages.all())) as messages:
        next(messages)
        sys.setswitchinterval(1000)
        try:
            seen, until = backread_mock.calls("messages").count, time.monotonic() + PATIENCE
            while backread_mock.calls("messages").count < seen + 5 and time.monotonic() < until:
                sum(range(100_000))
            fetched = backread_mock.calls("messages").count - seen
        finally:
            sys.setswitchinterval(switch_interval)
        # Nothing is under way when the lane closes.
        list(messages)
    assert fetched >= 5


def test_threads_that_log_and_read_do_not_lock_each_other_out(scripted, log):
    server = scripted(lambda request: answer(200, user(42)))
    with Client(server.url, server.secret, server.vendor) as client:
        done: list[int] = []

        def work() -> None:
            for _ in range(20):
                logging.getLogger("backread.elsewhere").debug("at work")
                done.append(client.users.get(42).id)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(done) == 160
    assert len([1 for record in log.records if record.name == "backread.http"]) == 160
