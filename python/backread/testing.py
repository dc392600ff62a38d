"""A service to test against: `World` holds the rows, `MockServer` answers for them on a port.

The server runs in this process, on its own thread, and answers the documented interface strictly:
401 without the right bearer, 406 for another Accept, 422 for a limit outside 1 to 99 or an unknown
query parameter, 404, 405. What the interface leaves open it answers by guess, and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backread._backread import Clock, NativeMockServer, World
from backread._client import AsyncClient, Client

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self, Unpack

    from backread._arguments import ClientOptions

__all__ = ["Clock", "MockServer", "World"]


class MockServer:
    """The service, faked, from the moment it is made until `stop`; also a context manager.

    ``world`` holds its rows, and a change to it shows in the next answer; by default a
    small `World`. ``host`` and ``port`` say where it listens; port 0 takes a free one. ``secret``
    and ``vendor`` are what requests must bring (interface 5), by default made up. OSError where
    the port is taken, ValueError for an argument that makes no sense::

        with MockServer(World(seed=7, users=50)) as server:
            assert len(list(server.client().users.list())) == 50
    """

    __slots__ = ("__weakref__", "_native", "_world")

    def __init__(
        self,
        world: World | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        secret: str | None = None,
        vendor: str | None = None,
    ) -> None:
        self._world = World() if world is None else world
        self._native = NativeMockServer(
            self._world, host=host, port=port, secret=secret, vendor=vendor
        )

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return self._native.url

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._native.port

    @property
    def secret(self) -> str:
        """The API secret it wants. It opens nothing but this server."""
        return self._native.secret

    @property
    def vendor(self) -> str:
        """The vendor word it wants in Accept."""
        return self._native.vendor

    @property
    def world(self) -> World:
        """The rows it answers with."""
        return self._world

    def client(self, **options: Unpack[ClientOptions]) -> Client:
        """A `Client` of this server; ``options`` are those of `Client`. The caller closes it."""
        return Client(self.url, self.secret, self.vendor, **options)

    def async_client(self, **options: Unpack[ClientOptions]) -> AsyncClient:
        """An `AsyncClient` of this server; ``options`` are those of `Client`."""
        return AsyncClient(self.url, self.secret, self.vendor, **options)

    def counts(self) -> dict[str, int]:
        """How many requests came, by route: users, user, messages, message, openapi, other."""
        return self._native.counts()

    def statuses(self) -> dict[int, int]:
        """How many requests were answered with each status."""
        return self._native.statuses()

    def stop(self) -> None:
        """Stops listening and drops its connections; once more does nothing."""
        self._native.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"MockServer(url={self.url!r}, world={self._world!r})"
