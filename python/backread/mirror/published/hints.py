"""What runs have shown of the hints of users, `updated_at` and `online_at`, in words."""

from __future__ import annotations

from math import ceil

from backread._client.hints import HintsEvidence, hints_evidence
from backread.mirror.store.engine import Rows
from backread.mirror.store.schema import ALL_USERS, READ_ALL

AUDIT_ENDED = """(lists_unverified = 0 AND
    (state = 'finished' OR (lists_to_audit > 0 AND lists_audited >= lists_to_audit)))"""
"""The condition for quick runs whose whole sample was read, and each change in it checked."""

DOUBT = 0.05
"""What is said with 95 % confidence is wrong in this share of the cases."""

MOST_NEEDED = 1e9
"""No mirror comes by more changes; as many are needed where hints move for all users."""


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
