"""Requests that no client should send, with the nearest valid request for each."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from backread.testing.journal import JournalEntry

__all__ = ["UnexpectedRequestError"]

MOST_SHOWN = 10
LONGEST_COMPARED = 200
PATHS = (
    ("external", "users"),
    ("external", "users", "USER_ID"),
    ("external", "users", "USER_ID", "messages"),
    ("external", "users", "USER_ID", "messages", "MESSAGE_ID"),
)
IDS = range(2**63)
ARGUMENTS = {"offset": IDS, "limit": range(1, 100)}


class UnexpectedRequestError(AssertionError):
    """A lane received requests that violate the API: a bug in the code under test.

    ``entries`` are the requests, ``vendor`` is the vendor word that they had to have. The text has
    each with its status, why it was refused, and the nearest valid request.
    """

    def __init__(self, entries: tuple[JournalEntry, ...], vendor: str) -> None:
        super().__init__(entries, vendor)
        self.entries = entries
        self.vendor = vendor

    def __str__(self) -> str:
        count = len(self.entries)
        noun = "1 request was" if count == 1 else f"{count} requests were"
        lines = [f"{noun} sent that the API does not allow"]
        for entry in self.entries[:MOST_SHOWN]:
            lines.append(f"{entry} ({entry.unexpected})")
            lines += (f"    {line}" for line in _nearest(entry, self.vendor))
        if count > MOST_SHOWN:
            lines.append(f"and {count - MOST_SHOWN} more")
        return "\n".join(lines)


def _nearest(entry: JournalEntry, vendor: str) -> list[str]:
    """The expected request, in words or as a comparison."""
    match entry.unexpected:
        case "unauthorized":
            return [
                "wanted: the header Authorization: Bearer SECRET, with the secret of a lane",
                "without one it may also come from what another test left running",
            ]
        case "not_acceptable":
            return [f"wanted: the header Accept: application/vnd.{vendor}.v1+json"]
        case "wrong_method":
            return [f"wanted: GET, not {entry.method}"]
    if not entry.path:
        return [
            "wanted: an HTTP request with an absolute path, such as GET /external/users",
            "it may also come from what another test left running",
        ]
    # Not urlsplit, which treats what follows // as a host.
    path, _, query = entry.path.partition("?")
    if entry.unexpected == "unknown_path":
        wanted, rules = _nearest_path(path)
        return [*_compared(path, wanted), *rules]
    wanted, rules = _nearest_query(query) if path.endswith(("/users", "/messages")) else ("", [])
    return [*_compared(f"{path}?{query}", f"{path}?{wanted}" if wanted else path), *rules]


def _compared(sent: str, wanted: str) -> list[str]:
    if sent == wanted:
        return []
    # ndiff takes cubic time.
    if len(sent) > LONGEST_COMPARED:
        return [f"sent:    {sent[:LONGEST_COMPARED]}...", f"nearest: {wanted}"]
    lines = difflib.ndiff([sent], [wanted])
    # Replaces the marks of ndiff by words, keeping the columns aligned.
    words = {"- ": "sent:    ", "+ ": "nearest: ", "? ": "         "}
    return [words[line[:2]] + line[2:].rstrip() for line in lines]


def _nearest_path(path: str) -> tuple[str, list[str]]:
    """The documented path most similar to this one, with its ids, and the rules for ids."""
    parts = [part for part in path.split("/") if part]
    meant = [_meant(part) for part in parts]
    ids = [str(each) if each in IDS else "" for each in meant if each is not None]

    # Treats all ids as equal; otherwise a long one would outweigh the words.
    sent = "/".join(
        part if number is None else "0" for part, number in zip(parts, meant, strict=True)
    )[:LONGEST_COMPARED]

    def likeness(pattern: tuple[str, ...]) -> float:
        shape = "/".join("0" if part.isupper() else part for part in pattern)
        return difflib.SequenceMatcher(None, sent, shape, autojunk=False).ratio()

    rules = [
        f"wanted: a plain integer, without zeros in front, below 2^63, not {part[:40]!r}"
        for part, number in zip(parts, meant, strict=True)
        if number is not None and not (_plain(part) and number in IDS)
    ]
    given = iter(ids)
    pattern = max(PATHS, key=likeness)
    words = ((next(given, "") or part) if part.isupper() else part for part in pattern)
    return "/" + "/".join(words), rules


def _nearest_query(query: str) -> tuple[str, list[str]]:
    """The query with the valid list arguments, each once and within bounds, and the rules."""
    nearest: dict[str, int] = {}
    known = set()
    rules = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        close = difflib.get_close_matches(name, ARGUMENTS, n=1, cutoff=0.5)
        if not close or close[0] in known:
            continue
        known.add(close[0])
        bounds = ARGUMENTS[close[0]]
        number = _meant(value)
        if number is not None:
            nearest[close[0]] = min(max(number, bounds[0]), bounds[-1])
        wanted = f"wanted: {close[0]} from {bounds[0]} to {bounds[-1]}"
        if number is None or number not in bounds:
            rules.append(f"{wanted}, not {value[:40]!r}")
        elif not _plain(value):
            rules.append(f"{wanted}, as a plain integer without zeros in front, not {value[:40]!r}")
    return "&".join(f"{name}={value}" for name, value in nearest.items()), rules


def _plain(text: str) -> bool:
    """Whether a number is in the API's notation."""
    return re.fullmatch(r"0|[1-9][0-9]*", text) is not None


def _meant(text: str) -> int | None:
    """The number that a text means, in any notation; None if it is not a number."""
    # Python refuses to parse numbers with thousands of digits.
    found = re.fullmatch(r"\s*([+-]?[0-9]{1,1000})\s*", text)
    return None if found is None else int(found[1])
