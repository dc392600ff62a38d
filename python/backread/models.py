"""Frozen dataclasses of the service's objects: users, messages, pages, and the report of a walk.

The fields that the API documents are also in the table of `src/core/schema.rs`, by name; a class
whose fields differ from the table makes `Client` raise TypeError.

``None`` means that the service sent null or left the field out: the API does not say which fields
may be null, so all except ``id`` may be. ``extra`` has undocumented fields, as sent; a number that
neither ``int`` nor ``float`` holds is a ``Decimal`` whose ``str`` is what was sent. Timestamps are
aware datetimes in UTC, to the microsecond.

All of them compare, copy, pickle, hash and work with `dataclasses.asdict`; hashes ignore the
dictionaries in them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import FrozenInstanceError, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import polars  # type: ignore[import-not-found, unused-ignore]
    import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]

    from backread._backread import ArrowTable
    from backread._frames import DtypeBackend

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
"""What a walk proved about its list, strongest first; see `WalkReport.certificate`."""


@dataclass(frozen=True, slots=True)
class UserAttribute:
    """One custom property of a user, set through the widget's code.

    Attributes:
        name: The property's name; a user may have several of one name.
        value: Its value.
        extra: Undocumented fields, and documented ones whose value has another type, as sent.
    """

    name: str | None
    value: str | None
    extra: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class User:
    """One visitor of the chat widget.

    Any field except ``id`` is ``None`` if the service sent null, another type, or nothing.
    Timestamps are in UTC.

    Attributes:
        id: The user's id.
        name: The user's name.
        email: The user's e-mail address.
        reference: A reference value attached to the user.
        created_at: When the user was created.
        updated_at: When the user last changed.
        online_at: When the user was last online.
        last_url: The address that the user visited last.
        user_attributes: Custom properties, in the order sent; empty if the service sent an empty
            array.
        extra: Undocumented fields, and documented ones whose value has another type, as sent.
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

    @property
    def attributes(self) -> dict[str, str | None]:
        """The custom properties by name, such as ``user.attributes["plan"]``; a new dict.

        If a name repeats, the last one wins. Those without a name are only in
        ``user_attributes``.
        """
        given = self.user_attributes or ()
        return {each.name: each.value for each in given if each.name is not None}

    def _repr_html_(self) -> str:
        from backread._display.records import user_html

        return user_html(self)


@dataclass(frozen=True, slots=True)
class UserSender:
    """The sender of a message whose ``sender_type`` is ``user``.

    Attributes:
        id: The user's id.
        name: The user's name.
        email: The user's e-mail address.
        extra: Undocumented fields, and documented ones whose value has another type, as sent.
    """

    id: int
    name: str | None
    email: str | None
    extra: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class OperatorSender:
    """The sender of a message whose ``sender_type`` is ``operator``.

    Attributes:
        id: The operator's id.
        forename: The operator's forename.
        surname: The operator's surname.
        email: The operator's e-mail address.
        picture_thumb_url: The URL of the operator's picture; ``None`` without one.
        extra: Undocumented fields, and documented ones whose value has another type, as sent.
    """

    id: int
    forename: str | None
    surname: str | None
    email: str | None
    picture_thumb_url: str | None
    extra: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class OtherSender:
    """A sender of an undocumented kind.

    Its ``sender_type`` is not one of the two documented values, or the sender has no integer id.
    All fields except ``id`` are in ``extra``, as sent.
    """

    sender_type: str | None
    id: int | None
    extra: dict[str, Any] = field(default_factory=dict, hash=False)


Sender: TypeAlias = UserSender | OperatorSender | OtherSender
"""The author of a message."""


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message.

    Any field except ``id`` and ``user_id`` is ``None`` if the service sent null, another type, or
    nothing.

    Attributes:
        id: The message's id.
        body: The text.
        read_by_user: Whether the user has read the message.
        read_by_operator: Whether an operator has read the message.
        created_at: When the message was sent, in UTC.
        file_url: The URL of the attached file; ``None`` without one.
        auto_invitation: Whether the message is an automatic invitation.
        sender_type: ``"user"``, ``"operator"``, or what else the service sent, even if ``sender``
            is ``None``.
        sender: Who sent the message. Messages from the same sender may share one object.
        user_id: The user whose list holds the message; it comes from the request's path, not from
            the response.
        extra: Undocumented fields, and documented ones whose value has another type, as sent.
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

    @property
    def sender_name(self) -> str | None:
        """An operator's forename and surname, or the name of another sender; None without one."""
        from backread._display.words import sender_name

        return sender_name(self.sender)

    def _repr_html_(self) -> str:
        from backread._display.records import message_html

        return message_html(self)


