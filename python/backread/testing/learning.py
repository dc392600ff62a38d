"""A dialect from what a probe measured: `learn`, and what the mock cannot do like the service."""

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
    """What `learn` made of a profile.

    ``dialect`` is nearest to it. ``left_out`` says in words, by the path of the finding
    (``"http.compression"``), what no switch of the mock can do like the service: code that passes
    its tests against the mock may meet that all the same.
    """

    dialect: Dialect
    left_out: dict[str, str] = field(hash=False)

    def __str__(self) -> str:
        """The dialect in the grammar of ``backread mock --dialect``."""
        return str(self.dialect)


def learn(profile: ServiceProfile, *, total_users: int | None = None) -> Learned:
    """The dialect of the mock that is nearest to what a probe measured.

    Each switch that a finding decides is set by it; the others are as documented. A dialect says
    nothing of how many requests a second are answered, and neither does a profile. ``total_users``
    is how many users the service has, where that is known: it tells a ``total`` that stops at a
    number (``capped``) from one that is too low throughout.
    """
    switches, left_out = switches_like(profile, total_users=total_users)
    return Learned(Dialect("documented", **switches), left_out)
