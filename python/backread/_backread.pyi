"""The native module: the core client and the mock, as the Python faces call them.

Not public. Every operation takes ``blocking``: ``True`` waits here (the GIL is released, Ctrl-C
answers) and gives the value; ``False`` needs a running event loop and gives an awaitable of it.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from os import PathLike
from typing import (
    Any,
    ClassVar,
    Literal,
    Protocol,
    Self,
    TypeAlias,
    final,
    overload,
    type_check_only,
)

from backread.models import WalkReport
from backread.typed_dicts import MessageDict, UserDict

__all__ = [
    "OPENAPI",
    "ArrowTable",
    "Clock",
    "NativeClient",
    "NativeLane",
    "NativeMockServer",
    "SyncBatch",
    "SyncPace",
    "SyncRun",
    "Walk",
    "World",
    "WorldSnapshot",
    "__version__",
    "empty_table",
    "messages_table",
    "read_dialect",
    "read_rate",
    "read_rules",
    "redacted",
    "users_table",
]

__version__: str
OPENAPI: str

@final
class Clock:
    """The time that a lane of the mock and its clients go by: the machine's until `virtual`.

    Virtual time stands still while anything real is under way, such as a request that is being
    answered, and leaps to the next deadline (the end of a wait, of a held answer, of a timeout)
    when nothing else can happen: a minute of Retry-After takes milliseconds. A timeout also holds
    by the machine's time, there five seconds at least, for a server that goes by another clock. In
    a forked child the clock is real.
    """

    def __new__(cls) -> Self: ...
    def virtual(self, start: datetime | None = None) -> None:
        """Goes by virtual time, which starts at ``start``; by default at 2026-01-01T00:00:00Z.

        Waits under way go on with what was left of them. TypeError without a time zone.
        """

    def real(self) -> None:
        """Goes by the machine's time; waits under way go on with what was left of them."""

    def advance(self, seconds: float | timedelta) -> None:
        """Moves virtual time on by hand; all that is due then happens, timeouts among it.

        RuntimeError while the clock is real, ValueError for less than 0.
        """

    @property
    def is_virtual(self) -> bool: ...
    @property
    def now(self) -> datetime:
        """The date and time, in UTC."""

    @property
    def slept(self) -> list[float]:
        """The waits of the lane's clients between a request and its retry, in seconds, as asked.

        One entry for each Retry-After and each backoff, in the order they began; the last 10,000.
        A Retry-After of 429 holds all requests of a client, and is one entry. Turns that
        ``rate_limit=`` spaces out are none.
        """

@final
class NativeClient:
    base_url: str
    vendor: str
    def __new__(
        cls,
        *,
        base_url: str | None,
        api_secret: str | None,
        vendor: str | None,
        timeout: float | None,
        deadline: float | None,
        max_retries: int,
        max_concurrency: int,
        rate_limit: float | None,
        on_rate_limit: str,
        max_response_bytes: int,
        outage_patience: float | None,
        proxy: str | None,
        ca_bundle: str | None,
        allow_http: bool,
        user_agent: str | None,
    ) -> Self: ...
    def with_options(
        self,
        *,
        timeout: float | None,
        deadline: float | None,
        max_retries: int,
        max_concurrency: int,
        rate_limit: float | None,
        on_rate_limit: str,
        max_response_bytes: int,
        outage_patience: float | None,
        traceparent: bool,
    ) -> NativeClient: ...
    def redacted(self, text: str) -> str: ...
    def on_clock(self, clock: Clock) -> NativeClient: ...
    def user(self, user_id: int, as_dict: bool, blocking: bool) -> Any: ...
    def users_page(self, offset: int, limit: int, as_dict: bool, blocking: bool) -> Any: ...
    def message(self, user_id: int, message_id: int, as_dict: bool, blocking: bool) -> Any: ...
    def messages_page(
        self, user_id: int, offset: int, limit: int, as_dict: bool, blocking: bool
    ) -> Any: ...
    def walk_users(self, strict: bool, page_size: int, max_items: int | None) -> Walk: ...
    def walk_messages(
        self, user_id: int, strict: bool, page_size: int, max_items: int | None
    ) -> Walk: ...
    def walk_all_messages(
        self, users: Sequence[int] | None, strict: bool, page_size: int, max_items: int | None
    ) -> Walk: ...
    def walk_planned_messages(self, users: Sequence[int], strict: bool, page_size: int) -> Walk: ...
    def walk_planned_users(
        self, offset: int, users: Sequence[int], strict: bool, page_size: int
    ) -> Walk: ...
    def sync_run(
        self,
        known: SyncKnown,
        mode: Literal["incremental", "full"],
        max_staleness: float | None,
    ) -> SyncRun: ...
    def ask_rows(self, candidates: ArrowStream) -> SyncRun: ...
    def probe(self, max_requests: int, sample: int, blocking: bool) -> Any: ...
    def derived_key(self, label: bytes) -> bytes: ...
    @property
    def is_closed(self) -> bool: ...
    def close(self) -> None: ...

