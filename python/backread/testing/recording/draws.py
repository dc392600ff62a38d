"""Deterministic pseudo-random numbers, derived from a secret key and the value to replace."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["MIN_KEY_BYTES", "Draws", "Key"]

MIN_KEY_BYTES = 16
"""Shorter keys could be guessed."""

T = TypeVar("T")


class Key:
    """The secret key of a recording, which its fakes are derived from; never shown."""

    __slots__ = ("_digest",)

    def __init__(self, given: bytes | str | None = None) -> None:
        """Creates a key from at least `MIN_KEY_BYTES` bytes (else ValueError); random if None."""
        if given is None:
            self._digest = secrets.token_bytes(32)
            return
        material = given.encode() if isinstance(given, str) else given
        if not isinstance(material, bytes):
            raise TypeError(f"key: bytes, a text or None, not {type(given).__name__}")
        if len(material) < MIN_KEY_BYTES:
            raise ValueError(
                f"key: {len(material)} bytes are too few; use {MIN_KEY_BYTES} or more, at random"
            )
        self._digest = hashlib.blake2b(material, digest_size=32).digest()

    def draws(self, purpose: str, value: str, length: int = 0) -> Draws:
        """The numbers for one value; ``length`` is the expected number of draws."""
        keyed = hashlib.blake2b(key=self._digest, person=purpose.encode())
        keyed.update(value.encode("utf-8", "surrogatepass"))
        return Draws(keyed.digest(), length)

    def __repr__(self) -> str:
        return "<Key>"

    def __reduce__(self) -> str:
        raise TypeError("the key of a recording cannot be pickled")


class Draws:
    """A sequence of pseudo-random numbers from a seed."""

    __slots__ = ("_at", "_block", "_pool", "_seed", "_size")

    def __init__(self, seed: bytes, length: int) -> None:
        self._seed = seed
        self._size = 64 + 4 * length
        self._block = 0
        self._pool = b""
        self._at = 0

    def below(self, bound: int) -> int:
        """A number from 0 to bound - 1; bound is at most 2**64."""
        width = 4 if bound <= 1 << 16 else 12
        if self._at + width > len(self._pool):
            seed = self._seed + self._block.to_bytes(4, "big")
            self._pool = hashlib.shake_256(seed).digest(self._size)
            self._block += 1
            self._at = 0
        number = int.from_bytes(self._pool[self._at : self._at + width], "big")
        self._at += width
        return number % bound

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]
