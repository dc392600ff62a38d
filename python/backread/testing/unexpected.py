"""Requests that no client of the service should send, and what was nearest to each."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from backread.testing.journal import JournalEntry

__all__ = ["UnexpectedRequestError"]

MOST_SHOWN = 10
PATHS = (
    ("external", "users"),
    ("external", "users", "USER_ID"),
    ("external", "users", "USER_ID", "messages"),
    ("external", "users", "USER_ID", "messages", "MESSAGE_ID"),
)
ARGUMENTS = {"offset": range(2**63), "limit": range(1, 100)}


class UnexpectedRequestError(AssertionError):
    """A lane was asked what the interface does not allow: a slip in the code under test.

    ``entries`` are the requests. The text has each with its status, why it was refused, and the
    nearest that the interface allows.
    """

    def __init__(self, entries: tuple[JournalEntry, ...], vendor: str) -> None:
        super().__init__(entries, vendor)
        self.entries = entries
        self.vendor = vendor

    def __str__(self) -> str:
        count = len(self.entries)
        noun = "1 request was" if count == 1 else f"{count} requests were"
        lines = [f"{noun} sent that the interface does not allow"]
        for entry in self.entries[:MOST_SHOWN]:
            lines.append(f"{entry} ({entry.unexpected})")
            lines += (f"    {line}" for line in _nearest(entry, self.vendor))
        if count > MOST_SHOWN:
            lines.append(f"and {count - MOST_SHOWN} more")
        return "\n".join(lines)


def _nearest(entry: JournalEntry, vendor: str) -> list[str]:
    """What was wanted in place of a request, in words or as a comparison."""
    match entry.unexpected:
        case "unauthorized":
            return ["wanted: the header Authorization: Bearer SECRET, with the secret of a lane"]
        case "not_acceptable":
            return [f"wanted: the header Accept: application/vnd.{vendor}.v1+json"]
        case "wrong_method":
            return [f"wanted: GET, not {entry.method}"]
    path, query = urlsplit(entry.path)[2:4]
    if entry.unexpected == "unknown_path":
        return _compared(path, _nearest_path(path))
    wanted, rules = _nearest_query(query) if path.endswith(("/users", "/messages")) else ("", [])
    return [*_compared(f"{path}?{query}", f"{path}?{wanted}" if wanted else path), *rules]


def _compared(sent: str, wanted: str) -> list[str]:
    if sent == wanted:
        return []
    lines = difflib.ndiff([sent], [wanted])
    # The marks of ndiff, in words; those below a line stay below it.
    words = {"- ": "sent:    ", "+ ": "nearest: ", "? ": "         "}
    return [words[line[:2]] + line[2:].rstrip() for line in lines]


def _nearest_path(path: str) -> str:
    """The path of the interface that is most like this one, with its numbers."""
    parts = [part for part in path.split("/") if part]

    def filled(pattern: tuple[str, ...]) -> str:
        numbers = iter([part for part in parts if part.isdecimal()])
        words = (next(numbers, part) if part.isupper() else part for part in pattern)
        return "/" + "/".join(words)

    def likeness(candidate: str) -> float:
        return difflib.SequenceMatcher(None, path, candidate, autojunk=False).ratio()

    return max((filled(pattern) for pattern in PATHS), key=likeness)


def _nearest_query(query: str) -> tuple[str, list[str]]:
    """The query with the arguments that a list has, each once, and rules for what they hold."""
    nearest: dict[str, str] = {}
    rules = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        close = difflib.get_close_matches(name, ARGUMENTS, n=1, cutoff=0.5)
        if not close or close[0] in nearest:
            continue
        nearest[close[0]] = value
        bounds = ARGUMENTS[close[0]]
        plain = value.isascii() and value.isdecimal() and len(value) < 20
        if not (plain and int(value) in bounds):
            rules.append(f"wanted: {close[0]} from {bounds[0]} to {bounds[-1]}, not {value!r:.40}")
    return "&".join(f"{name}={value}" for name, value in nearest.items()), rules