@final
class Walk:
    """One walk over one list (or over every user's messages), under way.

    ``next_page`` gives a `Page` of the rows not given before, ``next_items`` a list of the items of
    all pages that are ready, ``next_ids`` their ids (None for a row without one); None at the end.
    ``next_page_of`` gives a page with the user whose messages it holds (None for users). With
    ``as_dict`` items are the JSON objects as sent. A walk is read by one of these.
    ``stop`` may be called at any time, from any thread, and again. ``take_error`` gives the error
    that ended the Arrow stream, once.
    """

    report: WalkReport
    def next_items(self, as_dict: bool, blocking: bool) -> Any: ...
    def next_page(self, as_dict: bool, blocking: bool) -> Any: ...
    def next_page_of(self, as_dict: bool, blocking: bool) -> Any: ...
    def next_ids(self, blocking: bool) -> Any: ...
    def stop(self) -> None: ...
    def take_error(self) -> BaseException | None: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@type_check_only
class ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@type_check_only
class SyncKnown(Protocol):
    """What a mirror hands over: tables as it keeps them, by the names of their columns.

    ``lists`` has the columns of a batch's lists but requests and reason, ``done`` the column
    user_id, ``cursors`` user_id and checkpoint, ``held`` user_id and id (of half-read lists; null
    for users), ``users`` id, updated_at and online_at once this run's sweep of users is finished.
    ``profile`` is the JSON of a `ServiceProfile`.
    """

    @property
    def lists(self) -> ArrowStream | None: ...
    @property
    def done(self) -> ArrowStream | None: ...
    @property
    def cursors(self) -> ArrowStream | None: ...
    @property
    def held(self) -> ArrowStream | None: ...
    @property
    def users(self) -> ArrowStream | None: ...
    @property
    def profile(self) -> str | None: ...

@final
class SyncRun:
    """One run of the mirror's reading: batches to commit, in the order they must be committed."""

    requests: int
    users_total: int | None
    def progress(self) -> SyncPace: ...
    def next_batch(self, blocking: bool) -> Any: ...
    def stop(self) -> None: ...

@final
class SyncBatch:
    """Some thousands of rows, or two seconds' worth; each table is an Arrow stream or None."""

    users: ArrowTable | None
    messages: ArrowTable | None
    lists: ArrowTable | None
    rejects: ArrowTable | None
    cursors: ArrowTable | None
    gone: ArrowTable | None
    users_report: WalkReport | None

@final
class SyncPace:
    """How far a run has come; ``pace`` is requests a second over the last few seconds.

    ``lists_total`` is an estimate until the users are known, None where nothing can be said.
    """

    requests: int
    users_total: int | None
    lists_total: int | None
    lists_done: int
    pace: float
    outage_seconds: float

@final
class ArrowTable:
    num_rows: int
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

def users_table(items: tuple[Any, ...]) -> ArrowTable:
    """Users as columns; TypeError for an item that is no `User`."""

def messages_table(items: tuple[Any, ...]) -> ArrowTable:
    """Messages as columns; TypeError for an item that is no `Message`."""

def empty_table(
    resource: Literal["users", "messages", "lists", "rejects", "cursors", "gone"],
) -> ArrowTable: ...

