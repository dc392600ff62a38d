"""Differences between two probes, except those that sampling explains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from backread._profile.findings import FieldProfile, Follows
from backread._profile.text import NO_ORDER, finding
from backread.models import _refuse_assignment

if TYPE_CHECKING:
    from backread.profile import ServiceProfile

__all__ = ["Difference", "changes"]

CHANCE = 0.001
"""The significance level: a difference likelier than this by chance is not reported."""

FEWER = 4
"""One row in this many is assumed to have a sender of a given kind, or a custom property."""

GROUPS = {"users", "messages", "refusals", "http"}
"""Their fields are separate findings."""

# Sets of names: only additions count, since a sample may lack rare ones.
GROWING = {"sender_types", "http.rate_limit_headers"}


@dataclass(frozen=True, slots=True)
class Difference:
    """One finding that changed from ``was`` to ``now``, from `ServiceProfile.differences`.

    ``path`` names the finding (``"users.order"``), ``note`` explains it in words, if
    needed. ``str()`` is the line that ``backread probe --against`` prints.
    """

    path: str
    was: Any = field(hash=False)
    now: Any = field(hash=False)
    note: str | None = None

    def __str__(self) -> str:
        text = f"{self.path}: was {finding(self.was)}, is {finding(self.now)}"
        return f"{text} ({self.note})" if self.note else text


# As for the records of backread.models.
Difference.__setattr__ = _refuse_assignment  # type: ignore[method-assign]


def changes(earlier: ServiceProfile, later: ServiceProfile) -> Iterator[Difference]:
    """One for each finding that the earlier probe measured and that is different now."""
    leaves = [leaf for leaf in earlier.differs(later) if not leaf.startswith("fields.")]
    for path in sorted({_finding(leaf) for leaf in leaves}):
        yield from _compare(path, earlier, later)
    yield from _all_fields(earlier, later)


def _finding(leaf: str) -> str:
    parts = leaf.split(".")
    return ".".join(parts[: 2 if parts[0] in GROUPS else 1])


def _compare(path: str, earlier: ServiceProfile, later: ServiceProfile) -> Iterator[Difference]:
    was, now = attrgetter(path)(earlier), attrgetter(path)(later)
    if was is None and earlier.notes.get(path) != NO_ORDER:
        return
    if now is None and later.notes.get(path) != NO_ORDER:
        yield Difference(path, was, None, later.notes.get(path, "not measured"))
    elif isinstance(was, Follows) and isinstance(now, Follows):
        if not _by_chance(1 - was.share, was.users, 1 - now.share, now.users):
            yield Difference(f"{path}.holds", was.holds, now.holds)
    elif path in GROWING and isinstance(was, tuple) and isinstance(now, tuple):
        if new := sorted(set(now) - set(was)):
            yield Difference(path, was, now, f"new: {', '.join(new)}")
    else:
        yield Difference(path, was, now)


# --- fields ---------------------------------------------------------------------------------------


def _all_fields(earlier: ServiceProfile, later: ServiceProfile) -> Iterator[Difference]:
    for kind in sorted(earlier.fields.keys() | later.fields.keys()):
        was, now = earlier.fields.get(kind), later.fields.get(kind)
        if was is None or now is None:
            # A sample without such an object proves nothing; sender types are a separate finding.
            continue
        counts = _objects(earlier, kind), _objects(later, kind)
        for name in sorted(was.keys() | now.keys()):
            yield from _field(f"fields.{kind}.{name}", was.get(name), now.get(name), counts)


def _field(
    path: str, was: FieldProfile | None, now: FieldProfile | None, counts: tuple[int, int]
) -> Iterator[Difference]:
    if was is None and now is not None:
        yield Difference(path, None, _types(now), "new")
    elif now is None and was is not None:
        if not _by_chance(1 - was.missing_share, counts[0], 0.0, counts[1]):
            yield Difference(path, _types(was), None, "gone")
    elif was is not None and now is not None:
        new = set(now.types) - set(was.types)
        # The type of a field that was always null is unknown.
        if new and was.types:
            yield Difference(f"{path}.types", was.types, now.types)
        for share in ("null_share", "missing_share"):
            before, after = getattr(was, share), getattr(now, share)
            if (before > 0) != (after > 0) and not _by_chance(before, counts[0], after, counts[1]):
                yield Difference(f"{path}.{share}", before, after)


def _types(found: FieldProfile) -> tuple[str, ...]:
    return found.types or ("null",)


def _objects(profile: ServiceProfile, kind: str) -> int:
    """The approximate number of objects of this kind in the sample."""
    if kind == "page":
        return profile.http.statuses.get(200, 0) // 2
    if kind in ("user", "message"):
        return profile.users.rows if kind == "user" else profile.messages.rows
    if kind == "user_attribute":
        return profile.users.rows // FEWER
    # Other senders are of many kinds, each with different fields.
    return 0 if kind == "other_sender" else profile.messages.rows // FEWER


def _by_chance(before: float, rows_before: int, after: float, rows_after: int) -> bool:
    """Whether one sample may lack by chance what a share of the other one has."""
    if before > 0 and after > 0:
        return True
    share, rows = (before, rows_after) if before > 0 else (after, rows_before)
    return (1 - share) ** rows > CHANCE
