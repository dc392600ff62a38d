"""The mock server, which has lanes and is itself one."""

from __future__ import annotations

import json
from collections.abc import Iterable

from backread._backread import NativeMockServer, World
from backread._client.arguments import known_options
from backread.testing.dialect import Dialect, dialect_text
from backread.testing.fault import rules_text
from backread.testing.journal import number
from backread.testing.lane import Lane
from backread.testing.rate import Rate, rate_text

__all__ = ["MockServer"]


class MockServer(Lane):
    """A fake of the service that runs from its construction until `stop`; a context manager.

    ``world`` holds its rows (by default a small `World`), and changes to it show in the next
    response. ``host`` and ``port`` say where it listens; port 0 picks a free one. Requests need
    ``secret`` (random by default) and ``vendor``. ``dialect``, ``faults`` (rules as text) and
    ``rate`` are as on a `Lane`; ``journal`` is the number of requests kept in the journal. Raises
    OSError if the port is taken, ValueError for an invalid argument::

        with MockServer(World(seed=7, users=50)) as server:
            assert len(list(server.client().users.list())) == 50

    The server itself is a lane, with the server's secret; `lane` makes more.
    """

    __slots__ = ()

    @known_options
    def __init__(
        self,
        world: World | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        secret: str | None = None,
        vendor: str | None = None,
        dialect: Dialect | str | None = None,
        faults: str | Iterable[str] | None = None,
        rate: Rate | str | None = None,
        journal: int = 10_000,
    ) -> None:
        world = World() if world is None else _world(world)
        server = NativeMockServer(
            world,
            host=host,
            port=port,
            secret=secret,
            vendor=vendor,
            journal=journal,
            lane=_lane(dialect, faults, rate),
        )
        super().__init__(server, server.lane(), world)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._server.port

    @property
    def admin_token(self) -> str:
        """The bearer token for the inspector and the JSON API below ``/__mock/``."""
        return self._server.admin_token

    @property
    def inspector_url(self) -> str:
        """The URL of the inspector with its token, for a browser on this machine."""
        return f"{self.url}/__mock/#{self.admin_token}"

    @known_options
    def lane(
        self,
        world: World | None = None,
        *,
        name: str | None = None,
        dialect: Dialect | str | None = None,
        faults: str | Iterable[str] | None = None,
        rate: Rate | str | None = None,
        seed: int | None = None,
    ) -> Lane:
        """Opens a new lane with a new secret.

        By default ``world`` is a copy of the server's current one and ``dialect`` the documented
        one. ``name`` is for the inspector: letters, digits, - and _, unique among open lanes.
        ``faults`` are rules as for `Lane.fault`, ``rate`` is a limit such as ``"10/s"``.
        ``seed`` is that of all randomness, by default the world's. Raises ValueError for an invalid
        argument.
        """
        native = self._server.open_lane(
            None if world is None else _world(world),
            _lane(dialect, faults, rate, name, None if seed is None else number("seed", seed)),
        )
        return Lane(self._server, native, native.world if world is None else world)

    def stop(self) -> None:
        """Stops listening and drops its connections; may be called again."""
        self._server.stop()

    def close(self) -> None:
        """Closes its clients, like those of any lane, and stops it."""
        for client in list(self._clients):
            client._native.close()
        self.stop()

    def __repr__(self) -> str:
        return f"MockServer(url={self.url!r}, world={self._world!r})"


def _world(world: World) -> World:
    if not isinstance(world, World):
        raise TypeError(f"world: a World, or None for the usual one, not {world!r}")
    return world


def _lane(
    dialect: Dialect | str | None,
    faults: str | Iterable[str] | None,
    rate: Rate | str | None,
    name: str | None = None,
    seed: int | None = None,
) -> str:
    """How a lane answers at first, as JSON."""
    lane = {
        "name": name,
        "seed": seed,
        "dialect": None if dialect is None else dialect_text(dialect),
        "rate": rate_text(rate),
        "faults": [rules_text(faults)],
    }
    return json.dumps(lane)
