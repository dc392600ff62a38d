"""One lane of a mock server: what a test has for itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import WeakSet

from backread._client.arguments import known_options
from backread._client.client import AsyncClient, Client
from backread.testing.audit import Audit, audit
from backread.testing.dialect import Dialect, dialect_text
from backread.testing.fault import rules_text
from backread.testing.journal import Calls, JournalEntry, entries_of, entry_of
from backread.testing.rate import Rate, rate_text
from backread.testing.requests import Requests, number
from backread.testing.selection import Drift, Selection

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self, Unpack

    from backread._backread import Clock, NativeLane, NativeMockServer, World
    from backread._client.arguments import ClientOptions
    from backread.testing.requests import ListRoute, Route

__all__ = ["Lane"]


class Lane:
    """A service of its own behind one secret of a `MockServer`; made by `MockServer.lane`.

    World, dialect, faults, rate, clock, journal and chance are all its own: what is done in one
    lane never shows in another. Closed by `close`, or at the end of a ``with`` block.
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
        """The API secret that leads to this lane. It opens nothing else."""
        return self._native.secret

    @property
    def vendor(self) -> str:
        """The vendor word that is wanted in Accept."""
        return self._server.vendor

    @property
    def name(self) -> str:
        """What the inspector calls the lane."""
        return self._native.name

    @property
    def seed(self) -> int:
        """What all chance in the lane is drawn from: the same seed gives the same bytes."""
        return self._native.seed

    @property
    def world(self) -> World:
        """The rows it answers with; a change shows in the next answer."""
        return self._world

    @property
    def clock(self) -> Clock:
        """The time that its delays and its clients go by: real, until ``clock.virtual()``."""
        return self._native.clock

    @property
    def dialect(self) -> Dialect:
        """The undocumented habits, from the next request on; set as a `Dialect` or its text."""
        return Dialect(self._native.dialect)

    @dialect.setter
    def dialect(self, dialect: Dialect | str) -> None:
        self._native.set_dialect(dialect_text(dialect))

    @property
    def rate(self) -> Rate | None:
        """The rate limit, None for none; set as a `Rate`, its text or None, with a full bucket."""
        text = self._native.rate
        return None if text is None else Rate.read(text)

    @rate.setter
    def rate(self, rate: Rate | str | None) -> None:
        self._native.set_rate(rate_text(rate))

    @property
    def faults(self) -> tuple[str, ...]:
        """The rules that bend answers, in their order, as text; set as the text of one or several,
        which take the place of those there were; None for none."""
        return tuple(text for text, _ in self._native.rules())

    @faults.setter
    def faults(self, rules: str | Iterable[str] | None) -> None:
        self._native.set_rules(rules_text(rules))

    @property
    def fired(self) -> tuple[int, ...]:
        """How often each of ``faults`` bent an answer: a 0 is a rule that fitted no request."""
        return tuple(count for _, count in self._native.rules())

    def allow_unfired(self) -> None:
        """Faults and changes between pages that never happen are no error at the test's end.

        Without this they are, in the pytest fixture `backread_mock`; a fault with ``p=`` never is.
        """
        self._unfired_allowed = True

    def _unfired(self) -> tuple[str, ...]:
        return () if self._unfired_allowed else tuple(self._native.unfired())

    def fault(self, rules: str | Iterable[str]) -> None:
        """Adds rules by their text, such as ``"users offset=99: status(429, retry_after=1) x2"``.

        Several are a list, or separated by a newline or a semicolon. ValueError names the one that
        is wrong, and then none is added.
        """
        self._native.add_rules(rules_text(rules))

    def clear_faults(self) -> None:
        """Takes all rules away."""
        self._native.clear_rules()

    @known_options
    def on(
        self,
        route: Route,
        *,
        user: int | None = None,
        message: int | None = None,
        offset: int | None = None,
    ) -> Selection:
        """Some requests, to make them fail or to count them.

        ``route`` is ``"users"``, ``"user"``, ``"messages"``, ``"message"`` or ``"any"``. ValueError
        for another, and for what requests of that route do not have.
        """
        return Selection(self._native, Requests(route, user, message, offset))

    @known_options
    def between_pages(self, route: ListRoute, *, after: int, user: int | None = None) -> Drift:
        """Changes the world right after ``after`` more whole pages of a list were answered.

        ``route`` is ``"users"``, or ``"messages"`` with the ``user`` whose list is meant; without
        one the pages of all lists count, and the list of the last one changes. ValueError for
        another.
        """
        if route not in ("users", "messages"):
            raise ValueError(f"route: only the lists users and messages have pages, not {route!r}")
        user = Requests(route, user).user
        return Drift(self._native, route, user, number("after", after, least=1))

    @property
    def waiting(self) -> int:
        """How many changes between pages still wait for their page: 0 when all of them happened."""
        return self._native.drifts_waiting

    def audit(self, ids: Iterable[int], *, messages_of: int | None = None) -> Audit:
        """Compares the ids that a reader holds, as they were sent, with what was there.

        What must be held are the rows that were there from the first request of the list, or from
        `forget`, until now: the users, or the messages of the user ``messages_of``. TypeError for
        an id that is no int. A failing test shows in pytest what its audits found.
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
        """The requests that came so far and fit; None for all, also those of no route."""
        return Calls(self._native, Requests(route, user, message, offset, status))

    @property
    def journal(self) -> tuple[JournalEntry, ...]:
        """The last requests, oldest first: as many as the server was told to keep."""
        return tuple(entries_of(self._native)[0])

    @property
    def unexpected(self) -> tuple[JournalEntry, ...]:
        """The requests that no client should send: refused with 401, 404 (no such path), 405, 406
        or 422. The first 1,000, however long the journal is."""
        return self._unexpected_after(0)

    def _unexpected_after(self, number: int) -> tuple[JournalEntry, ...]:
        return tuple(entry_of(each) for each in self._native.unexpected(number))

    @property
    def _last_number(self) -> int:
        return self._native.last_number

    def counts(self) -> dict[str, int]:
        """How many requests came, by route: users, user, messages, message, openapi, other."""
        return self._native.counts()

    def statuses(self) -> dict[int, int]:
        """How many requests were answered with each status."""
        return self._native.statuses()

    def forget(self) -> None:
        """Forgets what was asked: journal, counts and attempts begin anew, and so do audits."""
        self._native.forget()

    def client(self, **options: Unpack[ClientOptions]) -> Client:
        """A `Client` of this lane, on its clock; ``options`` are those of `Client`.

        The caller closes it; what is open when the lane is closed is closed with it. TypeError for
        an address, a secret or a vendor: they are the lane's.
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
        """Closes the lane and its clients; then its secret leads nowhere. Again is nothing.

        Calls that are under way get their answer, or end at their timeout.
        """
        for client in list(self._clients):
            client._close()
        self._server.close_lane(self._native)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Lane(name={self.name!r}, url={self.url!r}, world={self._world!r})"


def _check_options(options: Iterable[str]) -> None:
    if own := [name for name in ("base_url", "api_secret", "vendor") if name in options]:
        raise TypeError(
            f"{own[0]} is the lane's own: leave it out; Client(...) is for another service"
        )
