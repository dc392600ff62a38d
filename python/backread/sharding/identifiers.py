"""Packs ids compactly: as differences, which compress well if ids are close together."""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise

__all__ = ["count_packed", "pack", "unpack"]

# Differences fit 64 bits too, since ids are from 0 to 2**63 - 1.
SIGNED = "q"
BYTES = 8

PIECE = 2**20
"""The most bytes that are unpacked at once to count ids."""


def pack(ids: Sequence[int]) -> bytes:
    """The ids, 0 or more each and below 2**63, in their order."""
    steps = array(SIGNED, [*ids[:1], *(later - earlier for earlier, later in pairwise(ids))])
    return zlib.compress(_little_endian(steps).tobytes(), level=9)


def count_packed(packed: bytes) -> int:
    """The number of packed ids; ValueError for other bytes.

    A few bytes of an untrusted shard may unpack to a thousand times as many, so nothing is kept.
    """
    unpacking = zlib.decompressobj()
    size, rest = 0, packed
    try:
        while not unpacking.eof:
            piece = unpacking.decompress(rest, PIECE)
            size, rest = size + len(piece), unpacking.unconsumed_tail
            if not piece and not unpacking.eof:
                raise ValueError("they are cut off")
    except (ValueError, zlib.error) as error:
        raise ValueError(f"these bytes are not packed ids: {error}") from None
    if size % BYTES or unpacking.unused_data:
        raise ValueError("these bytes are not packed ids: they do not end with an id")
    return size // BYTES


def unpack(packed: bytes) -> list[int]:
    """The ids that `pack` packed; ValueError for other bytes."""
    steps = array(SIGNED)
    try:
        steps.frombytes(zlib.decompress(packed))
    except (ValueError, zlib.error) as error:
        raise ValueError(f"these bytes are not packed ids: {error}") from None
    return list(accumulate(_little_endian(steps)))


def _little_endian(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
