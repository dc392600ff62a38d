"""Frozen dataclasses of the service's objects: users, messages, pages, and the report of a walk.

The fields that the API documents are also in the table of `src/core/schema.rs`, by name; a class
whose fields differ from the table makes `Client` raise TypeError.

``None`` means that the service sent null or left the field out: the API does not say which fields
may be null, so all except ``id`` may be. ``extra`` has undocumented fields, as sent; a number that
neither ``int`` nor ``float`` holds is a ``Decimal`` whose ``str`` is what was sent. Timestamps are
aware datetimes in UTC, to the microsecond.

All of them compare, copy, pickle, hash and work with `dataclasses.asdict`; hashes ignore the
dictionaries in them. ``to_dict`` and ``to_json`` give JSON, which ``from_dict`` and ``from_json``
read back. Their repr has at most 100 characters.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from datetime import datetime
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NoReturn,
    Self,
    TypeAlias,
    TypeVar,
    overload,
)

from backread._files.dataclass_json import JsonRecord, dataclass_from_json, value_of_key

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

MEANINGS = {
    "snapshot": "one response contained the whole list",
    "counted": "as many rows were read as a later response counted",
    "linked": "each page shares rows with the next: every row that stayed in its place was read",
}
"""What each certificate says, in words."""


@dataclass(frozen=True, slots=True, repr=False)
class UserAttribute(JsonRecord):
    """One custom property of a user, set through the widget's code.

    Attributes:
        name: The property's name; a user may have several of one name.
        value: Its value.
        extra: Undocumented fields, and documented ones whose value has another type, as sent.
    """

    name: str | None
    value: str | None
    extra: dict[str, Any] = field(default_factory=dict, hash=False)

    def _cell_text(self) -> str:
        from backread._display.html import text_of

        return f"{text_of(self.name)} = {text_of(self._value_text())}"

    def _value_text(self) -> str | None:
        from backread._display.html import text_of

        return f"{text_of(self.value)} ({text_of(self.extra)})" if self.extra else self.value


@dataclass(frozen=True, slots=True, repr=False)
class User(JsonRecord):
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

    _in_repr = ("id", "name", "email")

    @property
    def attributes(self) -> dict[str, str | None]:
        """The custom properties by name, such as ``user.attributes["plan"]``; a new dict.

        If a name repeats, the last one wins. Those without a name are only in
        ``user_attributes``.
        """
        given = self.user_attributes or ()
        return {each.name: each.value for each in given if each.name is not None}

    def _repr_html_(self) -> str:
        from backread._display.html import card

        return card(f"User {self.id}", self._rows())

    def _rows(self) -> list[tuple[str, Any]]:
        """Names and values for a table, with a row for each custom property and unknown field."""
        rows: list[tuple[str, Any]] = []
        for column in fields(self)[1:-1]:
            value = getattr(self, column.name)
            if column.name == "user_attributes" and value:
                rows += [(f"user_attributes: {each.name}", each._value_text()) for each in value]
            else:
                rows.append((column.name, value))
        return [*rows, *(self.extra or {}).items()]


@dataclass(frozen=True, slots=True, repr=False)
class UserSender(JsonRecord):
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


@dataclass(frozen=True, slots=True, repr=False)
class OperatorSender(JsonRecord):
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


@dataclass(frozen=True, slots=True, repr=False)
class OtherSender(JsonRecord):
    """A sender of an undocumented kind.

    Its ``sender_type`` is not one of the two documented values, or the sender has no integer id.
    All fields except ``id`` are in ``extra``, as sent.
    """

    sender_type: str | None
    id: int | None
    extra: dict[str, Any] = field(default_factory=dict, hash=False)


Sender: TypeAlias = UserSender | OperatorSender | OtherSender
"""The author of a message."""


@dataclass(frozen=True, slots=True, repr=False)
class Message(JsonRecord):
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

    _in_repr = ("id", "created_at", "body")

    @property
    def sender_name(self) -> str | None:
        """An operator's forename and surname, or the name of another sender; None without one."""
        from backread._display.words import sender_name

        return sender_name(self.sender)

    def _repr_html_(self) -> str:
        from backread._display.html import LONGEST_TEXT, card, link

        rows: list[tuple[str, Any]] = []
        for column in fields(self)[1:-1]:
            name, value = column.name, getattr(self, column.name)
            if name == "sender" and value is not None:
                sent = {each.name: getattr(value, each.name) for each in fields(value)[:-1]}
                rows += [(f"sender: {part}", held) for part, held in (sent | value.extra).items()]
            elif name == "file_url" and value is not None and len(value) <= LONGEST_TEXT:
                # Half an address leads elsewhere, so a longer one is text.
                rows.append((name, link(value)))
            else:
                rows.append((name, value))
        return card(f"Message {self.id}", [*rows, *(self.extra or {}).items()])


