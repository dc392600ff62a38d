"""A service as the interface describes it: an ASGI app over a list of users, served by uvicorn.

    app = App(Memory(made_users(3_000)))
    with Origin(app) as origin:                       # on a free port of loopback
        Client(origin.url, SECRET, VENDOR)
    with Origin(app, socket=tmp_path / "origin"):     # on a Unix socket, behind a proxy

`App.after` changes the list between two requests. `Origin.down` makes new connections refused and
ends those that are open; `Origin.up` serves again.
"""

import asyncio
import inspect
import json
import random
import re
import socket
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import parse_qs

import uvicorn

SECRET, VENDOR = "secret-of-the-service", "example"
MEDIA_TYPE = f"application/vnd.{VENDOR}.v1+json"
DEFAULT_LIMIT, MOST = 20, 99
FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
PATH = re.compile(r"/external/users(?:/(?P<user>\d+)(?P<messages>/messages(?:/(?P<one>\d+))?)?)?")

Row = dict[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def timestamp(moment: datetime) -> str:
    """A moment as the service writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def user(identifier: int, **changes: Any) -> Row:
    """A user; those with higher ids were created later."""
    created = timestamp(FIRST_DAY + timedelta(minutes=identifier))
    return {
        "id": identifier,
        "name": f"User {identifier}",
        "email": f"user{identifier}@example.com",
        "reference": None,
        "created_at": created,
        "updated_at": created,
        "online_at": None,
        "last_url": None,
        "user_attributes": [],
        **changes,
    }


def newest_first(count: int, first: int = 1) -> list[Row]:
    """Users with the ids from ``first`` on, the last one in front."""
    return [user(identifier) for identifier in range(first + count - 1, first - 1, -1)]


def messages_of(user_id: int, count: int) -> list[Row]:
    """The messages of a user, oldest first."""
    return [
        {
            "id": user_id * 1_000 + number,
            "body": f"Message {number}",
            "read_by_user": True,
            "read_by_operator": True,
            "created_at": timestamp(FIRST_DAY + timedelta(seconds=number)),
            "file_url": None,
            "auto_invitation": False,
            "sender_type": "user",
            "sender": {"id": user_id, "name": "User", "email": f"user{user_id}@example.com"},
        }
        for number in range(count)
    ]


class Store(Protocol):
    """Holds the users."""

    async def page(self, offset: int, limit: int) -> tuple[Sequence[Row], int | None]:
        """Rows and the total, which is None for a service that sends none."""

    async def get(self, identifier: int) -> Row | None:
        """One user."""

    async def open(self) -> None:
        """Called in the loop of the server before the first request."""

    async def close(self) -> None:
        """Called in that loop after the last one."""


class Memory:
    """Users in a list, in the order in which they are shown; more are added in front."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = list(rows)

    async def add(self, rows: Sequence[Row]) -> None:
        self.rows[:0] = rows

    async def page(self, offset: int, limit: int) -> tuple[Sequence[Row], int | None]:
        return self.rows[offset : offset + limit], len(self.rows)

    async def get(self, identifier: int) -> Row | None:
        return next((row for row in self.rows if row["id"] == identifier), None)

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass


class Cached:
    """Another store with its total cached for some seconds; with 0 seconds there is no total."""

    def __init__(self, store: Store, seconds: float) -> None:
        self.store, self.seconds = store, seconds
        self._total: int | None = None
        self._counted = float("-inf")

    async def page(self, offset: int, limit: int) -> tuple[Sequence[Row], int | None]:
        rows, total = await self.store.page(offset, limit)
        if self.seconds and time.monotonic() >= self._counted + self.seconds:
            self._total, self._counted = total, time.monotonic()
        return rows, self._total

    async def get(self, identifier: int) -> Row | None:
        return await self.store.get(identifier)

    async def open(self) -> None:
        await self.store.open()

    async def close(self) -> None:
        await self.store.close()


class App:
    """The ASGI app. ``requests`` has the path of each request, ``pages`` counts those of users."""

    def __init__(
        self, store: Store, *, messages: int = 3, delay: tuple[float, float] = (0.0, 0.0)
    ) -> None:
        self.store = store
        self.messages = messages
        self.requests: list[str] = []
        self.pages = 0
        self._delay, self._random = delay, random.Random(7)
        self._after: dict[int, Callable[[], object]] = {}
        self._after_request: dict[int, Callable[[], object]] = {}
        self.after_each: Callable[[], object] | None = None

    def after(self, pages: int, change: Callable[[], object]) -> None:
        """Calls ``change`` once that many pages of users were answered."""
        self._after[pages] = change

    def after_request(self, requests: int, change: Callable[[], object]) -> None:
        """Calls ``change`` when that many requests of any kind were received."""
        self._after_request[requests] = change

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        path = scope["path"]
        self.requests.append(path)
        await _called(self._after_request.pop(len(self.requests), None))
        if self._delay[1]:
            await asyncio.sleep(self._random.uniform(*self._delay))
        status, body = await self._answer(dict(scope["headers"]), path, scope["query_string"])
        encoded = json.dumps(body).encode()
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(encoded)).encode()),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": encoded})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        for step in self.store.open, self.store.close:
            message = await receive()
            await step()
            await send({"type": f"{message['type']}.complete"})

    async def _answer(
        self, headers: dict[bytes, bytes], path: str, query: bytes
    ) -> tuple[int, Any]:
        if headers.get(b"authorization") != f"Bearer {SECRET}".encode():
            return 401, {"error": "unauthorized"}
        if headers.get(b"accept") != MEDIA_TYPE.encode():
            return 406, {"error": "not acceptable"}
        if not (asked := PATH.fullmatch(path)):
            return 404, {"error": "not found"}
        arguments = {name.decode(): int(value[0]) for name, value in parse_qs(query).items()}
        offset, limit = arguments.get("offset", 0), arguments.get("limit", DEFAULT_LIMIT)
        if not 0 < limit <= MOST:
            return 422, {"error": "limit"}
        if asked["messages"]:
            rows = messages_of(int(asked["user"]), self.messages)
            if asked["one"]:
                found = next((row for row in rows if row["id"] == int(asked["one"])), None)
                return (404, {"error": "not found"}) if found is None else (200, found)
            page, total = rows[offset : offset + limit], len(rows)
            return 200, {"limit": limit, "offset": offset, "total": total, "messages": page}
        if asked["user"]:
            row = await self.store.get(int(asked["user"]))
            return (404, {"error": "not found"}) if row is None else (200, row)
        users, counted = await self.store.page(offset, limit)
        body: dict[str, Any] = {"limit": limit, "offset": offset}
        if counted is not None:
            body["total"] = counted
        self.pages += 1
        # Rows and total are those before the change.
        await _called(self._after.pop(self.pages, None))
        await _called(self.after_each)
        return 200, {**body, "users": users}


