"""`learn`: derives a dialect from a probe's results, with what the mock cannot imitate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backread.testing.dialect import Dialect
from backread.testing.likeness import switches_like

if TYPE_CHECKING:
    from backread.profile import ServiceProfile

__all__ = ["Learned", "learn"]


@dataclass(frozen=True, slots=True)
class Learned:
    """The result of `learn`.

    ``dialect`` is nearest to the profile. ``left_out`` says in words, by the path of the finding
    (``"http.compression"``), what no switch of the mock can imitate: code that passes its tests
    against the mock may still encounter it.
    """

    dialect: Dialect
    left_out: dict[str, str] = field(hash=False)

    def __str__(self) -> str:
        """The dialect in the grammar of ``backread mock --dialect``."""
        return str(self.dialect)


def learn(profile: ServiceProfile, *, total_users: int | None = None) -> Learned:
    """The dialect of the mock that is nearest to what a probe measured.

    Findings decide their switches; the others are as documented. Neither a profile nor a dialect
    covers the service's rate limit. ``total_users`` is the service's number of users, if known: it
    distinguishes a ``total`` that stops at a number (``capped``) from one that is always too low.
    """
    switches, left_out = switches_like(profile, total_users=total_users)
    return Learned(Dialect("documented", **switches), left_out)
