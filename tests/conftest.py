"""Fixtures for all tests.

``each_face``: one test body for both clients, where awaiting, cancelling or streaming may differ;
the test runs once with `Client` and once with `AsyncClient`, and makes its calls through the face,
which awaits where that is needed::

    def test_get(each_face, backread_server):
        client = each_face.client(backread_server, timeout=5)     # closed after the test
        user = each_face.call(client.users.get, 42)               # client.users.get(42), or awaited
        rows = each_face.collect(client.users.list())             # for, or async for
        pages = each_face.pages(client.users.list())              # the same over .pages()
        first = each_face.take(client.users.list(), 3)            # breaks off after three items
        table = each_face.call(client.users.list().to_arrow)      # any method, async or not
        each_face.close(client)                                   # close(), or await aclose()
        user = each_face.get(server, timeout=5)                   # user 42, by a new client
        error = each_face.failure(server, ServerError)            # the error of that

``each_face.name`` is "sync" or "async", ``each_face.kind`` the class. A test that needs more of one
face, such as cancelling a task, is about that face alone and does not use the fixture.

``face``: the same calls by `Client` alone. Most tests use this one, because all below the awaiting
is the same code.

``by_hand``: sends requests without a client (see helpers/raw_requests.py)::

    assert by_hand(backread_mock)("/external/users").status == 200

``scripted``: makes servers that answer with canned bytes (see helpers/scripted_server.py)::

    def test_retry(face, scripted):
        server = scripted(answer(503), answer(200, {"id": 42}))
        assert face.call(face.client(server).users.get, 42).id == 42
        assert len(server.requests) == 2
"""

import asyncio
import contextlib
import contextvars
import inspect
import itertools
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers import command_line, raw_requests
from helpers.scripted_server import ScriptedServer

admin = raw_requests.admin
admin_server = raw_requests.admin_server
backread = command_line.backread
doctor = command_line.doctor
server = command_line.server
settings = command_line.settings


@pytest.fixture
def mirror(tmp_path: Path) -> Any:
    """A mirror in a folder that does not exist yet."""
    from backread import Mirror

    return Mirror(tmp_path / "chats")


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment says nothing to a client: no setting, proxy or certificate."""
    others = {"all_proxy", "http_proxy", "https_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir"}
    for name in [*os.environ]:
        if name.startswith("BACKREAD_") or name.lower() in others:
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Issues certificates for TLS (see helpers/tls_server.py)."""
    pytest.importorskip("trustme")
    from helpers.tls_server import Authority

    return Authority(tmp_path_factory.mktemp("authority"))


# A pytest that a test starts would load the plugins of all that is installed here, which takes 4 s
# of CPU time and which no test is about.
FEWER_PLUGINS = "-p no:schemathesis -p no:hypothesispytest -p no:anyio"
os.environ["PYTEST_ADDOPTS"] = FEWER_PLUGINS


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """pytest's own, which clears that variable."""
    monkeypatch.setenv("PYTEST_ADDOPTS", FEWER_PLUGINS)
    return pytester


with contextlib.suppress(ImportError):
    from hypothesis import settings as hypothesis_settings

    # The same examples in each run, however slow the machine is.
    hypothesis_settings.register_profile("backread", deadline=None, derandomize=True, database=None)
    hypothesis_settings.load_profile("backread")


# A shell gives its background jobs a SIGINT that is ignored, and children would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Face:
    """`Client`; see the top of this file."""

    name = "sync"

    def __init__(self, cleanup: contextlib.ExitStack) -> None:
        from backread import Client

        self.kind: type[Any] = Client
        self._cleanup = cleanup

    def client(self, server: Any, **options: Any) -> Any:
        """A client of a mock, by whose clock it goes, or of a `Place`; closed after the test."""
        client = (server.client if self.name == "sync" else server.async_client)(**options)
        self._cleanup.callback(self.close, client)
        return client

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        result = function(*arguments, **named)
        assert not inspect.isawaitable(result), f"{function} of the sync face gave an awaitable"
        return result

    def collect(self, listing: Any) -> list[Any]:
        return list(iter(listing))

    def take(self, listing: Any, count: int) -> list[Any]:
        with contextlib.closing(iter(listing)) as items:
            return list(itertools.islice(items, count))

    def close(self, client: Any) -> None:
        client.close()

    def pages(self, listing: Any) -> list[Any]:
        return self.collect(listing.pages())

    def get(self, server: Any, **options: Any) -> Any:
        """User 42, by a client that is closed afterwards."""
        client = self.client(server, **options)
        try:
            return self.call(client.users.get, 42)
        finally:
            self.close(client)

    def failure(
        self, server: Any, kind: type[Exception], match: str | None = None, **options: Any
    ) -> Any:
        """The error of `get`."""
        with pytest.raises(kind, match=match) as caught:
            self.get(server, **options)
        return caught.value


class AsyncFace(Face):
    """`AsyncClient`, whose calls are awaited."""

    name = "async"

    def __init__(self, cleanup: contextlib.ExitStack) -> None:
        from backread import AsyncClient

        super().__init__(cleanup)
        self.kind = AsyncClient
        self._runner = cleanup.enter_context(asyncio.Runner())

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        async def main() -> Any:
            result = function(*arguments, **named)
            return await result if inspect.isawaitable(result) else result

        # Free-threaded Python catches warnings by context, and the runner's is older.
        return self._runner.run(main(), context=contextvars.copy_context())

    def collect(self, listing: Any) -> list[Any]:
        async def main() -> list[Any]:
            return [item async for item in listing]

        return self.call(main)

    def take(self, listing: Any, count: int) -> list[Any]:
        async def main() -> list[Any]:
            taken: list[Any] = []
            async with contextlib.aclosing(aiter(listing)) as items:
                while len(taken) < count and (item := await anext(items, None)) is not None:
                    taken.append(item)
            return taken

        return self.call(main)

    def close(self, client: Any) -> None:
        self.call(client.aclose)


@pytest.fixture(params=[Face, AsyncFace], ids=["sync", "async"])
def each_face(request: pytest.FixtureRequest) -> Iterator[Face]:
    with contextlib.ExitStack() as cleanup:
        yield request.param(cleanup)


@pytest.fixture
def face() -> Iterator[Face]:
    with contextlib.ExitStack() as cleanup:
        yield Face(cleanup)


@pytest.fixture
def mock(backread_mock: Any) -> Any:
    """``backread_mock`` on virtual time: waits take none."""
    backread_mock.clock.virtual()
    return backread_mock


@pytest.fixture
def by_hand() -> Iterator[Callable[[Any], Any]]:
    """Makes a `Caller` of a lane or a server, closed after the test."""
    from helpers.raw_requests import Caller

    with contextlib.ExitStack() as cleanup:

        def make(lane: Any) -> Caller:
            caller = Caller(lane)
            cleanup.callback(caller.connection.close)
            return caller

        yield make


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedServer]]:
    with contextlib.ExitStack() as cleanup:

        def make(*script: Any, **options: str) -> ScriptedServer:
            return cleanup.enter_context(ScriptedServer(*script, **options))

        yield make