@dataclass(frozen=True, slots=True, repr=False)
class Page(JsonRecord, Generic[T_co]):
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
    resource: Literal["users", "messages"] | None = field(default=None, compare=False)

    _in_repr = ("limit", "offset", "total", "items")

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

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The page that `to_dict` converted; ValueError as for `User.from_dict`.

        ``resource`` says whether its items are users or messages. Without one they stay dicts, as
        do objects of the service as sent.
        """
        page = dataclass_from_json(cls, document, cls.__name__)
        kinds: dict[str | None, type[Any]] = {"users": User, "messages": Message}
        items: tuple[Any, ...] = page.items
        kind = kinds.get(page.resource)
        if kind is None or None in (value_of_key(each, "extra") for each in items):
            return page
        return replace(page, items=tuple(map(kind.from_dict, items)))

    def _holds_dicts(self) -> bool:
        return bool(self.items) and isinstance(self.items[0], dict)

    def _table(self) -> "ArrowTable":
        from backread._backread import rows_table

        first = self.items[0] if self.items else None
        if isinstance(first, User) or (first is None and self.resource == "users"):
            return rows_table(self.items, "users")
        if isinstance(first, Message) or (first is None and self.resource == "messages"):
            return rows_table(self.items, "messages")
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
        from backread._display.html import filled, grid, named_fields, quiet, sender_first
        from backread._display.words import amount, full_name, sender_name

        records = [dict(named_fields(item)) for item in self.items]
        for record in records:
            sender = record.get("sender")
            if isinstance(sender, Mapping):
                name = full_name(*map(sender.get, ("forename", "surname", "name")))
            else:
                name = sender_name(sender) if hasattr(sender, "extra") else None
            record["sender"] = name or sender
        # A column that no row fills says nothing.
        names = dict.fromkeys(name for record in records for name in record)
        columns = [name for name in names if any(filled(each.get(name)) for each in records)]
        envelope = ", ".join(
            f"{name} {'–' if value is None else f'{value:,}'}"
            for name, value in (
                ("offset", self.offset),
                ("limit", self.limit),
                ("total", self.total),
            )
        )
        caption = f"Page of {amount(len(self), 'row')} {quiet(f'{envelope}; times are UTC')}"
        return grid(caption, "rows of the page", sender_first(columns), records)


@dataclass(frozen=True, slots=True, repr=False)
class WalkReport(JsonRecord):
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

    _in_repr = ("certificate", "rows", "distinct", "requests", "reason")

    def _repr_html_(self) -> str:
        from backread._display.html import Html, card, every_field

        caption = Html(f"WalkReport {self._badge()}")
        return card(caption, self._rows(), every_field(self))

    def _badge(self) -> str:
        """The certificate in a frame, if the walk was read to its end."""
        from backread._display.html import badge, certificate_badge

        if self.started_at is None:
            return badge("open", "not read yet")
        if self.ended_at is None:
            return badge("open", "… not read to its end")
        return certificate_badge(self.certificate)

    def _rows(self) -> list[tuple[str, Any]]:
        """The names and values of what matters most, for a table."""
        from backread._display.words import amount, counts, duration, some_ids

        meaning = MEANINGS.get(self.certificate, self.reason)
        if self.lists_by_certificate and self.certificate in MEANINGS:
            meaning = f"the weakest of the lists: {meaning}"
        total = "" if self.total_last is None else f" of {self.total_last:,}"
        repeats = f", {amount(self.repeats, 'repeat')} left out" if self.repeats else ""
        took = None
        if self.started_at is not None and self.ended_at is not None:
            took = duration(max(0.0, (self.ended_at - self.started_at).total_seconds()))
        rows = [
            ("certificate", meaning),
            ("rows", f"{self.distinct:,}{total}{repeats}"),
            ("lists", counts(self.lists_by_certificate)),
            ("uncertified users", some_ids(self.uncertified_users)),
            ("requests", f"{self.requests:,}"),
            ("took", took),
            ("text repaired", self.repaired_text and f"in {amount(self.repaired_text, 'place')}"),
            ("left out", self.unreadable_rows and amount(self.unreadable_rows, "row")),
            (
                "of another type",
                self.odd_values and f"{amount(self.odd_values, 'value')}, kept in extra",
            ),
        ]
        return [(name, value) for name, value in rows if value]


@dataclass(frozen=True, slots=True, repr=False)
class Attempt(JsonRecord):
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
