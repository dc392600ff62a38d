"""Ids in place of ids: in the same order, at other distances, each always the same."""

from __future__ import annotations

from collections import OrderedDict

from backread.testing.recording.draws import Key

__all__ = ["LARGEST_ID", "Identifiers"]

# Ids below the first number become ids below the second; those of each band follow those before.
# A band has room for more ids than there are, so that no distance remains.
BANDS = (
    (1 << 31, 1 << 40),
    (1 << 44, 1 << 53),
    (1 << 62, (1 << 62) + (1 << 61)),
    ((1 << 62) + (1 << 60), 1 << 63),
)
LARGEST_ID = BANDS[-1][0] - 1
"""The largest id that has a fake."""

MOST_REMEMBERED = 100_000


class Identifiers:
    """The fakes of ids: `fake` keeps their order, and what is equal.

    A range of ids is halved, and its fakes are parted by chance, each part at least as large as its
    half; and so on, until one id is left. So a fake needs the key and its id alone.
    """

    __slots__ = ("_key", "_known", "_parts")

    def __init__(self, key: Key) -> None:
        self._key = key
        # Senders come again and again, and neighbours share most of their cuts.
        self._known: dict[int, int] = {}
        self._parts: OrderedDict[tuple[int, int], int] = OrderedDict()

    def fake(self, number: int) -> int:
        """The fake of an id from 0 to `LARGEST_ID`."""
        known = self._known.get(number)
        if known is None:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            known = self._known[number] = self._drawn(number)
        return known

    def _drawn(self, number: int) -> int:
        low = room_low = 0
        high, room_high = BANDS[-1]
        for end, room_end in BANDS:
            if number < end:
                high, room_high = end, room_end
                break
            low, room_low = end, room_end
        size = 1 << (high - low - 1).bit_length()
        # Halves of a power of two, the last of which may be empty in part.
        while size > 1:
            size //= 2
            middle = low + size
            if middle >= high:
                continue
            cut = self._cut(low, middle, high, room_low, room_high)
            if number < middle:
                high, room_high = middle, cut
            else:
                low, room_low = middle, cut
        return room_low + self._below(f"at {low}", room_high - room_low)

    def _cut(self, low: int, middle: int, high: int, room_low: int, room_high: int) -> int:
        known = self._parts.get((low, high))
        if known is not None:
            return known
        spare = (room_high - room_low) - (high - low)
        # A half gets a quarter of what is to spare, and by chance up to three.
        lower = spare // 4 + self._below(f"cut {low} {high}", spare // 2 + 1)
        cut = room_low + (middle - low) + lower
        self._parts[low, high] = cut
        if len(self._parts) > MOST_REMEMBERED:
            self._parts.popitem(last=False)
        return cut

    def _below(self, what: str, bound: int) -> int:
        return self._key.draws("id", what).below(bound)
