"""The native module: the core client and the mock, as the Python packages call them.

Not public. Every operation takes ``blocking``. True waits for the value, without the GIL, and
Ctrl-C interrupts it. False needs a running event loop, and returns an awaitable of the value.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from os import PathLike
from types import GenericAlias
from typing import (
    Any,
    ClassVar,
    Generic,
    Literal,
    NotRequired,
    Protocol,
    Self,
    TypedDict,
    TypeVar,
    final,
    overload,
    type_check_only,
)

from backread.errors import BackreadError
from backread.models import WalkReport
from backread.typed_dicts import MessageDict, UserDict

__all__ = [
    "OPENAPI",
    "ArrowTable",
    "Clock",
    "Downloads",
    "HintsEvidence",
    "NativeClient",
    "NativeLane",
    "NativeMockServer",
    "NativePrivacy",
    "OfProcess",
    "SyncBatch",
    "SyncPace",
    "SyncRun",
    "Walk",
    "World",
    "WorldSnapshot",
    "__version__",
    "empty_table",
    "hide_emails",
    "hints_evidence",
    "one_shot_stream",
    "read_dialect",
    "read_fault",
    "read_rate",
    "redacted",
    "rows_table",
]

_T = TypeVar("_T")

__version__: str
OPENAPI: str

@final
class Clock:
    """The clock of a mock's lane and its clients: the system clock until `virtual` is called.

    Virtual time stands still while real work is in progress, such as a request being answered. When
    nothing else can happen, it jumps to the next deadline (of a wait, a delayed response or a
    timeout): a minute of Retry-After takes milliseconds. A timeout also applies in real time, after
    five seconds at least, in case the server uses another clock. In a forked child the clock is
    real.
    """

    def __new__(cls) -> Self: ...
    def virtual(self, start: datetime | None = None) -> None:
        """Switches to virtual time. Waits in progress continue with their remaining time.

        Args:
            start: The virtual time to start at; None means 2026-01-01T00:00:00Z.

        Raises:
            TypeError: If ``start`` has no time zone.
        """

    def real(self) -> None:
        """Switches to the system clock. Waits in progress continue with their remaining time."""

    def advance(self, seconds: float | timedelta) -> None:
        """Advances virtual time; whatever is then due happens, including timeouts.

        Args:
            seconds: Seconds or a timedelta.

        Raises:
            RuntimeError: If the clock is real.
            ValueError: If ``seconds`` is negative.
            OverflowError: If it is more than ten years.
        """

    @property
    def is_virtual(self) -> bool:
        """Whether the time is virtual."""

    @property
    def now(self) -> datetime:
        """The date and time, in UTC."""

    @property
    def slept(self) -> list[float]:
        """The waits of the lane's clients before retries, in seconds; the last 10,000.

        One entry for each Retry-After and each backoff, in the order in which they began. The
        Retry-After of a 429 holds back all requests of a client, and is one entry. Waits due to
        ``rate_limit=`` are not included.
        """

@final
class NativeClient:
    base_url: str
    vendor: str
    repaired_text: int
    def __new__(cls, arguments: dict[str, Any]) -> Self: ...
    def with_options(self, options: dict[str, Any], traceparent: bool) -> NativeClient: ...
    def redacted(self, text: str) -> str: ...
    def secret_mark(self, key: bytes) -> str: ...
    def on_clock(self, clock: Clock) -> NativeClient: ...
    def get(self, user_id: int, message_id: int | None, as_dict: bool, blocking: bool) -> Any: ...
    def page(
        self, user_id: int | None, offset: int, limit: int, as_dict: bool, blocking: bool
    ) -> Any: ...
    def walk(self, user_id: int | None, options: WalkOptions) -> Walk: ...
    def walk_all_messages(self, users: Sequence[int] | None, options: WalkOptions) -> Walk: ...
    def walk_planned(
        self, offset: int | None, users: Sequence[int], options: WalkOptions
    ) -> Walk: ...
    def sync_run(self, known: SyncKnown, options: SyncOptions, limits: SyncLimits) -> SyncRun: ...
    def ask_rows(self, candidates: ArrowStream, limits: SyncLimits) -> SyncRun: ...
    def downloads(
        self, links: list[tuple[str, str]], max_file_bytes: int, max_bytes: int | None
    ) -> Downloads: ...
    def probe(self, max_requests: int, sample: int, blocking: bool) -> Any: ...
    def derived_key(self, label: bytes) -> bytes: ...
    @property
    def is_closed(self) -> bool: ...
    def close(self) -> None: ...

@final
class NativePrivacy:
    """What is replaced in rows before they become columns; holds the key and does not show it."""

    def __new__(cls, key: bytes | None, drop_bodies: bool, redact: bool) -> Self: ...

@final
class OfProcess(Generic[_T]):
    """Holds an object that ends threads when it is freed, which would crash a forked child.

    ``get`` returns None in such a child, and the child never frees the object.
    """

    def __new__(cls, value: _T) -> Self: ...
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def get(self) -> _T | None: ...

@final
class Walk:
    """A walk in progress, over one list or over the messages of all users.

    ``next_page`` returns a `Page` of rows not returned before, after the id of the user whose
    messages it holds (None for users); ``next_items`` a list of the items of all pages that are
    ready, ``next_ids`` their ids (None for a row without an id). All return None at the end; use
    only one of them for a walk. With ``as_dict``, items are the JSON objects as
    sent. ``stop`` may be called at any time, from any thread, and repeatedly. ``take_error``
    returns the error that ended the Arrow stream, once. ``arrow_stream`` with ``read_ahead`` reads
    the first part of the stream before it returns; ``privacy`` says what its rows leave out;
    ``on_end`` is called before the consumer learns that the stream ended.
    """

    report: WalkReport
    def next_items(self, as_dict: bool, blocking: bool) -> Any: ...
    def next_page(self, as_dict: bool, blocking: bool) -> Any: ...
    def next_ids(self, blocking: bool) -> Any: ...
    def stop(self) -> None: ...
    def take_error(self) -> BaseException | None: ...
    def arrow_stream(
        self,
        read_ahead: bool,
        privacy: NativePrivacy | None = None,
        on_end: Callable[[], object] | None = None,
    ) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@type_check_only
class ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@type_check_only
class SyncKnown(Protocol):
    """What a mirror already holds, as tables.

    Columns: ``lists`` user_id, kind, checked_at, state and of_this_run (read by the run that goes
    on);
    ``held`` user_id and id, of partly read lists (user_id is null for users); ``users`` id,
    updated_at and online_at, once the run has swept the users; ``forgotten`` user_id, of users of
    whom nothing is read. ``users_state`` is where to continue the list of users. ``profile`` is the
    dict of a `ServiceProfile`.
    """

    @property
    def lists(self) -> ArrowStream | None: ...
    @property
    def users_state(self) -> str | None: ...
    @property
    def held(self) -> ArrowStream | None: ...
    @property
    def users(self) -> ArrowStream | None: ...
    @property
    def audit(self) -> str | None: ...
    @property
    def forgotten(self) -> ArrowStream | None: ...
    @property
    def profile(self) -> dict[str, Any] | None: ...

@type_check_only
class WalkOptions(TypedDict):
    strict: bool
    page_size: int
    max_items: NotRequired[int | None]
    ends_unread: NotRequired[bool]

@type_check_only
class SyncLimits(TypedDict, total=False):
    """What a run may spend; ``max_requests`` must be there."""

    max_requests: int | None
    max_seconds: float | None
    privacy: NativePrivacy | None

@type_check_only
class SyncOptions(SyncLimits):
    """How a sync reads; ``users`` (user_id) are the users that alone are read."""

    mode: Literal["incremental", "full", "quick"]
    max_staleness: float | None
    users: NotRequired[ArrowStream | None]

@final
class SyncRun:
    """The reading of one sync: batches, in the order in which they must be committed.

    ``ended_early`` is True once something was not read because the budget was spent;
    ``stopped_by`` is the last failure whose retry would have come after the end of its time. A
    reading that read nothing raises it. ``service_date`` is the Date header of the last answer.
    """

    requests: int
    repaired_text: int
    users_total: int | None
    ended_early: bool
    stopped_by: BackreadError | None
    service_date: datetime | None
    def progress(self) -> SyncPace: ...
    def next_batch(self) -> Any: ...
    def stop(self) -> None: ...

@final
class Downloads:
    """Attachments that are being downloaded, each into a new file; only while `next` waits."""

    def next(
        self, seconds: float
    ) -> list[
        tuple[
            int,
            Literal["stored", "failed", "left", "unwritten"],
            str | None,
            str | None,
            int | None,
            str | None,
        ]
    ]:
        """The downloads that end within `seconds`, but at least one; empty at the end.

        Each is its number, what became of it, why, and its hash, bytes and media type.
        """

@final
class SyncBatch:
    """Several thousand rows, or those of two seconds; None for a table without rows.

    ``lists`` are those that end in it or go on, ``users_state`` is where to continue the list of
    users. ``audit`` is the sample of a quick run, and the numbers of lists drawn and skipped.
    """

    users: ArrowTable | None
    messages: ArrowTable | None
    lists: ArrowTable | None
    rejects: ArrowTable | None
    gone: ArrowTable | None
    users_state: str | None
    users_report: WalkReport | None
    audit: tuple[str, int, int] | None

@final
class SyncPace:
    """The progress of a sync.

    ``lists_total`` is an estimate until the users are known, and None if there is none.
    """

    requests: int
    users_total: int | None
    lists_total: int | None
    lists_done: int
    outage_seconds: float

@final
class HintsEvidence:
    """Whether hints are trusted, and how many announced changes that needs, of them by operators.

    ``runs`` is how many of the newest runs it is from.
    """

    is_trusted: bool
    announced: int
    by_operators: int
    has_too_many_misses: bool
    needed: float
    needed_by_operators: float
    runs: int

def hints_evidence(
    runs: Sequence[tuple[int, int, int, int, int, bool, bool]],
) -> HintsEvidence:
    """The evidence of runs, the oldest first.

    A run is (users, moved, announced, by operators, missed, whether it counts, whether it begins
    anew).
    """

@final
class ArrowTable:
    num_rows: int
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

def rows_table(items: tuple[Any, ...], resource: Literal["users", "messages"]) -> ArrowTable:
    """Users or messages as columns. Raises TypeError for an item of another class."""

def empty_table(
    resource: Literal["users", "messages", "lists", "rejects", "gone"],
) -> ArrowTable: ...
def one_shot_stream(capsule: object) -> object:
    """Wraps an Arrow stream so that reading it a second time is an error."""

@final
class World:
    """The rows of a fake service, generated on demand from a seed, so they cost no memory.

    A row depends on the seed and its number, never on the number of rows. A change shows in the
    next response of every server that has this world.

    Args:
        seed: Worlds with equal arguments have equal rows.
        users: The number of users.
        messages_per_user: The number of messages of each user, or its minimum and maximum, both
            inclusive.
        until: A datetime with a time zone, from 2010 to 2199: the last user arrives about a day
            before it, and no row has a later time until messages are added. Only times change, and
            they depend on ``users`` too. By default users arrive from 2019-01-07 on.

    Raises:
        ValueError: An argument is out of its range.
        KeyError: From a method that is given the id of a row that does not exist.

    Example:
        >>> world = World(seed=7, users=5_000, messages_per_user=(0, 400))
        >>> world.remove_user(world.user_ids()[0])
    """

    def __new__(
        cls,
        seed: int = 0,
        users: int = 100,
        messages_per_user: int | tuple[int, int] = (0, 40),
        until: datetime | None = None,
    ) -> Self: ...
    generator_version: ClassVar[int]
    """The version of the generator; generated rows change only with it."""

    @staticmethod
    def from_jsonl(
        lines: str | PathLike[str] | bytes | Iterable[str | bytes | dict[str, Any]],
    ) -> World:
        """Reads a world from JSON lines, one user each.

        A line is a user as the service sends it, with an additional key ``messages`` that has the
        user's messages, in the order of the lists.

        Rows are preserved byte for byte, except for whitespace between tokens. Users and messages
        need only an integer id. Rows added later are generated, with ids above all of these.

        Args:
            lines: The path of a file, the content of one as bytes, or an iterable of lines or
                dicts.

        Raises:
            ValueError: A line is invalid; the error names it and the reason.
            OSError: The file cannot be read.
        """

    @overload
    def to_jsonl(self, path: None = None) -> str:
        """Writes the current world as JSON lines, for `from_jsonl`.

        Args:
            path: The file to write, atomically; None to return the text.

        Returns:
            The text, or None if it was written to a file.

        Raises:
            OSError: The file cannot be written.
        """

    @overload
    def to_jsonl(self, path: str | PathLike[str]) -> None: ...
    def copy(self) -> World:
        """An independent world with the same rows and changes. Costs nothing."""

    def __copy__(self) -> World: ...
    def __deepcopy__(self, _memo: object) -> World: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...
    def snapshot(self) -> WorldSnapshot:
        """The current state of the world, for `restore`. Costs nothing."""

    def restore(self, snapshot: WorldSnapshot) -> None:
        """Restores the state of a snapshot.

        Rows added since then are gone; their ids are used again.

        Raises:
            ValueError: The snapshot is neither of this world nor of a copy of it.
        """

    @property
    def seed(self) -> int:
        """The seed; 0 for a world from JSON lines."""

    @property
    def users(self) -> int:
        """The initial number of users."""

    @property
    def messages_per_user(self) -> tuple[int, int]:
        """The smallest and the largest initial number of messages per user."""

    @property
    def until(self) -> datetime | None:
        """The time that no generated row is later than; None unless it was given."""

    @property
    def total_users(self) -> int:
        """The current number of users."""

    @property
    def total_messages(self) -> int:
        """The current number of messages; visits every user."""

    def user_ids(self) -> list[int]:
        """The ids of all users, in the order of the list."""

    def message_ids(self, user_id: int) -> list[int]:
        """The ids of a user's messages, in the order of the list.

        Raises:
            KeyError: There is no such user.
        """

    def user(self, user_id: int) -> UserDict:
        """The user as the service sends it.

        Raises:
            KeyError: There is no such user.
        """

    def message(self, user_id: int, message_id: int) -> MessageDict:
        """The message as the service sends it.

        Raises:
            KeyError: There is no such user or message.
        """

    def add_users(self, count: int = 1) -> list[int]:
        """Adds ``count`` users at the end of the list.

        They are the generator's next rows and have messages.

        Returns:
            Their ids.
        """

    def add_messages(self, user_id: int, count: int = 1) -> list[int]:
        """Adds ``count`` messages at the end of a user's list.

        The user's ``updated_at`` and ``online_at`` follow.

        Returns:
            Their ids.

        Raises:
            KeyError: There is no such user.
        """

    def remove_user(self, user_id: int) -> None:
        """Removes a user with all messages; the id is not used again.

        Raises:
            KeyError: There is no such user.
        """

    def remove_message(self, user_id: int, message_id: int) -> None:
        """Removes a message; the id is not used again.

        Raises:
            KeyError: There is no such user or message.
        """

    def edit_user(self, user_id: int, **fields: Any) -> None:
        """Sets fields of a user to any JSON values. Undocumented fields are sent too; nothing else
        changes.

        Raises:
            KeyError: There is no such user.
            ValueError: The field is `id`, or a value is not JSON.
        """

    def edit_message(self, user_id: int, message_id: int, **fields: Any) -> None:
        """Sets fields of a message to any JSON values, like `edit_user`."""

    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits; worlds with equal fingerprints serve equal rows.

        They hash the generator's version, the arguments and all changes.
        """

