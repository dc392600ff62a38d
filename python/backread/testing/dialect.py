"""Unspecified behaviour of the API, as switches."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from backread._backread import read_dialect
from backread._client.arguments import refuse_options

if TYPE_CHECKING:
    from typing import Unpack

__all__ = [
    "Dialect",
    "Files",
    "Hints",
    "Ids",
    "Nulls",
    "Order",
    "OverLimit",
    "PastEnd",
    "SenderType",
    "Switches",
    "Total",
    "dialect_text",
]


OverLimit: TypeAlias = Literal["refuse", "clamp", "ignore"]
Order: TypeAlias = Literal["id", "newest", "ties", "shuffled"]
Total: TypeAlias = Literal["exact", "stale", "capped", "null", "low", "high"]
PastEnd: TypeAlias = Literal["empty", "not_found", "last_page"]
Nulls: TypeAlias = Literal["documented", "null", "missing", "both"]
SenderType: TypeAlias = Literal["documented", "others"]
Ids: TypeAlias = Literal["integer", "large", "text"]
Hints: TypeAlias = Literal["follow", "lag", "never"]
Files: TypeAlias = Literal["elsewhere", "own"]


class Switches(TypedDict, total=False):
    """The switches of a `Dialect`, which describes each."""

    strict: bool
    over_limit: OverLimit
    max_limit: int
    default_limit: int
    order: Order
    total: Total
    total_cap: int
    past_end: PastEnd
    nulls: Nulls
    sender_type: SenderType
    extra_fields: bool
    ids: Ids
    short_pages: bool
    hints: Hints
    files: Files


# The words of the grammar for false and true.
_WORDS = {
    "strict": ("no", "yes"),
    "extra_fields": ("none", "some"),
    "short_pages": ("none", "some"),
}
_SWITCHES = "with switches or without ('hostile order=newest')"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Dialect:
    """The undocumented behaviour of one service; each value is a guess at what a service might do.

    Made from a bundle and the switches that differ: ``Dialect("hostile", order="newest")``. The
    bundles are ``"documented"`` (strict, and the simplest guess for unspecified behaviour),
    ``"lenient"`` (answers any request it can interpret) and ``"hostile"`` (see `hostile`).
    ``str()`` is the text for the command line, from which an equal dialect can be made. Raises
    ValueError for an unknown bundle or value, TypeError for an unknown switch.
    """

    strict: bool
    """Whether to refuse: 401 without the bearer, 406 for another Accept, 422 for another query."""
    over_limit: OverLimit
    """A limit outside 1 to ``max_limit``: 422, the nearest allowed, or as if not given."""
    max_limit: int
    """The largest page, 1 to 99 rows."""
    default_limit: int
    """The page size without ``limit``, 1 to 99 rows."""
    order: Order
    """The order of lists. ``"ties"``: eight neighbours change places with every request;
    ``"shuffled"``: all rows do. Plain paging by offset loses rows with either. A walk reads such
    lists more than once; its report for users is ``uncertified`` once it saw the order change (or
    ``linked`` if it noticed nothing, as can happen with two pages), and for messages ``counted``
    once it has all."""
    total: Total
    """``"stale"``: as at the lane's start; ``"capped"``: at most ``total_cap``; ``"low"`` and
    ``"high"``: off by a tenth."""
    total_cap: int
    """The maximum with ``total="capped"``, in rows."""
    past_end: PastEnd
    """The response to an offset past the end: a page without rows, 404, or the last page."""
    nulls: Nulls
    """Whether fields that are not documented as nullable are null or left out."""
    sender_type: SenderType
    """Whether bots and others send messages, with senders of another shape."""
    extra_fields: bool
    """Whether envelopes, rows and senders have undocumented fields."""
    ids: Ids
    """``"large"``: above 2^62; ``"text"``: decimal text, which violates the API."""
    short_pages: bool
    """Whether a page may hold fewer rows than its limit while more follow."""
    hints: Hints
    """A user's ``updated_at`` and ``online_at`` when messages are added, edited or removed: they
    move at once, five minutes later, or not. In a world of several lanes, the dialect that was set
    last decides."""
    files: Files
    """Where the files of messages are: on a host that does not exist, or on the mock, by relative
    links and without the secret."""

    def __init__(self, text: str = "documented", **switches: Unpack[Switches]) -> None:
        """From a bundle (or a whole text, such as ``"hostile order=newest"``) and switches."""
        if not isinstance(text, str):
            raise TypeError(f"text: a bundle such as 'hostile', {_SWITCHES}, not {text!r}")
        refuse_options("Dialect", switches, Switches.__optional_keys__)
        words = [f"{name}={_word(name, value)}" for name, value in switches.items()]
        _, values, _ = read_dialect(" ".join([text, *words]))
        for name, value in values.items():
            object.__setattr__(self, name, _value(name, value))

    @classmethod
    def documented(cls, **switches: Unpack[Switches]) -> Dialect:
        """The documented API, strictly; ``switches`` change single guesses."""
        return cls("documented", **switches)

    @classmethod
    def lenient(cls, **switches: Unpack[Switches]) -> Dialect:
        """Answers any request it can interpret, and sends more than it must.

        ``switches`` change single guesses.
        """
        return cls("lenient", **switches)

    @classmethod
    def hostile(cls, **switches: Unpack[Switches]) -> Dialect:
        """Behaviour that breaks clients with wrong assumptions.

        Its lists have ties, so a plain pager loses rows although nothing changes, as on services
        without a unique sort order. With ``order="id"`` it gets every row. ``switches`` change
        single guesses.
        """
        return cls("hostile", **switches)

    def with_(self, **switches: Unpack[Switches]) -> Dialect:
        """A dialect with these switches changed."""
        return Dialect(str(self), **switches)

    @property
    def conforms(self) -> bool:
        """Whether every response conforms to the documented API."""
        _, _, conforms = read_dialect(str(self))
        return conforms

    def __str__(self) -> str:
        words = [
            f"{each.name}={_word(each.name, getattr(self, each.name))}" for each in fields(self)
        ]
        text, _, _ = read_dialect(" ".join(words))
        return text

    def __repr__(self) -> str:
        return f"Dialect({str(self)!r})"


def dialect_text(dialect: Dialect | str) -> str:
    """The text of a dialect; TypeError for anything but a dialect or a text."""
    if not isinstance(dialect, (Dialect, str)):
        raise TypeError(
            f"dialect: a Dialect, or its text {_SWITCHES}, not {dialect!r}; "
            "Dialect(order='newest') takes the switches by name"
        )
    return str(dialect)


def _word(name: str, value: object) -> str:
    """The switch's value as a word of the grammar."""
    words = _WORDS.get(name)
    if words is not None:
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be True or False, not {value!r}")
        return words[value]
    word = str(value)
    if word.split() != [word]:
        raise ValueError(f"{name}: {word!r} is not one word")
    return word


def _value(name: str, word: str) -> Any:
    if name in _WORDS:
        return _WORDS[name].index(word) == 1
    return int(word) if word.isdecimal() else word
