"""Spans of OpenTelemetry: one for each operation and each request, where the program traces."""

import asyncio
import gc
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from backread import AsyncClient, BackreadError, ConfigurationError
from helpers.api_rows import paged, user, users
from helpers.scripted_server import HANG_UP, answer


class Traced:
    """A provider of this test alone, and the spans that have ended."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    traced = Traced()
    monkeypatch.setattr(trace, "get_tracer", traced.provider.get_tracer)
    yield traced
    traced.provider.shutdown()


def place(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def test_an_operation_is_a_span_with_one_for_each_request(each_face, scripted, traced):
    server = scripted(answer(503), answer(200, user(42)))
    each_face.call(each_face.client(server).users.get, 42)
    first, second, operation = traced.spans
    assert operation.name == "backread users.get"
    assert (first.name, first.kind) == ("GET", trace.SpanKind.CLIENT)
    host, port = server.url.removeprefix("http://").split("/")[0].split(":")
    assert dict(first.attributes or {}) == {
        "http.request.method": "GET",
        "url.full": f"{server.url}/external/users/42",
        "server.address": host,
        "server.port": int(port),
        "http.response.status_code": 503,
        "error.type": "503",
    }
    assert first.status.status_code is trace.StatusCode.ERROR
    assert dict(second.attributes or {})["http.request.resend_count"] == 1
    assert second.status.status_code is trace.StatusCode.UNSET
    for request in (first, second):
        assert request.parent is not None
        assert (request.parent.trace_id, request.parent.span_id) == place(operation)
        assert operation.start_time <= request.start_time <= request.end_time
        # By the machine's clock, to the microsecond of a float.
        assert request.end_time <= operation.end_time + 1000


def test_an_operation_belongs_to_the_span_of_its_caller(each_face, scripted, traced):
    client = each_face.client(scripted(answer(200, user(42)), answer(200, user(43))))

    def get(user_id: int) -> Any:
        with traced.provider.get_tracer("caller").start_as_current_span("caller"):
            return client.users.get(user_id)

    async def awaited(user_id: int) -> Any:
        with traced.provider.get_tracer("caller").start_as_current_span("caller"):
            return await client.users.get(user_id)

    each_face.call(awaited if each_face.name == "async" else get, 42)
    (caller,) = traced.named("caller")
    (operation,) = traced.named("backread users.get")
    assert operation.parent is not None
    assert operation.parent.span_id == place(caller)[1]


def test_a_walk_is_one_span_with_all_of_its_requests(each_face, scripted, traced):
    server = scripted(paged(users(300)))
    client = each_face.client(server)
    each_face.collect(client.users.list())
    (operation,) = traced.named("backread users.list")
    requests = traced.named("GET")
    assert len(requests) == len(server.requests)
    assert {one.parent.span_id for one in requests if one.parent} == {place(operation)[1]}
    # Nor does a stream, or a walk that is broken off, leave its span open.
    each_face.call(client.users.list().to_arrow)
    each_face.take(client.users.list(), 3)
    assert len(traced.named("backread users.list")) == 3


def test_what_failed_says_so(face, scripted, traced):
    server = scripted(HANG_UP, HANG_UP, answer(404, b"sentinel"))
    client = face.client(server, max_retries=0)
    for expected in ("ConnectError", "NotFoundError"):
        with pytest.raises(BackreadError):
            face.call(client.users.get, 42)
        operation = traced.named("backread users.get")[-1]
        assert dict(operation.attributes or {})["error.type"] == expected
        assert operation.status.status_code is trace.StatusCode.ERROR
    assert [dict(one.attributes or {})["error.type"] for one in traced.named("GET")] == [
        "ConnectError",
        "ConnectError",
        "404",
    ]
    shown = "".join(span.to_json() for span in traced.spans)
    assert "sentinel" not in shown
    assert server.secret not in shown


def test_a_cancelled_call_ends_its_span(scripted, traced):
    server = scripted(lambda request: server.stall())

    async def main() -> None:
        async with AsyncClient(server.url, server.secret, server.vendor) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.users.get(42), 0.1)
            gc.collect()

    asyncio.run(main())
    assert len(traced.named("backread users.get")) == 1


def test_the_trace_is_told_to_the_service_only_if_asked_for(face, scripted, traced, monkeypatch):
    server = scripted(*[answer(200, user(42))] * 3)
    monkeypatch.setenv("BACKREAD_API_SECRET", server.secret)
    client = face.client(server)
    face.call(client.users.get, 42)
    assert "traceparent" not in server.requests[0].headers
    face.call(client.with_options(traceparent=True).users.get, 42)
    operation = traced.named("backread users.get")[1]
    trace_id, span_id = place(operation)
    assert server.requests[1].headers["traceparent"][:-2] == f"00-{trace_id:032x}-{span_id:016x}-"
    # Its copies tell too, until one is told not to.
    told = pickle.loads(pickle.dumps(client.with_options(traceparent=True)))
    face.call(told.with_options(timeout=5).users.get, 42)
    assert "traceparent" in server.requests[2].headers
    assert not told.with_options(traceparent=False)._traceparent
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(ConfigurationError, match="pip install opentelemetry-api"):
        client.with_options(traceparent=True)


@pytest.mark.parametrize("fails", [True, False])
def test_a_processor_of_spans_may_read_or_fail(face, scripted, traced, monkeypatch, fails):
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    server = scripted(*[answer(200, user(42))] * 9)
    other = face.client(server)
    processor = SpanProcessor()

    def on_start(span: Any, parent_context: Any = None) -> None:
        assert not fails
        other.users.get(42)

    monkeypatch.setattr(processor, "on_start", on_start)
    traced.provider.add_span_processor(processor)
    assert face.call(face.client(server).users.get, 42).id == 42
    if fails:
        assert {type(one.exc_value) for one in raised} == {AssertionError}
    else:
        assert len(traced.named("backread users.get")) == 1
