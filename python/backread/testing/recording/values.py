"""Replaces JSON values with fakes of the same shape."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote

from backread.testing.recording.draws import Key
from backread.testing.recording.identifiers import LARGEST_ID, Identifiers
from backread.testing.recording.text import fake_characters, fake_text, leaks

__all__ = ["Fakes"]

# As for a probe: names that do not match may contain data.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.$:-]{0,63}")
MOST_NAMES = 200
"""The most names that are not replaced; with more, the keys are probably data."""
MOST_WORDS = 16
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.$:-]{0,31}")
ID_NAME = re.compile(r"(?:.*[_-])?ids?|[a-z]\w*I[dD]s?", re.DOTALL)

# From the beginning of a word and back no further, or a long word without an @ would take quadratic
# time.
EMAIL = re.compile(
    r"(?<![^\s@<>()\[\]:;,\"'])([^\s@<>()\[\]:;,\"']++)@"
    r"([^\s@<>()\[\]:;,\"']+[^\s@<>()\[\]:;,.\"'!?])"
)
URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,15})://([^/?#\s]*)([^\s<>\"]*)")
HEX = re.compile(r"(?=.*\d)[0-9a-fA-F]{8,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
INSTANT = re.compile(
    r"(\d{4}-\d{2}-\d{2})"
    r"(?:([T ])(\d{2}:\d{2}(?::\d{2})?)(\.\d{1,9})?(Z|[+-]\d{2}:?\d{2}| ?UTC)?)?"
)
DIGITS = "123456789"
NO_DIGITS = re.compile(f"[^{DIGITS}]*")
SCHEMES = {"http", "https", "ftp", "ftps", "ws", "wss"}
ENDINGS = re.compile(
    r"\.(?:html?|php|aspx?|jsp|jpe?g|png|gif|webp|svg|bmp|pdf|docx?|xlsx?|pptx?|csv|txt|zip|mp[34])$",
    re.IGNORECASE,
)
RESERVED = "example"
"""The top-level domain of all hosts, reserved for examples (RFC 2606)."""

CACHE_SIZE = 20_000
LONGEST_CACHED = 200

LARGEST = 1e308
"""Replaces infinity, which JSON does not have."""
SMALLEST = 1e-300
"""Replaces fakes that are too small for a float and would become 0."""

WEEK = 7 * 24 * 3600
WEEKS = (26, 520)
HOUR = 3600
SECOND = 10**9
"""In nanoseconds."""
SMALL = 10
"""Whole numbers below it are counts and ratings, and are not replaced."""


class Fakes:
    """Makes fakes of values; equal values have equal fakes throughout a recording."""

    __slots__ = ("_ids", "_key", "_known", "_names", "_shift", "_shift_nanoseconds", "_words")

    def __init__(self, key: Key) -> None:
        self._key = key
        self._ids = Identifiers(key)
        draws = key.draws("time", "shift")
        weeks = WEEKS[0] + draws.below(WEEKS[1] - WEEKS[0])
        # Into the past, so that no time is in the future; by about whole weeks, so that weekdays
        # and times of day remain plausible.
        self._shift = timedelta(seconds=weeks * WEEK + draws.below(2 * HOUR) - HOUR)
        # Of times with a fraction only: the fraction would be known from the original.
        self._shift_nanoseconds = draws.below(SECOND)
        self._known: dict[str, str] = {}
        self._names: set[str] = set()
        self._words: set[str] = set()

    def value(self, value: Any, name: str = "") -> Any:
        """The fake of any JSON value; ``name`` is its key, or the key of its list."""
        if isinstance(value, dict):
            return {self.name(key): self.value(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(each, name) for each in value]
        if isinstance(value, str):
            # Python reads no integers of more than 4,300 digits, and ids have fewer than 20.
            if (
                ID_NAME.fullmatch(name)
                and value.isascii()
                and value.isdecimal()
                and len(value) < 20
            ):
                return str(self.number(int(value), name)).zfill(
                    len(value) if value[0] == "0" else 0
                )
            return self.string(value)
        if isinstance(value, bool) or value is None:
            return value
        return self.number(value, name)

    def name(self, name: str) -> str:
        """The fake of an object's key; those that look like names of fields are not replaced."""
        if NAME.fullmatch(name):
            if len(self._names) < MOST_NAMES:
                self._names.add(name)
            if name in self._names:
                return name
        return fake_characters(name, self._key.draws("name", name, len(name)))

    @property
    def kept(self) -> set[str]:
        """The names and words that were not replaced, so far."""
        return self._names | self._words

    def word(self, value: Any) -> Any:
        """The fake of an enumerated value such as ``sender_type``; words are not replaced."""
        if isinstance(value, str) and WORD.fullmatch(value):
            if len(self._words) < MOST_WORDS:
                self._words.add(value)
            if value in self._words:
                return value
        return self.value(value)

    def moment(self, moment: datetime) -> datetime:
        """A time of the recording, shifted like the rows': the true one would reveal the shift."""
        return moment - self._shift

    def identifier(self, number: int) -> int:
        """The fake of an id from 0 to `LARGEST_ID`."""
        return self._ids.fake(number)

    def number(self, value: float, name: str = "") -> float:
        """The fake of a number: an id if its name says so, else a number with as many digits."""
        if isinstance(value, int):
            if ID_NAME.fullmatch(name) and 0 <= value <= LARGEST_ID:
                return self._ids.fake(value)
            return value if -SMALL < value < SMALL else int(self._digits(str(value)))
        if not math.isfinite(value):
            # A number too large for a float is parsed as infinity.
            return math.copysign(LARGEST, value)
        mantissa, exponent, power = repr(value).partition("e")
        fake = float(self._digits(mantissa) + exponent + power)
        if fake == 0 != value:
            return math.copysign(SMALLEST, value)
        return fake if math.isfinite(fake) else math.copysign(LARGEST, value)

    def string(self, text: str) -> str:
        """The fake of a text, by its format."""
        if not text:
            return text
        known = self._known.get(text)
        if known is None:
            known = self._string(text)
            if len(text) <= LONGEST_CACHED:
                if len(self._known) >= CACHE_SIZE:
                    self._known.clear()
                self._known[text] = known
        return known

    def _string(self, text: str) -> str:
        if INSTANT.fullmatch(text):
            shifted = self._instant(text)
            if shifted is not None:
                return shifted
        if EMAIL.fullmatch(text):
            return self._email(text)
        if URL.fullmatch(text):
            return self._url(text)
        if ADDRESS.fullmatch(text):
            draws = self._key.draws("address", text)
            return f"10.{draws.below(256)}.{draws.below(256)}.{draws.below(254) + 1}"
        if HEX.fullmatch(text):
            return self._hex(text)
        return self._prose(text)

    # --- kinds of text ----------------------------------------------------------------------------

    def _prose(self, text: str) -> str:
        """Fakes prose, and the URLs and addresses in it."""
        made: list[str] = []
        end = 0
        for found in re.finditer(f"{URL.pattern}|{EMAIL.pattern}", text):
            made += (self._fake_words(text[end : found.start()], text), self.string(found[0]))
            end = found.end()
        return "".join([*made, self._fake_words(text[end:], text)])

    def _fake_words(self, part: str, whole: str) -> str:
        # Depends on the whole text, so that a word has other fakes in other texts.
        return fake_text(part, self._key.draws("text", f"{part}\0{whole}", len(part)))

    def _instant(self, text: str) -> str | None:
        """A timestamp shifted into the past; None if the text is not a valid one."""
        found = INSTANT.fullmatch(text)
        if found is None:
            return None
        day, between, clock, fraction, zone = found.groups()
        try:
            moment = datetime.fromisoformat(f"{day}T{clock or '12:00'}").replace(tzinfo=UTC)
            moment -= self._shift
            if fraction:
                nanoseconds = int(fraction[1:].ljust(9, "0")) - self._shift_nanoseconds
                moment += timedelta(seconds=nanoseconds // SECOND)
                # Cut off, which leaves the distances of times with as many digits.
                fraction = f".{nanoseconds % SECOND:09}"[: len(fraction)]
        except (ValueError, OverflowError):
            return None
        shown = moment.isoformat()
        date, time = shown[:10], shown[11:19]
        if clock is None:
            return date
        return f"{date}{between}{time[: len(clock)]}{fraction or ''}{zone or ''}"

    def _email(self, text: str) -> str:
        local, _, domain = text.rpartition("@")
        folded = local.casefold()
        fake = fake_characters(folded, self._key.draws("local", f"{folded}@{domain.casefold()}"))
        if len(fake) == len(local):
            pairs = zip(fake, local, strict=True)
            fake = "".join(new.upper() if old.isupper() else new for new, old in pairs)
        return f"{fake}@{self._host(domain)}"

    def _host(self, host: str) -> str:
        """A fake host name below `RESERVED`; case does not matter."""
        name, colon, port = host.partition(":")
        if not name:
            return host
        folded = name.casefold()
        labels = "".join(each if each in ".-" or each.isalnum() else "x" for each in folded)
        label, dot, _ = labels.rpartition(".")
        label = label if dot else labels
        fake = fake_characters(label, self._key.draws("host", folded, len(folded)))
        return f"{fake}.{RESERVED}" + (f"{colon}{port}" if port.isdecimal() else "")

    def _url(self, text: str) -> str:
        found = URL.fullmatch(text)
        if found is None:
            return self._prose(text)
        scheme, authority, rest = found.groups()
        scheme = scheme if scheme.lower() in SCHEMES else "https"
        user, at, host = authority.rpartition("@")
        fake_host = self._host(host)
        if at:
            fake_host = f"{fake_characters(user, self._key.draws('user', user))}@{fake_host}"
        made: list[str] = []
        so_far = host.casefold()
        # Each part depends on those before it, so that URLs with a common start keep one.
        for part in re.split(r"([/?&#=;]+)", rest):
            so_far += part
            made.append(part if re.fullmatch(r"[/?&#=;]*", part) else self._part(part, so_far))
        return f"{scheme}://{fake_host}{''.join(made)}"

    def _part(self, part: str, so_far: str) -> str:
        ending = ENDINGS.search(part)
        tail = ending[0] if ending else ""
        stem = unquote(part[: len(part) - len(tail)])
        draws = self._key.draws("part", so_far, len(stem))
        return quote(fake_characters(stem, draws), safe="+,:@!$'()*~") + tail.lower()

    def _hex(self, text: str) -> str:
        draws = self._key.draws("hex", text.lower(), len(text))

        def digit(old: str) -> str:
            if old.isdecimal():
                return draws.pick("0123456789")
            letter = draws.pick("abcdef")
            return old if old == "-" else letter.upper() if old.isupper() else letter

        for _ in range(16):
            fake = "".join(map(digit, text))
            if not leaks(fake, text):
                return fake
        return self._prose(text)

    def _digits(self, text: str) -> str:
        """Replaces the digits of a number except zeros, so that it is as long and as round."""
        draws = self._key.draws("digits", text, len(text))
        fake = text
        while fake == text and not NO_DIGITS.fullmatch(text):
            fake = "".join(draws.pick(DIGITS) if each in DIGITS else each for each in text)
        return fake