async def _called(change: Callable[[], object] | None) -> None:
    result = None if change is None else change()
    if inspect.isawaitable(result):
        await result


class Origin:
    """uvicorn in a thread, to the end of its ``with`` block."""

    def __init__(self, app: App, socket: Path | None = None) -> None:
        self.app, self.path = app, socket
        self.url = ""
        self._server: uvicorn.Server
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop(force=False)

    def up(self) -> None:
        """Serves; connections are accepted from now on."""
        if self.path is None:
            # With its protocol, or asyncio would not set TCP_NODELAY and a page take 40 ms.
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listener.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        else:
            self.path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(self.path))
        listener.listen(1024)
        config = uvicorn.Config(
            self.app, http="httptools", loop="asyncio", log_level="warning", access_log=False
        )
        # Proxies keep their connections longer than the default of five seconds.
        config.timeout_keep_alive = 60
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(listener),))
        self._thread.start()

    async def _serve(self, listener: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve(sockets=[listener])
        listener.close()

    def down(self) -> None:
        """Refuses connections and cuts off the open ones, as a process that was killed."""
        self._loop.call_soon_threadsafe(self._cut_off)
        self._stop(force=True)

    def _cut_off(self) -> None:
        for server in self._server.servers:
            server.close()
        for connection in list(self._server.server_state.connections):
            transport = connection.transport
            if transport is not None:
                transport.abort()

    def _stop(self, *, force: bool) -> None:
        if self._thread is None:
            return
        self._server.force_exit = force
        self._server.should_exit = True
        self._thread.join()
        self._thread = None
        if self.path is not None:
            self.path.unlink(missing_ok=True)