@final
class WorldSnapshot:
    """The state of a world, from `World.snapshot`."""

@final
class NativeMockServer:
    """A mock server; raises ValueError for a dialect, rate or faults that cannot be parsed."""

    def __new__(
        cls,
        world: World,
        *,
        host: str,
        port: int,
        secret: str | None,
        vendor: str | None,
        journal: int,
        lane: str,
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
    def open_lane(self, world: World | None, lane: str) -> NativeLane: ...
    def close_lane(self, lane: NativeLane) -> None: ...
    def stop(self) -> None: ...

@final
class NativeLane:
    """One lane of a mock server; see `backread.testing.Lane` for its methods."""

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
    def unfired(self) -> list[str]: ...
    def drift(self, change: str) -> None: ...
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
    """A dialect's shortest text, each switch with its value, and whether responses conform."""

def read_rate(text: str) -> tuple[str, float, int, str, int]:
    """A rate's full text, requests per second, burst, how responses tell the wait, and status."""

def read_fault(text: str) -> str:
    """A fault in its shortest form, such as ``status(503)``."""

def hide_emails(text: str, label: str) -> str:
    """The text with the label for each e-mail address, by the rule of ``redact``."""

def redacted(text: str, secret: str) -> str:
    """The text with the secret redacted, also in lower case or with escapes."""
