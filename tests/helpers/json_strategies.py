"""Rows drawn by hypothesis, and spelled as JSON in all the ways in which it can be spelled.

``bodies("users")`` draws list responses: fields null, missing, twice, of the wrong type, unknown or
in any order; text, numbers and timestamps at their edges; white space, escapes in text and in keys.
A drawn object is a list of pairs, so that a key can come twice. `spell` writes one as JSON.
"""

import json
import random
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from hypothesis import strategies as st

from helpers import api_rows, expected_rows

Pairs = list[tuple[str, Any]]


class Raw(str):
    """JSON to be written as it stands."""

    __slots__ = ()


@dataclass(frozen=True)
class Object:
    pairs: Pairs


# Readers look at 8, 16 or 32 bytes at a time, so what is odd stands at all distances.
_ODD = ["", '"', "\\", "\n", "\x00", "\x1f", "\x7f", "é", "\u2028", "€", "😀", "\ud83d", "\ude00"]
_TEXT = st.one_of(
    st.text(st.characters(codec=None), max_size=12),
    st.builds(
        lambda before, odd, after: "a" * before + odd + "b" * after,
        st.integers(0, 70),
        st.sampled_from(_ODD),
        st.integers(0, 40),
    ),
    st.sampled_from(["", "null", "user", "operator", "{}", "\\ud83d", "\ufffd", "2024-03-05"]),
)
_KEYS = st.one_of(
    _TEXT, st.sampled_from(["Id", "id ", "names", "nam", "sender_types", "extra", "user_id", "i"])
)
_EDGES = [0, 1, -1, 9, 10, 2**31, 2**53 + 1, 10**18, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30]
_NUMBERS = st.one_of(
    st.integers(),
    st.sampled_from(_EDGES),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["-0", "0.0", "-0.0", "1.50", "1E2", "1e+2", "1E-2", "1e400", "1e-400", f"{2**70}.5"]
    ).map(Raw),
)
_ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(st.tuples(_KEYS, inner), max_size=4).map(Object),
    ),
    max_leaves=8,
)

_DATES = [
    "2024-03-05",
    "2024-02-29",
    "2023-02-29",
    "1969-12-31",
    "1900-02-29",
    "2000-02-29",
    "0001-01-01",
    "0000-01-01",
    "9999-12-31",
    "2024-13-01",
    "2024-00-10",
    "2024-04-31",
    "2024-1-01",
]
_CLOCKS = [
    "09:31:07",
    "00:00:00",
    "23:59:59",
    "23:59:60",
    "24:00:00",
    "09:60:00",
    "09:31",
    "9:31:7",
]
_FRACTIONS = ["", ".042", ".0", ".5", ",042", ".042000", ".000001", ".999999", ".0420009", "."]
_FRACTIONS += [".123456789", ".1234567891", ".04z"]
_OFFSETS = ["Z", "z", "", "+00:00", "-00:00", "+01:00", "-0830", "+05", "+23:59", "+24:00", " UTC"]
_OFFSETS += ["+1:00", "+01:0", "Z ", "ZZ", "[UTC]"]
_MOMENTS = st.one_of(
    st.datetimes().map(lambda moment: moment.isoformat(timespec="milliseconds") + "Z"),
    st.builds(
        lambda separator, fraction, offset: f"2024-03-05{separator}09:31:07{fraction}{offset}",
        st.sampled_from("Tt "),
        st.sampled_from(_FRACTIONS[:9]),
        st.sampled_from(_OFFSETS[:9]),
    ),
)
WILD_MOMENTS = st.one_of(
    st.tuples(*map(st.sampled_from, (_DATES, ["T"], _CLOCKS, _FRACTIONS, _OFFSETS))).map("".join),
    *(
        st.sampled_from(parts).map(form.format)
        for parts, form in (
            (_DATES, "{}T09:31:07.042Z"),
            (_CLOCKS, "2024-03-05T{}.042Z"),
            (_FRACTIONS, "2024-03-05T09:31:07{}Z"),
            (_OFFSETS, "2024-03-05T09:31:07.042{}"),
        )
    ),
)


class Manner(Enum):
    """How the rows of a page are: as documented, odd but to be read, or with something wrong."""

    PLAIN = auto()
    ODD = auto()
    WRONG = auto()


