"""What the service holds, as frozen values: users, messages, pages, and the report of a walk.

The order of the fields is a contract: the native module builds each class by position. A new
field goes to the end, and the native module follows.

``None`` means that the service sent null, or nothing at all: the interface leaves open which
fields may be null, so each but ``id`` may be. ``extra`` holds what the interface does not name, as
sent. Timestamps are aware datetimes in UTC, to the microsecond.

All of them compare, copy, pickle and go through `dataclasses.asdict`; all hash, and a hash leaves
out the dictionaries in them.
"""

from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import polars  # type: ignore[import-not-found, unused-ignore]
    import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]

    from backread._backread import ArrowTable
    from backread._client.frames import DtypeBackend

__all__ = [
    "Attempt",
    "Certificate",
    "Message",
    "OperatorSender",
    "OtherSender",
    "Page",
    "Sender",
    "User",
    "UserAttribute",
    "UserSender",
    "WalkReport",
]

T_co = TypeVar("T_co", covariant=True)

Certificate: TypeAlias = Literal["snapshot", "counted", "linked", "uncertified"]
"""What a walk proved of its list, the strongest first; see `WalkReport.certificate`."""


@dataclass(frozen=True, slots=True)
class UserAttribute:
    """One custom property of a user, set by the widget's code."""

    name: str | None
    value: str | None
    extra: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class User:
    """One visitor of the chat widget.

    ``user_attributes`` is a tuple of any length; it is ``None`` when the service sent null or
    left it out, and empty when it sent an empty array.
    """

    id: int
    name: str | None
    email: str | None
    reference: str | None
    created_at: datetime | None
    updated_at: datetime | None
    online_at: datetime | None
    last_url: str | None
    user_attributes: tuple[UserAttribute, ...] | None
    extra: dict[str, Any] = field(default_factory=dict, hash=False)

    def _repr_html_(self) -> str:
        from backread._display.records import user_html

        return user_html(self)


@dataclass(frozen=True, slots=True)
class UserSender:
    """The sender of a message whose ``sender_type`` is ``user``."""

    id: int
    name: str | None
    email: str | None
    extra: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class OperatorSender:
    """The sender of a message whose ``sender_type`` is ``operator``."""

    id: int
    forename: str | None
    surname: str | None
    email: str | None
    picture_thumb_url: str | None
    extra: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class OtherSender:
    """A sender that the interface does not describe.

    Its ``sender_type`` is another value than the two documented ones, or a documented one whose
    sender came without an integer id. All of its fields but ``id`` are in ``extra``, as sent.
    """

    sender_type: str | None
    id: int | None
    extra: dict[str, Any] = field(default_factory=dict, hash=False)


