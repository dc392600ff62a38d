"""Fake ids: deterministic, in the order of the real ones, with other distances."""

from __future__ import annotations

from collections import OrderedDict

from backread.testing.recording.draws import Key

__all__ = ["LARGEST_ID", "Identifiers"]

# Ends of the ranges of real ids and of their fakes. Each range of fakes is larger than that of the
# real ids, so that distances can change.
BANDS = (
    (1 << 31, 1 << 40),
    (1 << 44, 1 << 53),
    (1 << 62, (1 << 62) + (1 << 61)),
    ((1 << 62) + (1 << 60), 1 << 63),
)
LARGEST_ID = BANDS[-1][0] - 1
"""The largest id that has a fake."""

CACHE_SIZE = 100_000


class Identifiers:
    """Order-preserving fakes of ids; equal ids have equal fakes.

    The range of real ids is halved until one id is left. Each time, the range of fakes is cut at a
    pseudo-random place that leaves enough fakes for each half. So a fake depends only on the key
    and the id.
    """

    __slots__ = ("_cuts", "_key", "_known")

    def __init__(self, key: Key) -> None:
        self._key = key
        # Senders repeat, and neighbouring ids share most of their cuts.
        self._known: dict[int, int] = {}
        self._cuts: OrderedDict[tuple[int, int], int] = OrderedDict()

    def fake(self, number: int) -> int:
        """The fake of an id from 0 to `LARGEST_ID`."""
        known = self._known.get(number)
        if known is None:
            if len(self._known) >= CACHE_SIZE:
                self._known.clear()
            known = self._known[number] = self._compute(number)
        return known

    def _compute(self, number: int) -> int:
        low = fake_low = 0
        high, fake_high = BANDS[-1]
        for end, fake_end in BANDS:
            if number < end:
                high, fake_high = end, fake_end
                break
            low, fake_low = end, fake_end
        size = 1 << (high - low - 1).bit_length()
        # The size is a power of two, so the upper half may be partly or wholly empty.
        while size > 1:
            size //= 2
            middle = low + size
            if middle >= high:
                continue
            cut = self._cut(low, middle, high, fake_low, fake_high)
            if number < middle:
                high, fake_high = middle, cut
            else:
                low, fake_low = middle, cut
        return fake_low + self._below(f"at {low}", fake_high - fake_low)

    def _cut(self, low: int, middle: int, high: int, fake_low: int, fake_high: int) -> int:
        known = self._cuts.get((low, high))
        if known is not None:
            return known
        spare = (fake_high - fake_low) - (high - low)
        # Each half gets between a quarter and three quarters of the spare fakes.
        lower = spare // 4 + self._below(f"cut {low} {high}", spare // 2 + 1)
        cut = fake_low + (middle - low) + lower
        self._cuts[low, high] = cut
        if len(self._cuts) > CACHE_SIZE:
            self._cuts.popitem(last=False)
        return cut

    def _below(self, what: str, bound: int) -> int:
        return self._key.draws("id", what).below(bound)
