"""What fakes are drawn from: a key, and the value that each stands for."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["LEAST_KEY", "Draws", "Key"]

LEAST_KEY = 16
"""Bytes of a key that is given; a shorter one could be guessed."""

T = TypeVar("T")


class Key:
    """The secret of a recording: with it, equal values have equal fakes. It shows nowhere."""

    __slots__ = ("_digest",)

    def __init__(self, given: bytes | str | None = None) -> None:
        """From what is given, `LEAST_KEY` bytes or more (else ValueError); at random without."""
        if given is None:
            self._digest = secrets.token_bytes(32)
            return
        material = given.encode() if isinstance(given, str) else given
        if not isinstance(material, bytes):
            raise TypeError(f"key: bytes, a text or None, not {type(given).__name__}")
        if len(material) < LEAST_KEY:
            raise ValueError(
                f"key: {len(material)} bytes are too few; take {LEAST_KEY} or more, at random"
            )
        self._digest = hashlib.blake2b(material, digest_size=32).digest()

    def draws(self, purpose: str, value: str, length: int = 0) -> Draws:
        """Chances for one value, always the same for it; ``length`` is how many are expected."""
        keyed = hashlib.blake2b(key=self._digest, person=purpose.encode())
        keyed.update(value.encode("utf-8", "surrogatepass"))
        return Draws(keyed.digest(), length)

    def __repr__(self) -> str:
        return "<Key>"

    def __reduce__(self) -> str:
        raise TypeError("the key of a recording does not travel")


class Draws:
    """A row of numbers that look random and are not."""

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
