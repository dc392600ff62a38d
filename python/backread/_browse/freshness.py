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

STRONGEST_FIRST = ("snapshot", "counted", "linked", "uncertified", "never read")


@dataclass(frozen=True, slots=True)
class Freshness:
    """What the header says.

    ``proof`` says what is proved of all lists: those of messages, and the one of users.
    ``details`` are sentences. The times of `age` are relative to the time when it is called.
    """

    run: LastRun | None
    kind: Literal["proved", "unproved"]
    proof: str
    details: list[str]

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
    total = sum(lists.values())
    run = read_last_run(reader, cursor)
    users, reason, details = "uncertified", None, []
    if run is not None:
        users, reason = run.certificate, run.reason
        ended = moment(run.at.replace(microsecond=0))
        details.append(f"The last sync that read something ended {ended}.")
        if run.state == "partial":
            left = f" with {amount(run.lists_left, 'message list')} left" if run.lists_left else ""
            details.append(f"Its budget ended it{left}; the next sync continues.")
    details.append(f"The list of users: {users}{f' ({reason})' if reason else ''}.")
    if total:
        by_strength = counts({name: lists[name] for name in STRONGEST_FIRST if name in lists})
        details.append(f"{amount(total, 'list')} of messages: {by_strength}.")
    held = [name for name in STRONGEST_FIRST if name in (users, *lists)]
    details += [f"{name.capitalize()}: {MEANINGS[name]}." for name in held if name in MEANINGS]
    details += status_sentences(reader)
    if unproved := lists.get("uncertified", 0) + lists.get("never read", 0):
        proof = f"{unproved:,} of {amount(total, 'message list')} not proved"
    elif users == "uncertified":
        proof = "list of users not proved"
    else:
        proof = f"every list proved complete ({held[-1]} or better)"
        return Freshness(run, "proved", proof, details)
    return Freshness(run, "unproved", proof, details)