@dataclass(frozen=True, slots=True)
class Page(Generic[T_co]):
    """One list response: its rows, and the envelope as sent.

    ``limit`` is the page size the server applied (rows), ``offset`` the position it applied
    (rows), ``total`` the size of the list (rows) according to the server. A page is a sequence of
    its items; an empty page is false.

    A page of models is an Arrow stream of its rows, with the same columns as a listing:
    ``polars.DataFrame(page)``, ``pyarrow.table(page)``. ``resource`` gives an empty page its
    columns; a page with items can do without, and comparisons ignore it. A fraction in ``extra``
    is in the column as the item's float; a listing's column has it as sent. Raises TypeError if
    the items are not models (``as_dict=True``), ValueError for an empty page without ``resource``.
    """

    limit: int | None
    offset: int | None
    total: int | None
    items: tuple[T_co, ...]
    resource: Literal["users", "messages"] | None = field(default=None, compare=False, repr=False)

    def __iter__(self) -> Iterator[T_co]:
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
        """The rows as columns; each call gives a new stream, which can be read once."""
        return self._table().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The schema of the stream."""
        return self._table().__arrow_c_schema__()

    @property
    def __array__(self) -> "Callable[..., NoReturn]":
        from backread._frames import no_array

        # pandas makes proper columns from dicts, so it may iterate those.
        if self._holds_dicts():
            raise AttributeError("a page of dicts is no array")
        return no_array(self)

    def to_arrow(self) -> "pyarrow.Table":
        """The rows as a ``pyarrow.Table``; ImportError if pyarrow is not installed."""
        from backread._frames import arrow_table

        return arrow_table(self)

    def to_polars(self) -> "polars.DataFrame":
        """The rows as a ``polars.DataFrame``; ImportError if polars is not installed."""
        from backread._frames import polars_frame

        return polars_frame(self)

    def to_pandas(self, *, dtype_backend: "DtypeBackend" = None) -> "pandas.DataFrame":
        """The rows as a ``pandas.DataFrame``; ImportError without pandas and pyarrow.

        ``dtype_backend="pyarrow"`` keeps Arrow's types and memory (``pandas.ArrowDtype``). Without
        it, numbers and flags with nulls become floats and objects. Other values raise ValueError.
        """
        from backread._frames import pandas_frame

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
    """What one walk over a list requested, received and proved. All numbers are counts.

    - ``requests`` sent, including retries; ``pages`` read to their end.
    - ``rows`` received; ``distinct``: rows with different ids; ``repeats``: rows received more than
      once and returned once.
    - ``total_first`` and ``total_last`` are the service's count of the list in the first and in
      the last response; ``None`` if it sent none.
    - ``sweeps`` counts the passes over the list; ``repaired_text`` the places where its text was
      not valid Unicode and now has U+FFFD. Text is UTF-8; where it is not, and the service names
      ISO-8859-1 or windows-1252 as its charset, it is read as that.
    - ``certificate``: ``snapshot`` (one response held the whole list), ``counted`` (messages are
      only added, and the walk has as many as a later response counts), ``linked`` (each page shares
      unchanged rows with the next: the walk has every row that stayed in its place from start to
      end), or ``uncertified`` (nothing is proved); ``reason`` says why in words.
    - ``started_at`` and ``ended_at`` are UTC; ``ended_at`` is ``None`` until the walk ends,
      ``started_at`` until it begins.
    - Only walks over all users' messages fill ``lists_by_certificate`` (the number of lists with
      each certificate; ``certificate`` is then the weakest) and ``uncertified_users`` (ids).
    - ``evidence``: what the walk saw, by name: ``links`` between pages; ``missing_links``, pages
      that could not be linked; ``inversions``, neighbours in reverse order on a later page (the
      order is then unstable); rows that disappeared from a later page and were fetched by id:
      ``rows_gone`` (404) and ``rows_moved``; ``rows_short``, rows that the last total counts and
      the walk does not have (``None`` without a total); ``rows_found_by_id``, rows that were on no
      page and were found by looking up ids between known ones; ``proving_requests``, requests that
      a plain loop would not send: at most 16, plus 8 per page of the list.
    - ``outage_seconds``: how long the service was down during the walk; see ``outage_patience``
      of `Client`.
    - ``odd_values``: values of documented fields with an undocumented type; they are in the
      object's ``extra`` as sent, and the field is ``None``.
    - ``unread_users``: ids of users whose messages could not be read, or not to the end; they are
      also in ``uncertified_users``. Only walks over all users' messages fill it.
    - ``unreadable_rows``: rows without an integer id, nested too deeply, too large, or with which
      every page fails. They are left out (``as_dict=True`` does return those without an id),
      ``reason`` names them, and the list is ``uncertified``.
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
    evidence: dict[str, int | None] = field(default_factory=dict, hash=False)
    outage_seconds: float = 0.0
    odd_values: int = 0
    unread_users: tuple[int, ...] = ()
    unreadable_rows: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The report as a dict of JSON values, times in ISO 8601, for `from_dict`."""
        from backread._files.dataclass_json import to_json_value

        document: dict[str, Any] = to_json_value(self)
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "WalkReport":
        """The report that `to_dict` of this or an earlier release made.

        Unknown keys are ignored. Raises ValueError, with the path of the key, for anything else.
        """
        from backread._files.dataclass_json import dataclass_from_json

        return dataclass_from_json(cls, document, "WalkReport")

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        import json

        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> "WalkReport":
        """The report in the JSON text of `to_json`; ValueError as for `from_dict`."""
        from backread._files.json import parse_json

        return cls.from_dict(parse_json(text, "WalkReport"))

    def _repr_html_(self) -> str:
        from backread._display.reports import report_html

        return report_html(self)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that was sent for a call.

    ``status`` is the HTTP status, ``None`` without a response; ``error`` says what went wrong,
    with the request or the response. ``seconds_waited`` is the wait before sending it,
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


def _refuse_deletion(record: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete {name!r}: a {type(record).__name__} is frozen")


# The generated methods call super() of the class that slots=True replaced: setting an unknown name,
# or the one that Page[int](...) sets, raises its TypeError (cpython, all versions so far).
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
    _record.__delattr__ = _refuse_deletion  # type: ignore[method-assign]
