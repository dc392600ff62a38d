"""Packs ids compactly: as differences, which compress well if ids are close together."""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise

__all__ = ["pack", "unpack"]

# Differences fit 64 bits too, since ids are from 0 to 2**63 - 1.
SIGNED = "q"
BYTES = 8


def pack(ids: Sequence[int]) -> bytes:
    """The ids, 0 or more each and below 2**63, in their order."""
    steps = array(SIGNED, [*ids[:1], *(later - earlier for earlier, later in pairwise(ids))])
    return zlib.compress(_little_endian(steps).tobytes(), level=9)


def unpack(packed: bytes, count: int) -> list[int]:
    """The ids that `pack` packed; ValueError for other bytes, or if there are not ``count``.

    A few bytes of an untrusted shard may unpack to a thousand times as many; no more are unpacked
    than it says.
    """
    steps, unpacking = array(SIGNED), zlib.decompressobj()
    try:
        steps.frombytes(unpacking.decompress(packed, count * BYTES + 1))
    except (ValueError, zlib.error) as error:
        raise ValueError(f"these bytes are not packed ids: {error}") from None
    if len(steps) != count or unpacking.unused_data or unpacking.unconsumed_tail:
        raise ValueError(f"these bytes are not {count} packed ids")
    return list(accumulate(_little_endian(steps)))


def _little_endian(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
