"""Lanes of a mock server, which isolate tests from each other, and their `UnfiredError`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import WeakSet

from backread._client.arguments import known_options
from backread._client.client import AsyncClient, Client
from backread.testing.audit import Audit, audit
from backread.testing.dialect import Dialect, dialect_text
from backread.testing.fault import rules_text
from backread.testing.journal import Calls, JournalEntry, Requests, entries_of, entry_of, number
from backread.testing.rate import Rate, rate_text
from backread.testing.selection import Drift, Selection

if TYPE_CHECKING:
    from typing import Self, Unpack

    from backread._backread import Clock, NativeLane, NativeMockServer, World
    from backread._client.options import ClientOptions
    from backread.testing.journal import ListRoute, Route

__all__ = ["Lane", "UnfiredError"]


class Lane:
    """A separate service behind one secret of a `MockServer`; made by `MockServer.lane`.

    It has its own world, dialect, faults, rate, clock, journal and random numbers, so lanes never
    affect each other. Closed by `close`, or at the end of a ``with`` block.
    """

    __slots__ = (
        "__weakref__",
        "_clients",
        "_native",
        "_server",
        "_unfired_allowed",
        "_world",
    )

    def __init__(self, server: NativeMockServer, native: NativeLane, world: World) -> None:
        self._server = server
        self._native = native
        self._world = world
        self._clients: WeakSet[Client | AsyncClient] = WeakSet()
        self._unfired_allowed = False

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return self._server.url

    @property
    def secret(self) -> str:
        """The API secret of this lane only."""
        return self._native.secret

    @property
    def vendor(self) -> str:
        """The vendor word required in Accept."""
        return self._server.vendor

    @property
    def name(self) -> str:
        """The lane's name in the inspector."""
        return self._native.name

    @property
    def seed(self) -> int:
        """The seed of all randomness in the lane: the same seed gives the same bytes."""
        return self._native.seed

    @property
    def world(self) -> World:
        """The rows it serves; changes show in the next response."""
        return self._world

    @property
    def clock(self) -> Clock:
        """The clock of its delays and its clients: real time until ``clock.virtual()``."""
        return self._native.clock

    @property
    def dialect(self) -> Dialect:
        """The undocumented behaviour, from the next request on; set as a `Dialect` or its text."""
        return Dialect(self._native.dialect)

    @dialect.setter
    def dialect(self, dialect: Dialect | str) -> None:
        self._native.set_dialect(dialect_text(dialect))

    @property
    def rate(self) -> Rate | None:
        """The rate limit or None; set as a `Rate`, its text or None, which refills the bucket."""
        text = self._native.rate
        return None if text is None else Rate.read(text)

    @rate.setter
    def rate(self, rate: Rate | str | None) -> None:
        self._native.set_rate(rate_text(rate))

    @property
    def faults(self) -> tuple[str, ...]:
        """The fault rules as text, in order; set as the text of one or several, which replace the
        existing ones; None for none."""
        return tuple(text for text, _ in self._native.rules())

    @faults.setter
    def faults(self, rules: str | Iterable[str] | None) -> None:
        self._native.set_rules(rules_text(rules))

    @property
    def fired(self) -> tuple[int, ...]:
        """How often each of ``faults`` affected a response; 0 for a rule that matched none."""
        return tuple(count for _, count in self._native.rules())

    def allow_unfired(self) -> None:
        """Allows faults and changes between pages that never happen.

        Without this they are an error at the end of a test with the pytest fixture `backread_mock`,
        except for faults with ``p=``.
        """
        self._unfired_allowed = True

    def _unfired(self) -> tuple[str, ...]:
        return () if self._unfired_allowed else tuple(self._native.unfired())

    def fault(self, rules: str | Iterable[str]) -> None:
        """Adds rules by their text, such as ``"users offset=0: status(429, retry_after=1) x2"``.

        Several are a list, or separated by a newline or a semicolon. Raises ValueError that names
        an invalid rule, and then adds none.
        """
        self._native.add_rules(rules_text(rules))

    def clear_faults(self) -> None:
        """Removes all rules."""
        self._native.set_rules("")

    @known_options
    def on(
        self,
        route: Route,
        *,
        user: int | None = None,
        message: int | None = None,
        offset: int | None = None,
    ) -> Selection:
        """Selects requests, to make them fail or to count them.

        ``route`` is ``"users"``, ``"user"``, ``"messages"``, ``"message"`` or ``"any"``; ``user``
        and ``message`` are ids in the path, ``offset`` is that of a page. ValueError for another
        route, and for an argument that does not apply to it.
        """
        return Selection(self._native, Requests(route, user, message, offset))

    @known_options
    def between_pages(self, route: ListRoute, *, after: int, user: int | None = None) -> Drift:
        """Changes the world right after ``after`` more complete pages of a list were sent.

        ``route`` is ``"users"``, or ``"messages"`` with a ``user`` for that user's list; without
        ``user`` the pages of all lists count, and the list of the last page changes. ValueError for
        another route.
        """
        if route not in ("users", "messages"):
            raise ValueError(f"route: only the lists users and messages have pages, not {route!r}")
        user = Requests(route, user).user
        return Drift(self._native, route, user, number("after", after, least=1))

    @property
    def waiting(self) -> int:
        """How many changes between pages have not happened yet."""
        return self._native.drifts_waiting

    def audit(self, ids: Iterable[int], *, messages_of: int | None = None) -> Audit:
        """Compares a reader's ids, as they were sent, with the rows that existed.

        The reader must have the rows that existed from the first request of the list, or from
        `forget`, until now: the users, or the messages of the user ``messages_of``. TypeError for
        an id that is not an int. pytest shows the audits' findings for a failing test.
        """
        return audit(self._native, ids, messages_of)

    def calls(
        self,
        route: Route | None = None,
        *,
        user: int | None = None,
        message: int | None = None,
        offset: int | None = None,
        status: int | None = None,
    ) -> Calls:
        """The matching requests so far.

        Takes the arguments of `Lane.on`, and the ``status`` of the response. None matches all; a
        route of None also those without a route.
        """
        return Calls(self._native, Requests(route, user, message, offset, status))

    @property
    def journal(self) -> tuple[JournalEntry, ...]:
        """The last requests, oldest first, up to the server's ``journal`` size."""
        return tuple(entries_of(self._native)[0])

    @property
    def unexpected(self) -> tuple[JournalEntry, ...]:
        """The requests that no client should send: refused with 401, 404 (no such path), 405, 406
        or 422. The last 1,000, regardless of the journal's size."""
        return self._unexpected_after(0)

    def _unexpected_after(self, number: int) -> tuple[JournalEntry, ...]:
        return tuple(entry_of(each) for each in self._native.unexpected(number))

    @property
    def _last_number(self) -> int:
        return self._native.last_number

    def counts(self) -> dict[str, int]:
        """The number of requests by route: users, user, messages, message, openapi, file, other."""
        return self._native.counts()

    def statuses(self) -> dict[int, int]:
        """The number of requests by response status."""
        return self._native.statuses()

    def forget(self) -> None:
        """Resets journal, counts, attempts and audits."""
        self._native.forget()

    def client(self, **options: Unpack[ClientOptions]) -> Client:
        """A `Client` of this lane, on its clock; ``options`` are those of `Client`.

        The caller closes it; closing the lane closes the clients that are still open. TypeError for
        an address, a secret or a vendor, which are the lane's.
        """
        _check_options(options)
        client = Client._on_clock(self.clock, self.url, self.secret, self.vendor, **options)
        self._clients.add(client)
        return client

    def async_client(self, **options: Unpack[ClientOptions]) -> AsyncClient:
        """An `AsyncClient` of this lane, on its clock; ``options`` are those of `Client`."""
        _check_options(options)
        client = AsyncClient._on_clock(self.clock, self.url, self.secret, self.vendor, **options)
        self._clients.add(client)
        return client

    def close(self) -> None:
        """Closes the lane and its clients, and invalidates its secret. May be called again.

        Calls in progress get their response, or end at their timeout.
        """
        for client in list(self._clients):
            client._native.close()
        self._server.close_lane(self._native)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Lane(name={self.name!r}, url={self.url!r}, world={self._world!r})"


def _check_options(options: Iterable[str]) -> None:
    if own := [name for name in ("base_url", "api_secret", "vendor") if name in options]:
        raise TypeError(
            f"{own[0]} is the lane's own: leave it out; Client(...) is for another service"
        )


class UnfiredError(AssertionError):
    """A test passed, but a fault or a change between pages that it had set up never happened.

    ``unfired`` lists these as text. The test did not test what it meant to: the fault matched none
    of the requests, or the change waited for a page that was not read.
    """

    def __init__(self, unfired: tuple[str, ...]) -> None:
        super().__init__(unfired)
        self.unfired = unfired

    def __str__(self) -> str:
        many = len(self.unfired) > 1
        lines = [f"{len(self.unfired)} {'faults or changes' if many else 'fault or change'} that "]
        lines[0] += "this test had set never happened: no request matched"
        lines += (f"    {each}" for each in self.unfired)
        lines.append(
            "correct or remove it, or call allow_unfired() of the lane if this is intended"
        )
        return "\n".join(lines)
