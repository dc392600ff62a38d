"""Numbers, times and text, formatted for notebooks and terminals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

# Terminal control characters, shown as Unicode's control pictures.
_PICTURES: dict[int, int | str | None] = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
}
# Bidirectional controls, which reorder the text that follows them on the line.
_BIDI = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_PLAIN = _PICTURES | {0x2028: "\n", 0x2029: "\n"} | dict.fromkeys(_BIDI)

# What Unicode calls default ignorable, and marks of interlinear notes. Without U+FE0F, which
# follows many emojis.
IGNORABLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN = re.compile(rf"[\s\u2800\ufe0f{IGNORABLE}]*")


def visible(text: str) -> str:
    """Text with control characters as pictures, except tabs and line ends."""
    return text.replace("\r\n", "\n").translate(_PICTURES)


def is_invisible(text: str) -> bool:
    """Whether the text is empty, blank, or has only invisible characters."""
    return _UNSEEN.fullmatch(visible(text)) is not None


def plain(text: str) -> str:
    """Text for a terminal: as `visible`, and without bidirectional controls."""
    return text.replace("\r\n", "\n").translate(_PLAIN)


def line(text: str) -> str:
    """Text as `plain`, on one line."""
    return " ".join(plain(text).split())


def amount(number: int, noun: str) -> str:
    """``1 message``, ``1,234 messages``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def some_ids(ids: Sequence[int], most: int = 10) -> str:
    """The first ids, and how many more there are."""
    more = f" and {len(ids) - most:,} more" if len(ids) > most else ""
    return ", ".join(map(str, ids[:most])) + more


def odd_values(by_column: Mapping[str, int]) -> str:
    """``180 values of another type, kept in extra: messages.created_at``; empty if none are."""
    if not by_column:
        return ""
    count = amount(sum(by_column.values()), "value")
    return f"{count} of another type, kept in extra: {', '.join(by_column)}"


def repaired_text(places: int) -> str:
    """A sentence about invalid text; empty if there was none."""
    if not places:
        return ""
    return (
        "the service sent text that is not valid UTF-8: U+FFFD replaces it in "
        f"{amount(places, 'place')}"
    )


def counts(by_name: Mapping[str, int | None]) -> str:
    """``2,991 snapshot, 9 counted``; a count that is not known is left out."""
    known = ((name, number) for name, number in by_name.items() if number is not None)
    return ", ".join(f"{number:,} {name}" for name, number in known)


def duration(seconds: float) -> str:
    """``140 ms``, ``1.84 s``, ``12.3 s``, ``2 min 05 s``, ``3 h 07 min``, ``2 d 04 h``."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.{2 if seconds < 9.995 else 1}f} s"
    whole = round(seconds)
    for size, unit, smaller, part in ((60, "min", 1, "s"), (3600, "h", 60, "min")):
        if whole < size * (60 if unit == "min" else 24):
            return f"{whole // size} {unit} {whole % size // smaller:02} {part}"
    return f"{whole // 86400} d {whole % 86400 // 3600:02} h"


CLOCKS_DIFFER = 300.0
"""Seconds by which two clocks may differ."""


def ago(seconds: float) -> str:
    """``just now``, ``12 minutes ago``, ``3 hours ago``, ``5 days ago``.

    A time that is still to come is not taken for now: one of the two clocks was wrong.
    """
    if seconds < -CLOCKS_DIFFER:
        return f"{duration(-seconds)} in the future, so a clock was wrong"
    for length, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        # From two days on in days, and likewise for hours.
        if seconds >= (2 * length if length > 60 else length):
            return f"{amount(int(seconds // length), unit)} ago"
    return "just now"


def full_name(*parts: object) -> str | None:
    """Forename, surname and name, those that there are; None if all are missing or blank."""
    return " ".join(part for part in parts if isinstance(part, str) and part.strip()) or None


def sender_name(sender: Any) -> str | None:
    """What the sender of a message is called; None if nothing says it."""
    if sender is None:
        return None
    names = ("forename", "surname", "name")
    return full_name(*(getattr(sender, each, sender.extra.get(each)) for each in names))


def size(count: int) -> str:
    """``0 B``, ``812 kB``, ``1.8 MB``, ``12.3 GB``; a kB is 1,000 bytes."""
    if count < 1000:
        return f"{count} B"
    value = count / 1000
    for unit in ("kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.{0 if unit == 'kB' else 1}f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def moment(time: datetime) -> str:
    """``2024-03-05 09:31:07.042 UTC``; a fraction of zero is left out."""
    utc = time.astimezone(UTC) if time.tzinfo else time
    timespec = "milliseconds" if utc.microsecond else "seconds"
    text = utc.replace(tzinfo=None).isoformat(sep=" ", timespec=timespec)
    return f"{text} UTC" if time.tzinfo else text


def minute(time: datetime) -> str:
    """``2024-03-05 09:31`` in UTC, for rows of a table or a conversation."""
    utc = time.astimezone(UTC) if time.tzinfo else time
    # Not strftime, which writes a year before 1000 without its zeros.
    return utc.replace(tzinfo=None).isoformat(sep=" ", timespec="minutes")


def yes_or_no(value: bool) -> str:
    """How a boolean is shown to people."""
    return "yes" if value else "no"