@final
class World:
    """The rows of a faked service: made by counter from the seed, so that they cost no memory.

    Row i never depends on how many rows there are. ``users`` is the count asked for here,
    ``messages_per_user`` how many messages each has, or the least and the most, both inclusive. A
    change shows in the next answer of every server that has this world. KeyError where a row is not
    there.
    """

    def __new__(
        cls, seed: int = 0, users: int = 100, messages_per_user: int | tuple[int, int] = (0, 40)
    ) -> Self: ...
    generator_version: ClassVar[int]
    @staticmethod
    def from_jsonl(
        lines: str | PathLike[str] | bytes | Iterable[str | bytes | dict[str, Any]],
    ) -> World: ...
    @overload
    def to_jsonl(self, path: None = None) -> str: ...
    @overload
    def to_jsonl(self, path: str | PathLike[str]) -> None: ...
    def copy(self) -> World: ...
    def snapshot(self) -> WorldSnapshot: ...
    def restore(self, snapshot: WorldSnapshot) -> None: ...
    @property
    def seed(self) -> int: ...
    @property
    def users(self) -> int: ...
    @property
    def messages_per_user(self) -> tuple[int, int]: ...
    @property
    def total_users(self) -> int: ...
    @property
    def total_messages(self) -> int: ...
    def user_ids(self) -> list[int]: ...
    def message_ids(self, user_id: int) -> list[int]: ...
    def user(self, user_id: int) -> UserDict: ...
    def message(self, user_id: int, message_id: int) -> MessageDict: ...
    def add_users(self, count: int = 1) -> list[int]: ...
    def add_messages(self, user_id: int, count: int = 1) -> list[int]: ...
    def remove_user(self, user_id: int) -> None: ...
    def remove_message(self, user_id: int, message_id: int) -> None: ...
    def edit_user(self, user_id: int, **fields: Any) -> None: ...
    def edit_message(self, user_id: int, message_id: int, **fields: Any) -> None: ...
    def fingerprint(self) -> str: ...

@final
class WorldSnapshot:
    """A world at one instant, made by `World.snapshot`."""

@final
class NativeMockServer:
    """A mock server: its texts are in the mock's one grammar, ValueError for what is none."""

    def __new__(
        cls,
        world: World,
        *,
        host: str,
        port: int,
        secret: str | None,
        vendor: str | None,
        dialect: str | None,
        rate: str | None,
        faults: str | None,
        journal: int,
    ) -> Self: ...
    @property
    def url(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def vendor(self) -> str: ...
    @property
    def admin_token(self) -> str: ...
    def lane(self) -> NativeLane: ...
    def open_lane(
        self,
        world: World | None,
        *,
        name: str | None,
        dialect: str | None,
        rate: str | None,
        faults: str | None,
        seed: int | None,
    ) -> NativeLane: ...
    def close_lane(self, lane: NativeLane) -> None: ...
    def stop(self) -> None: ...

_Which: TypeAlias = tuple[str, int | list[int]]

@final
class NativeLane:
    """One lane of a mock server; `backread.testing.Lane` says what each method is for.

    ``which`` is ("first", n), ("last", n) or ("ids", ids).
    """

    @property
    def name(self) -> str: ...
    @property
    def secret(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def world(self) -> World: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def dialect(self) -> str: ...
    def set_dialect(self, text: str) -> None: ...
    @property
    def rate(self) -> str | None: ...
    def set_rate(self, text: str | None) -> None: ...
    def rules(self) -> list[tuple[str, int]]: ...
    def set_rules(self, text: str) -> None: ...
    def add_rules(self, text: str) -> None: ...
    def clear_rules(self) -> None: ...
    def unfired(self) -> list[str]: ...
    def delete_after(self, route: str, user: int | None, after: int, which: _Which) -> None: ...
    def add_after(self, route: str, user: int | None, after: int, count: int) -> None: ...
    def edit_after(
        self, route: str, user: int | None, after: int, which: _Which, fields: dict[str, Any]
    ) -> None: ...
    @property
    def drifts_waiting(self) -> int: ...
    def audit(self, ids: list[int], user: int | None = None) -> dict[str, Any]: ...
    @property
    def last_number(self) -> int: ...
    def journal(
        self, after: int = 0, most: int | None = None
    ) -> tuple[list[dict[str, Any]], bool]: ...
    def unexpected(self, after: int) -> list[dict[str, Any]]: ...
    def counts(self) -> dict[str, int]: ...
    def statuses(self) -> dict[int, int]: ...
    def forget(self) -> None: ...

def read_dialect(text: str) -> tuple[str, dict[str, str], bool]:
    """The shortest text, every switch with its word, and whether all answers conform."""

def read_rate(text: str) -> tuple[str, float, int, str, int]:
    """The text in full, requests a second, burst, what answers say of the wait, and the status."""

def read_rules(text: str) -> list[str]:
    """The rules that a text holds, each in its shortest form."""

def redacted(text: str, secret: str) -> str:
    """The text with stars where it repeats the secret, also in base64 or with escapes."""
