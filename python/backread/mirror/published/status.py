"""What is proved of a mirror, what is not, how old each part is, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from typing import Any, Literal

from backread._client.hints import HintsEvidence, hints_evidence
from backread._display.html import card
from backread._display.words import amount, counts, duration, minute, odd_values
from backread._files.dataclass_json import ShortRepr, to_json_value
from backread.errors import MirrorError
from backread.mirror.published.snapshot_reader import SnapshotReader
from backread.mirror.published.views import FILES_COUNTED, LAST_READ, count_odd_values
from backread.mirror.store.engine import Rows, from_microseconds, timestamp
from backread.mirror.store.schema import ALL_USERS, READ_ALL

AUDIT_ENDED = """(lists_unverified = 0 AND
    (state = 'finished' OR (lists_to_audit > 0 AND lists_audited >= lists_to_audit)))"""
"""The condition for quick runs whose whole sample was read, and each change in it checked."""

DOUBT = 0.05
"""What is said with 95 % confidence is wrong in this share of the cases."""

MOST_NEEDED = 1e9
"""No mirror comes by more changes; as many are needed where hints move for all users."""

MOST_FAILED = 20
"""How many failed lists are named."""

LAST = f"""
SELECT run_id, mode, state, coalesce(certificate, 'uncertified') AS users_certificate,
    certificate_reason AS users_reason, nullif(max_staleness, 0) AS max_staleness, repaired_text,
    CASE state WHEN 'partial' THEN coalesce(lists_left, 0) ELSE 0 END AS "left",
    CASE mode WHEN 'quick' THEN lists_skipped ELSE 0 END AS skipped,
    audit_misses = 0 AND (mode <> 'quick' OR {AUDIT_ENDED}) AS audit_ok, epoch_us(as_of) AS as_of
FROM ({LAST_READ}) WHERE {ALL_USERS}
"""

# Users whom the newest run that read all lists did not find have no lists to read.
LISTS = f"""
CREATE OR REPLACE TEMP TABLE status_lists AS
WITH missed AS (
    SELECT max(run_id) AS run_id, max(started_at) AS at FROM runs
    WHERE audit_misses > 0 AND {ALL_USERS}
), skipping AS (
    SELECT max(runs.run_id) AS run_id FROM runs, missed
    WHERE mode = 'quick' AND runs.run_id < missed.run_id
)
SELECT users.id AS user_id, lists.run_id, kind, reason, checked_at, swept_at,
    coalesce(certificate, 'never read') AS certificate,
    coalesce(kind = 'gone' OR lists.run_id < (SELECT max(run_id) FROM runs WHERE {READ_ALL}), false)
        AS unlisted,
    coalesce(kind IN ('whole', 'end') AND certificate <> 'uncertified', false) AS proved,
    coalesce(checked_at < missed.at AND lists.run_id < skipping.run_id, false) AS doubtful
