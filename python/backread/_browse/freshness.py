"""How old the data of a mirror is, and what is proved of it, in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from backread._display.words import ago, amount, counts, moment
from backread.mirror.published.snapshot_reader import SnapshotReader
from backread.mirror.published.status import status_sentences
from backread.mirror.published.views import LISTS
from backread.mirror.summary import LastRun, read_last_run
from backread.models import MEANINGS

__all__ = ["Freshness", "read_freshness"]

WEAKEST_FIRST = ("uncertified", "linked", "counted", "snapshot")


@dataclass(frozen=True, slots=True)
class Freshness:
    """What the header says.

    ``proof`` says what is proved of all lists: those of messages, and the one of users.
    ``details`` are sentences. The times of `age` are relative to the time when it is called.
    """

    run: LastRun | None
    kind: Literal["proved", "unproved"]
    proof: str
    details: tuple[str, ...]

    def age(self) -> str:
        """``Synced 2 hours ago``."""
        if self.run is None:
            return "Never synced to an end"
        seconds = (datetime.now(UTC) - self.run.at).total_seconds()
        return f"Synced {'in part ' if self.run.state == 'partial' else ''}{ago(seconds)}"


def read_freshness(reader: SnapshotReader) -> Freshness:
    """The age and the certificates of the newest snapshot."""
    cursor = reader.snapshot().cursor
    lists = dict(reader.rows(cursor, LISTS, []))
    never = lists.pop("never read", 0)
    unproved = lists.get("uncertified", 0) + never
    total = sum(lists.values()) + never
    run = read_last_run(reader, cursor)
    users, reason = ("uncertified", None) if run is None else (run.certificate, run.reason)
    details = []
    if run is not None:
        details.append(
            f"The last sync that read something ended {moment(run.at.replace(microsecond=0))}."
        )
    if run is not None and run.state == "partial":
        left = f" with {amount(run.lists_left, 'message list')} left" if run.lists_left else ""
        details.append(f"Its budget ended it{left}; the next sync continues.")
    details.append(f"The list of users: {users}{f' ({reason})' if reason else ''}.")
    if total:
        by_strength = {name: lists[name] for name in reversed(WEAKEST_FIRST) if name in lists}
        by_strength |= {name: each for name, each in lists.items() if name not in WEAKEST_FIRST}
        counted = counts(by_strength)
        details.append(
            f"{amount(total, 'list')} of messages: {counted}"
            + (f"{', ' if counted else ''}{never:,} never read" if never else "")
            + "."
        )
    details += [
        f"{name.capitalize()}: {MEANINGS[name]}."
        for name in reversed(WEAKEST_FIRST)
        if name in MEANINGS and name in (users, *lists)
    ]
    details += status_sentences(reader)
    if unproved:
        proof = f"{unproved:,} of {amount(total, 'message list')} not proved"
    elif users == "uncertified":
        proof = "list of users not proved"
    else:
        held = {users, *lists}
        weakest = next((each for each in WEAKEST_FIRST if each in held), users)
        return Freshness(
            run, "proved", f"every list proved complete ({weakest} or better)", tuple(details)
        )
    return Freshness(run, "unproved", proof, tuple(details))