@st.composite
def _fields(draw: st.DrawFn, known: dict[str, st.SearchStrategy[Any]], manner: Manner) -> Object:
    """An object: all fields in their order, or some null, missing, twice, unknown, wrong."""
    if manner is Manner.PLAIN:
        return Object([(name, draw(value)) for name, value in known.items()])
    wrong = draw(st.sampled_from([*known])) if manner is Manner.WRONG else None
    pairs: Pairs = []
    for name, value in known.items():
        odd = 9 if name == "id" else draw(st.integers(0, 9))
        if name == wrong:
            pairs.append((name, draw(WILD_MOMENTS if name.endswith("_at") else _ANYTHING)))
        elif odd != 0:
            pairs.append((name, None if odd == 1 else draw(value)))
    pairs += draw(st.lists(st.tuples(_KEYS, _ANYTHING), max_size=2))
    for name in draw(st.lists(st.sampled_from([*known]), max_size=1)):
        pairs.append((name, draw(known[name])))
    return Object(draw(st.permutations(pairs)) if draw(st.booleans()) else pairs)


_IDS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from(_EDGES[:10]))
_ATTRIBUTE = {"name": _TEXT, "value": _TEXT}
_USER_SENDER = {"id": _IDS, "name": _TEXT, "email": _TEXT}
_OPERATOR = {
    "id": _IDS,
    **dict.fromkeys(("forename", "surname", "email", "picture_thumb_url"), _TEXT),
}
_USER = {
    **dict.fromkeys(expected_rows.USER, _TEXT),
    **dict.fromkeys(("created_at", "updated_at", "online_at"), _MOMENTS),
}
_MESSAGE = {
    **dict.fromkeys(expected_rows.MESSAGE, _TEXT),
    **dict.fromkeys(("read_by_user", "read_by_operator", "auto_invitation"), st.booleans()),
    "created_at": _MOMENTS,
    "file_url": st.none() | _TEXT,
}


@st.composite
def _row(draw: st.DrawFn, key: str, own_id: int, manner: Manner) -> Object:
    """A row whose id, where it is one, no other row of its page has."""
    inner = manner if draw(st.booleans()) else Manner.PLAIN
    known: dict[str, st.SearchStrategy[Any]]
    if key == "users":
        attributes = st.lists(_fields(_ATTRIBUTE, inner), max_size=3)
        known = {**_USER, "user_attributes": attributes}
    else:
        sender_type = draw(st.sampled_from(["user", "operator"]))
        sender = _fields(_USER_SENDER if sender_type == "user" else _OPERATOR, inner)
        types = st.just(sender_type) if manner is Manner.PLAIN else st.just(sender_type) | _TEXT
        known = {**_MESSAGE, "sender_type": types, "sender": sender}
    known["id"] = st.sampled_from([own_id, own_id, own_id + 2**62, -own_id, own_id + 10**9])
    return draw(_fields(known, manner))


@st.composite
def pages(draw: st.DrawFn, key: str) -> list[Object]:
    """The rows of one page; all are plain or odd, or one is wrong."""
    manner = draw(st.sampled_from(Manner))
    rows = []
    for position in range(draw(st.integers(1, 3))):
        of_row = manner if manner is not Manner.WRONG or position == 0 else Manner.ODD
        rows.append(draw(_row(key, 1001 + position, of_row)))
    return draw(st.permutations(rows))