FROM users LEFT JOIN lists ON lists.user_id = users.id, missed, skipping
WHERE deleted_at IS NULL
"""


def read_evidence(rows: Rows) -> HintsEvidence:
    """The evidence of all runs."""
    return hints_evidence(
        rows(
            f"""
            SELECT hints_compared, hints_moved, changes_announced, changes_by_operators,
                audit_misses, {READ_ALL} AND lists_unverified = 0, coalesce(moved, false)
            FROM runs WHERE {ALL_USERS} OR moved ORDER BY run_id
            """
        )
    )


def evidence_sentence(rows: Rows) -> str:
    """Whether hints are trusted, and why."""
    evidence = read_evidence(rows)
    if evidence.is_trusted:
        [(since,)] = rows(
            f"SELECT strftime(min(started_at), '%-d %B %Y') FROM (SELECT started_at FROM runs "
            f"WHERE {ALL_USERS} OR moved ORDER BY run_id DESC LIMIT {evidence.runs})"
        )
        return (
            f"None of {evidence.announced:,} changes since {since} came unannounced (fewer than "
            f"{_most_of(evidence.announced)} do)."
        )
    if evidence.has_too_many_misses:
        return "Hints are not trusted: too many changes came unannounced."
    if evidence.needed > MOST_NEEDED:
        return "Hints are not trusted: they move for nearly all users, so that says nothing."
    return (
        f"Hints are not trusted yet: {evidence.announced:,} of {evidence.needed:,.0f} changes that "
        f"are needed were announced, {evidence.by_operators:,} of "
        f"{evidence.needed_by_operators:,.0f} of operators alone."
    )


def audit_sentence(rows: Rows, run_id: int) -> str | None:
    """What the audit of a quick run says; None for other runs."""
    [(mode, ended, skipped, drawn, audited, unverified, user_id)] = rows(
        f"SELECT mode, {AUDIT_ENDED}, lists_skipped, lists_to_audit, lists_audited, "
        f"lists_unverified, missed_user FROM runs WHERE run_id = {int(run_id)}"
    )
    if user_id is not None:
        return (
            f"The messages of user {user_id} had changed, and the user's updated_at and online_at "
            "had not moved."
        )
    if mode != "quick":
        return None
    if not ended:
        why = (
            f"{unverified:,} changes could not be checked by id"
            if unverified
            else f"of {drawn:,} lists drawn at random, {audited:,} were read"
        )
        return f"The audit did not end: {why}. So none of the skipped lists counts as trusted."
    if not skipped:
        return f"All {drawn:,} lists that could have been skipped were read."
    return (
        f"{audited:,} of {skipped + drawn:,} skipped lists were drawn at random and read: none "
        f"had changed; with 95 % confidence fewer than {_most_of(audited)} of the others "
        f"({ceil(_share(audited) * skipped):,}) have."
    )


def _share(tried: int) -> float:
    """The share of misses that is ruled out if none was found in ``tried`` lists."""
    return float(1 - DOUBT ** (1 / tried)) if tried else 1.0


def _most_of(tried: int) -> str:
    return f"{ceil(_share(tried) * 1_000) / 10:g} %"


@dataclass(frozen=True, slots=True)
class FailedList:
    """A message list that could not be read, or not to its end."""

    user_id: int
    kind: str
    reason: str | None
    checked_at: datetime | None


@dataclass(frozen=True, slots=True)
class StatusLine:
    """A fact, whether it is a problem, and what to do."""

    state: Literal["ok", "note", "problem"]
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class MirrorStatus(ShortRepr):
    """What the published snapshot of a mirror proves, and what to do about the rest.

    - ``folder``: its path. ``as_of``, UTC: the end of the newest run over all users that read
      something, which has ``run_id``, ``mode`` and ``state``. ``writer``: the process that is
      writing now, such as a sync, or None.
    - ``users`` and ``messages`` count rows that are not deleted. ``users_certificate`` is what was
      proved of the list of users, and ``users_reason`` why nothing.
    - ``lists``: how many message lists have each certificate, or were never read; of users who are
      listed. ``unlisted``: users whom the newest run that read all lists did not find.
    - ``skipped``: lists that the newest run skipped because their users had not moved; the oldest
      of them was read at ``skipped_since``. ``doubtful``: lists that were skipped before a miss
      was found, and not read since. ``overdue``: lists last read in full more than
      ``max_staleness`` seconds ago; the next one will be at ``next_due_at``.
    - ``unread``: lists that could not be read; ``partial``: lists not read to their end; ``failed``
      has the first 20 of both. ``left``: lists that the newest run did not reach.
    - ``files``: links to attachments, of messages that are not deleted; ``files_missing`` of them
      are not stored (all, unless `Mirror.fetch_files` is used), ``files_failed`` after an attempt.
    - ``rejects`` by table, ``odd_values`` and ``repaired_text`` (of the newest run) as in a
      `SyncReport`; so are ``audit`` and ``evidence``. ``audit_ok``: the newest run found no miss,
      and if it was quick, its audit ended.
    - ``ok``: every list is proved, and none is overdue, doubtful or unread.
    - ``lines``: all of this in sentences, with what to do.
    """

    folder: str
    as_of: datetime
    run_id: int
    mode: str
    state: str
    writer: str | None
    users: int
    messages: int
    users_certificate: str
    users_reason: str | None
    lists: dict[str, int] = field(hash=False)
    unlisted: int
    skipped: int
    skipped_since: datetime | None
    doubtful: int
    overdue: int
    next_due_at: datetime | None
    max_staleness: float | None
    unread: int
    partial: int
    left: int
    failed: tuple[FailedList, ...]
    files: int
    files_missing: int
    files_failed: int
    rejects: dict[str, int] = field(hash=False)
    odd_values: dict[str, int] = field(hash=False)
    repaired_text: int
    audit: str | None
    audit_ok: bool
    evidence: str

    _in_repr = ("run_id", "as_of", "users", "messages")

    @property
    def ok(self) -> bool:
        """True if every list is proved, and none is overdue, doubtful or unread."""
        return not any(line.state == "problem" for line in self.lines)

    @property
    def lines(self) -> tuple[StatusLine, ...]:
        """The facts in sentences, each with what to do."""
        return tuple(_lines(self))

    def to_dict(self) -> dict[str, Any]:
        """The status as a dict of JSON values, times in ISO 8601, with ``ok`` and ``lines``."""
        document: dict[str, Any] = to_json_value(self)
        return document | {"ok": self.ok, "lines": [to_json_value(line) for line in self.lines]}

    def _repr_html_(self) -> str:
        caption = f"MirrorStatus: run {self.run_id}, as of {minute(self.as_of)} UTC"
        rows = [(each.state, f"{each.text}; {each.advice}".rstrip("; ")) for each in self.lines]
        return card(caption, rows)


def read_status(
    reader: SnapshotReader,
    writer: str | None,
    max_staleness: float | None = None,
) -> MirrorStatus:
    """The status of the newest snapshot; see `Mirror.status`."""
    # All on one cursor, which has the temporary table.
    rows = reader.snapshot().rows

    def dicts(query: str) -> list[dict[str, Any]]:
        return [each for (each,) in rows(f"SELECT each FROM ({query}) AS each")]

    last = dicts(LAST)
    if not last:
        raise MirrorError(
            f"no run over all users has read anything into {reader.folder}; sync it without users"
        )
    facts = last[0]
    if max_staleness is not None:
        facts["max_staleness"] = max_staleness
    stale_after, run_id = facts["max_staleness"], facts["run_id"]
    quick = f"run_id < {run_id} AND proved" if facts["mode"] == "quick" else "false"
    seconds = "NULL" if stale_after is None else f"{stale_after:.0f}"
    due = f"swept_at + to_seconds({seconds}::BIGINT)"
    now = timestamp(datetime.now(UTC))
    rows(LISTS)
    [counted] = dicts(
        f"""
        SELECT count(*) FILTER (unlisted) AS unlisted,
            epoch_us(min(checked_at) FILTER (NOT unlisted AND {quick})) AS skipped_since,
            count(*) FILTER (NOT unlisted AND doubtful) AS doubtful,
            count(*) FILTER (NOT unlisted AND proved AND {due} < {now}) AS overdue,
            epoch_us(min({due}) FILTER (NOT unlisted AND {due} >= {now})) AS next_due_at,
            count(*) FILTER (NOT unlisted AND kind = 'unread') AS unread,
            count(*) FILTER (NOT unlisted AND kind = 'partial') AS partial,
            (SELECT count(*) FROM users WHERE deleted_at IS NULL) AS users,
            (SELECT count(*) FROM messages WHERE deleted_at IS NULL) AS messages
        FROM status_lists
        """
    )
    facts |= counted
    for name in ("as_of", "skipped_since", "next_due_at"):
        facts[name] = from_microseconds(facts[name])
    [(files, files_stored, files_failed)] = rows(FILES_COUNTED)
    lists = rows(
        "SELECT certificate, count(*) FROM status_lists WHERE NOT unlisted GROUP BY ALL "
        "ORDER BY count(*) DESC, certificate"
    )
    failed = rows(
        "SELECT user_id, kind, reason, epoch_us(checked_at) FROM status_lists WHERE NOT unlisted "
        f"AND kind IN ('unread', 'partial') ORDER BY kind DESC, user_id LIMIT {MOST_FAILED}"
    )
    return MirrorStatus(
        folder=str(reader.folder),
        writer=writer,
        **facts,
        lists=dict(lists),
        failed=tuple(
            FailedList(user_id, kind, reason, from_microseconds(at))
            for user_id, kind, reason, at in failed
        ),
        files=files,
        files_missing=files - files_stored,
        files_failed=files_failed,
        rejects=dict(rows("SELECT resource, count(*) FROM rejects GROUP BY ALL ORDER BY ALL")),
        odd_values=count_odd_values(rows),
        audit=audit_sentence(rows, run_id),
        evidence=evidence_sentence(rows),
    )


def status_sentences(reader: SnapshotReader) -> list[str]:
    """The status in sentences; none before the first run over all users that read something."""
    try:
        lines = read_status(reader, None).lines
    except MirrorError:
        return []
    return [f"{line.text}; {line.advice}" if line.advice else line.text for line in lines]


def _lines(status: MirrorStatus) -> Iterator[StatusLine]:
    def problem(number: int, text: str, advice: str) -> Iterator[StatusLine]:
        if number:
            yield StatusLine("problem", f"{amount(number, 'list')} {text}", advice)

    again = "the next sync tries again"
    reason = f": {status.users_reason}" if status.users_reason else ""
    yield StatusLine(
        "problem" if status.users_certificate == "uncertified" else "ok",
        f"{amount(status.users, 'user')}; the list of users is {status.users_certificate}{reason}",
        again if status.users_certificate == "uncertified" else "",
    )
    proved = {
        name: number
        for name, number in status.lists.items()
        if name not in ("uncertified", "never read")
    }
    yield StatusLine(
        "ok",
        f"{amount(status.messages, 'message')} in {amount(sum(status.lists.values()), 'list')}"
        + (f"; proved are {counts(proved)}" if proved else ""),
    )
    for each in status.failed:
        yield StatusLine(
            "problem",
            f"the list of user {each.user_id} "
            + ("could not be read" if each.kind == "unread" else "is half-read")
            + (f": {each.reason}" if each.reason and each.kind == "unread" else ""),
            again if each.kind == "unread" else "the next sync continues it",
        )
    yield from problem(
        status.unread + status.partial - len(status.failed),
        "more could not be read, or not to their end",
        "the table lists has all of them",
    )
    yield from problem(
        status.lists.get("uncertified", 0) - status.unread - status.partial,
        "not proved, the table lists says why",
        again,
    )
    never = status.lists.get("never read", 0)
    left = max(0, status.left - never)
    yield from problem(left, "left by the budget of the last run", "the next sync continues")
    yield from problem(never, "never read", "sync again")
    yield from problem(
        status.doubtful,
        "skipped before a change came unannounced, and not read since",
        "sync without --quick",
    )
    if status.max_staleness is not None:
        longer = f"for more than {duration(status.max_staleness)}"
        yield from problem(status.overdue, f"not read in full {longer}", "sync, and let it end")
    if status.skipped and status.skipped_since is not None:
        yield StatusLine(
            "ok",
            f"{amount(status.skipped, 'list')} skipped by the last run, read "
            f"{minute(status.skipped_since)} UTC or later",
        )
    if status.audit is not None:
        advice = "" if status.audit_ok else "hints are not trusted until there is new evidence"
        if status.mode == "quick" and not status.audit_ok:
            advice = "sync again, and let it end"
        yield StatusLine("ok" if status.audit_ok else "note", status.audit, advice)
    yield StatusLine("ok", status.evidence)
    if status.next_due_at is not None:
        yield StatusLine(
            "ok", f"by {minute(status.next_due_at)} UTC the next list must be read in full"
        )
    if status.unlisted:
        yield StatusLine(
            "note",
            f"{amount(status.unlisted, 'user')} not listed any more",
            "a full sync marks those who are gone as deleted",
        )
    if status.files_failed or 0 < status.files_missing < status.files:
        yield StatusLine(
            "note",
            f"{status.files_missing:,} of {amount(status.files, 'attachment')} not stored",
            "backread files fetches them; the table files says why some cannot be",
        )
    if status.rejects:
        yield StatusLine(
            "note",
            f"records that did not fit: {counts(status.rejects)}",
            "the table rejects has each with its reason",
        )
    if status.odd_values:
        yield StatusLine("note", odd_values(status.odd_values))
    if status.repaired_text:
        yield StatusLine(
            "note",
            f"{amount(status.repaired_text, 'place')} in the texts of the last run were "
            "not valid Unicode",
        )
    if status.writer is not None:
        yield StatusLine(
            "note", f"{status.writer} is writing to the mirror", "these are the facts before it"
        )
