"""What runs have shown of the hints of users, `updated_at` and `online_at`, in words."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from backread._client.hints import HintsEvidence, hints_evidence
from backread.mirror.store.schema import ALL_USERS, READ_ALL

__all__ = ["audit_sentence", "evidence_sentence", "read_evidence"]

Rows = Callable[[str], list[tuple[Any, ...]]]
"""Runs a query and returns its rows."""

DOUBT = 0.05
"""What is said with 95 % confidence holds but for this share of the cases."""


MOST_NEEDED = 1e9
"""No mirror comes by so many changes."""


def read_evidence(rows: Rows) -> HintsEvidence:
    """The evidence of all runs."""
    return hints_evidence(
        rows(
            f"""
            SELECT hints_compared, hints_moved, changes_announced, changes_by_operators,
                audit_misses, {READ_ALL}, coalesce(moved, false)
            FROM runs WHERE {ALL_USERS} ORDER BY run_id
            """
        )
    )


def evidence_sentence(rows: Rows) -> str:
    """Whether hints are trusted, and why."""
    evidence = read_evidence(rows)
    if evidence.is_trusted:
        [(since,)] = rows(
            f"SELECT strftime(min(started_at), '%-d %B %Y') FROM (SELECT started_at FROM runs "
            f"WHERE {ALL_USERS} ORDER BY run_id DESC LIMIT {evidence.runs})"
        )
        return (
            f"None of {evidence.announced:,} changes since {since} came unannounced (fewer than "
            f"{_most_of(evidence.announced)} do)."
        )
    if evidence.needed > MOST_NEEDED:
        return "Hints are not trusted: too many changes came unannounced."
    return (
        f"Hints are not trusted yet: {evidence.announced:,} of {evidence.needed:,.0f} changes that "
        f"are needed were announced, {evidence.by_operators:,} of "
        f"{evidence.needed_by_operators:,.0f} of operators alone."
    )


def audit_sentence(rows: Rows, run_id: int) -> str | None:
    """What the audit of a quick run says; None for other runs."""
    [(mode, state, trusted, drawn, audited, user_id)] = rows(
        "SELECT mode, state, lists_trusted, lists_to_audit, lists_audited, missed_user "
        f"FROM runs WHERE run_id = {int(run_id)}"
    )
    if user_id is not None:
        return (
            f"The messages of user {user_id} had changed, and the user's updated_at and online_at "
            "had not moved, so hints are not trusted."
        )
    if mode != "quick":
        return None
    if state != "finished" and audited < drawn:
        return (
            f"The run ended before its audit did: of {drawn:,} lists drawn at random, {audited:,} "
            "were read, so none of the skipped lists counts as trusted."
        )
    if not trusted:
        return f"All {audited:,} lists that could have been skipped were read."
    return (
        f"{audited:,} of {trusted + audited:,} skipped lists were drawn at random and read: none "
        f"had changed; with 95 % confidence fewer than {_most_of(audited)} of the others "
        f"({ceil(_share(audited) * trusted):,}) have."
    )


def _share(tried: int) -> float:
    """The share of misses that is shown by none in so many that were drawn at random."""
    return float(1 - DOUBT ** (1 / tried)) if tried else 1.0


def _most_of(tried: int) -> str:
    return f"{ceil(_share(tried) * 1_000) / 10:g} %"