VALUES = [
    *("null", "true", "false", "0", "-0", "7", "7.0", "7e0", "-1", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775808", "-9223372036854775809", "0.5", "1e999"),
    *('""', '"7"', '"user"', '"2024-03-05T09:31:07.042Z"', '"\\ud83d"', '"\\u0000"'),
    *("[]", "[null]", "[[]]", "[{}]", "[{},7]", '[{"name":7}]', '[{"value":[]}]', '[{"x":{}}]'),
    *("{}", '{"id":7}', '{"id":null}', '{"id":"7"}', '{"id":7.0}', '{"id":7,"id":8}', '{"x":7}'),
    *('{"id":7,"name":7}', '{"id":7,"email":"a","x":[]}', '{"id":7,"forename":{}}'),
]
"""One of each kind of value, as JSON."""


def whole_row(key: str) -> Pairs:
    """A row as documented."""
    row = api_rows.user(1001) if key == "users" else api_rows.message(1001)
    return [(name, _object(value)) for name, value in row.items()]


def _object(value: Any) -> Any:
    if isinstance(value, dict):
        return Object([(name, _object(held)) for name, held in value.items()])
    return [_object(held) for held in value] if isinstance(value, list) else value


_EDITS = st.tuples(
    st.floats(0, 1, exclude_max=True),
    st.integers(0, 3),
    st.sampled_from([bytes([code]) for code in b"{}[]\",:\\ \n\t01-+.eEtfnu/\x00\x1f\x7f\xff'a"])
    | st.sampled_from(
        [b"", b"\\u", b"\\ud83d", b"\xf0\x9f", b"null", b"NaN", b"00", b"],", b"},{"]
    ),
)


@st.composite
def broken(draw: st.DrawFn, key: str) -> bytes:
    """A list response with something in its rows taken out, put in, or written over."""
    whole = body(draw(pages(key)), key, draw(st.none() | st.integers(0, 2**32)))
    start = whole.index(f'"{key}"'.encode()) if f'"{key}"'.encode() in whole else 0
    for place, taken, given in draw(st.lists(_EDITS, min_size=1, max_size=2)):
        at = start + int(place * (len(whole) - start))
        whole = whole[:at] + given + whole[at + taken :]
    return whole


# --- spelling ------------------------------------------------------------------------------------


def body(rows: list[Object], key: str, seed: int | None) -> bytes:
    """A list response of the rows; without a seed as services spell JSON, else in any way."""
    chance = None if seed is None else random.Random(seed)
    page = Object([("limit", 99), ("offset", 0), ("total", len(rows)), (key, rows)])
    return spell(page, chance).encode("utf-8", "surrogatepass")


def respelled(rows: list[Object], key: str) -> bytes:
    """The same rows, each with an unknown field and all keys escaped: no row of these is plain."""
    page = Object([("limit", 99), ("offset", 0), ("total", len(rows))])
    written = [
        "{" + ",".join(f"{_escaped(name)}:{spell(value)}" for name, value in each.pairs) + "}"
        for each in (Object([*row.pairs, (MARK, True)]) for row in rows)
    ]
    return (spell(page)[:-1] + f',"{key}":[{",".join(written)}]}}').encode()


MARK = "a field that no service sends"


def spell(value: Any, chance: random.Random | None = None) -> str:
    """A drawn value as JSON; with ``chance`` in one of its many spellings."""
    gap = _gap(chance)
    if isinstance(value, Object):
        inner = ",".join(
            f"{_gap(chance)}{_string(name, chance)}{_gap(chance)}:{spell(held, chance)}"
            for name, held in value.pairs
        )
        return f"{gap}{{{inner}{_gap(chance)}}}{_gap(chance)}"
    if isinstance(value, list):
        inner = ",".join(spell(each, chance) for each in value)
        return f"{gap}[{inner}{_gap(chance)}]{_gap(chance)}"
    if isinstance(value, Raw):
        return f"{gap}{value}{_gap(chance)}"
    if isinstance(value, str):
        return f"{gap}{_string(value, chance)}{_gap(chance)}"
    return f"{gap}{json.dumps(value)}{_gap(chance)}"


def _gap(chance: random.Random | None) -> str:
    if chance is None or chance.random() < 0.7:
        return ""
    return "".join(chance.choices(" \t\r\n", k=chance.randint(1, 9)))


_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


def _string(text: str, chance: random.Random | None) -> str:
    """Text between quotes: non-ASCII as it is, or any character escaped in any of its ways."""
    often = 0.0 if chance is None else chance.choice([0.0, 0.0, 0.1, 1.0])
    written = []
    for character in text:
        code = ord(character)
        must = code < 32 or character in '"\\' or 0xD800 <= code < 0xE000
        if not must and (chance is None or chance.random() >= often):
            written.append(character)
        elif character in _SHORT and (chance is None or chance.random() < 0.5):
            written.append(_SHORT[character])
        elif character == "/":
            written.append("\\/")
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            form = "\\u%04X" if chance is not None and chance.random() < 0.5 else "\\u%04x"
            written += [form % int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    return f'"{"".join(written)}"'


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass").hex()
    escapes = "".join("\\u" + units[at : at + 4] for at in range(0, len(units), 4))
    return f'"{escapes}"'