Sender: TypeAlias = UserSender | OperatorSender | OtherSender
"""Whoever wrote a message."""


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message.

    ``user_id`` is the user whose list holds the message; it is part of the path that was asked,
    not of the answer. ``sender_type`` is as sent, also where ``sender`` is ``None``. Messages of
    one sender may share one object as their ``sender``.
    """

    id: int
    body: str | None
    read_by_user: bool | None
    read_by_operator: bool | None
    created_at: datetime | None
    file_url: str | None
    auto_invitation: bool | None
    sender_type: str | None
    sender: Sender | None
    user_id: int
    extra: dict[str, Any] = field(default_factory=dict, hash=False)

    def _repr_html_(self) -> str:
        from backread._display.records import message_html

        return message_html(self)


@dataclass(frozen=True, slots=True)
class Page(Generic[T_co]):
    """One list response: its rows, and the envelope as sent.

    ``limit`` is the page size the server applied (rows), ``offset`` the position it applied
    (rows), ``total`` the size of the list (rows) by its own account. A page iterates its items,
    has their length and is indexed by position; an empty page is false.

    A page of models is an Arrow stream of its rows, with the columns of a listing's:
    ``polars.DataFrame(page)``, ``pyarrow.table(page)``. ``resource`` says what an empty page is a
    page of; one that is made by hand may do without while it has items, and plays no part in
    comparisons. A fraction in ``extra`` is in the column as the float that the item holds; a
    listing's column has it as sent. TypeError where the items are no models (``as_dict=True``),
    ValueError where nothing says what they would be.
    """

    limit: int | None
    offset: int | None
    total: int | None
    items: tuple[T_co, ...]
    resource: Literal["users", "messages"] | None = field(default=None, compare=False, repr=False)

    def __iter__(self) -> Iterator[T_co]:
        from backread._client.frames import refuse_rows

        if not self._holds_dicts():
            refuse_rows(self)
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, position: int) -> T_co: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, position: int | slice) -> T_co | tuple[T_co, ...]:
        return self.items[position]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as columns; each call gives a new stream.

        TypeError for ``polars.from_arrow(page)``, which would make one column of structs of it,
        and for ``polars.scan_arrow_c_stream(page)``, which would be empty at its second collect.
        """
        from backread._client.frames import refuse_misread

        refuse_misread(self)
        return self._table().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The schema of the stream."""
        return self._table().__arrow_c_schema__()

    @property
    def __array__(self) -> "Callable[..., NoReturn]":
        from backread._client.frames import no_array

        # Dicts make columns of what was sent, so pandas may iterate those.
        if self._holds_dicts():
            raise AttributeError("a page of dicts is no array")
        return no_array(self)

    def to_arrow(self) -> "pyarrow.Table":
        """The rows as a ``pyarrow.Table``; ImportError where pyarrow is not installed."""
        from backread._client.frames import arrow_table

        return arrow_table(self)

    def to_polars(self) -> "polars.DataFrame":
        """The rows as a ``polars.DataFrame``; ImportError where polars is not installed."""
        from backread._client.frames import polars_frame

        return polars_frame(self)

    def to_pandas(self, *, dtype_backend: "DtypeBackend" = None) -> "pandas.DataFrame":
        """The rows as a ``pandas.DataFrame``; ImportError without pandas and pyarrow.

        ``dtype_backend="pyarrow"`` keeps Arrow's types and memory (``pandas.ArrowDtype``). Without
        it, numbers and flags with nulls become floats and objects. ValueError for anything else.
        """
        from backread._client.frames import pandas_frame

        return pandas_frame(self, dtype_backend)

    def _holds_dicts(self) -> bool:
        return bool(self.items) and isinstance(self.items[0], dict)

    def _table(self) -> "ArrowTable":
        from backread._backread import messages_table, users_table

        first = self.items[0] if self.items else None
        if isinstance(first, User) or (first is None and self.resource == "users"):
            return users_table(self.items)
        if isinstance(first, Message) or (first is None and self.resource == "messages"):
            return messages_table(self.items)
        if first is None:
            raise ValueError(
                "a page without items and without a resource has no columns; "
                "Page(..., resource='users') has"
            )
        raise TypeError(
            f"a page of {type(first).__name__} has no columns, a page of User or Message has; "
            "read it without as_dict=True"
        )

    def _repr_html_(self) -> str:
        from backread._display.records import page_html

        return page_html(self)


@dataclass(frozen=True, slots=True)
class WalkReport:
    """What one walk over a list asked, got and proved. All numbers are counts.

    - ``requests`` were sent, retries among them; ``pages`` were read to their end.
    - ``rows`` came back; ``distinct`` of them by id; ``repeats`` came more than once and were
      given once.
    - ``total_first`` and ``total_last`` are the service's own counts of the list, in the first
      and in the last response; ``None`` where it sent none.
    - ``sweeps`` counts the passes over the list; ``repaired_text`` the places where its text was
      not valid Unicode and now holds U+FFFD.
    - ``certificate``: ``snapshot`` (one response held it all), ``counted`` (messages are only
      added, and as many are held as a later response counts), ``linked`` (each page shares
      unchanged rows with the next: every row that was there and stayed in its place from start to
      end is held), or ``uncertified`` (nothing is proved); ``reason`` says in words why.
    - ``started_at`` and ``ended_at`` are UTC; ``ended_at`` is ``None`` while the walk is under way
      and ``started_at`` before it begins.
    - Only a walk over every user's messages fills ``lists_by_certificate`` (how many lists earned
      each certificate; ``certificate`` is then the weakest) and ``uncertified_users`` (ids).
    - The evidence: ``links`` between pages; ``missing_links``, pages that could not be linked;
      ``inversions``, neighbours that stood the other way round in a later page (the order is not
      stable then); rows that a later page no longer showed and that were asked for by id:
      ``rows_gone`` (404) and ``rows_moved``; ``rows_short``, rows that the last total counts and
      the walk does not hold (``None`` without a total); ``proving_requests``, those that a plain
      loop would not have sent: at most 16 and 8 for each page of the list; ``rows_found_by_id``,
      rows that no page showed and that were found by looking up the ids between those held.
    - ``outage_seconds``: how long the service was down while the walk ran; see ``outage_patience``
      of `Client`.
    - ``odd_values``: values of documented fields that were of another type than documented; each
      is kept as sent in the ``extra`` of its object, and the field is ``None``.
    - ``unread_users``: ids of the users whose messages could not be read, or not to their end;
      they are among the ``uncertified_users``. Only a walk over every user's messages fills it.
    - ``unreadable_rows``: rows without an integer id, nested too deep, or too large by themselves.
      They are left out (those without an id are given with ``as_dict=True``), ``reason`` names
      them, and the list is ``uncertified``.
    """

    requests: int
    pages: int
    rows: int
    distinct: int
    repeats: int
    total_first: int | None
    total_last: int | None
    sweeps: int
    repaired_text: int
    certificate: Certificate
    started_at: datetime | None
    ended_at: datetime | None
    reason: str | None
    lists_by_certificate: dict[str, int] = field(default_factory=dict, hash=False)
    uncertified_users: tuple[int, ...] = ()
    links: int = 0
    missing_links: int = 0
    inversions: int = 0
    rows_gone: int = 0
    rows_moved: int = 0
    rows_short: int | None = None
    proving_requests: int = 0
    rows_found_by_id: int = 0
    outage_seconds: float = 0.0
    odd_values: int = 0
    unread_users: tuple[int, ...] = ()
    unreadable_rows: int = 0

    def to_json(self) -> str:
        """The report as JSON, times in ISO 8601; `from_json` reads it."""
        from backread._client.report_json import report_to_json

        return report_to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> "WalkReport":
        """The report that `to_json` wrote, by this backread or an earlier one.

        ValueError for anything else.
        """
        from backread._client.report_json import report_from_json

        return report_from_json(cls, text)

    def _repr_html_(self) -> str:
        from backread._display.reports import report_html

        return report_html(self)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that was sent on behalf of a call.

    ``status`` is the HTTP status, ``None`` when no answer came; ``error`` says what went wrong
    then, or with the answer. ``seconds_waited`` is the wait before the request was sent,
    ``seconds_taken`` the time from sending it to its end.
    """

    status: int | None
    error: str | None
    seconds_taken: float
    seconds_waited: float


def _refuse_assignment(record: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(
        f"cannot assign {name!r}: a {type(record).__name__} is frozen; "
        "dataclasses.replace() makes a changed copy"
    )


# What dataclass() generates calls super() of the class that slots=True replaced: an unknown name,
# and the one that Page[int](...) sets, get its TypeError instead (cpython, all versions so far).
for _record in (
    UserAttribute,
    User,
    UserSender,
    OperatorSender,
    OtherSender,
    Message,
    Page,
    WalkReport,
    Attempt,
):
    _record.__setattr__ = _refuse_assignment  # type: ignore[method-assign]
