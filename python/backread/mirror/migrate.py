"""Upgrades mirrors of earlier versions, one version at a time."""

from __future__ import annotations

from dataclasses import dataclass

from backread.mirror.schema import SCHEMA_VERSION

__all__ = ["STEPS", "Step", "steps_from"]


@dataclass(frozen=True, slots=True)
class Step:
    """Upgrades a mirror to ``version`` from the one before; runs in one transaction."""

    version: int
    statements: tuple[str, ...]


# Written out, because the declared tables are those of the newest version only.
STEPS = (
    Step(
        2,
        (
            "ALTER TABLE lists ADD COLUMN kind VARCHAR",
            "ALTER TABLE lists ADD COLUMN swept_at TIMESTAMPTZ",
            "ALTER TABLE lists ADD COLUMN grows VARCHAR",
            "ALTER TABLE lists ADD COLUMN first_ids BIGINT[]",
            "ALTER TABLE lists ADD COLUMN last_ids BIGINT[]",
            "ALTER TABLE lists ADD COLUMN unread_from BIGINT",
            "ALTER TABLE lists ADD COLUMN user_updated_at TIMESTAMPTZ",
            "ALTER TABLE lists ADD COLUMN user_online_at TIMESTAMPTZ",
            # Version 1 read all lists in full, except those of users who disappeared meanwhile.
            """
            UPDATE lists SET kind = CASE
                WHEN reason LIKE '%the user was gone%' THEN 'gone' ELSE 'whole' END
            """,
            "UPDATE lists SET swept_at = ended_at WHERE kind = 'whole'",
            "ALTER TABLE runs ADD COLUMN lists_by_kind MAP(VARCHAR, BIGINT)",
            "ALTER TABLE runs ADD COLUMN rows_asked BIGINT",
            "ALTER TABLE runs ADD COLUMN users_swept_at TIMESTAMPTZ",
            "UPDATE runs SET rows_asked = 0",
            "CREATE TABLE cursors (user_id BIGINT, checkpoint VARCHAR, started_at TIMESTAMPTZ)",
            # The next publication rewrites everything that version 1 published.
            "DROP TABLE dirty",
            "CREATE TABLE unpublished_users (id BIGINT)",
            "CREATE TABLE unpublished_messages (user_id BIGINT, id BIGINT)",
        ),
    ),
    Step(
        3,
        (
            "ALTER TABLE runs ADD COLUMN outage_seconds DOUBLE",
            "UPDATE runs SET outage_seconds = 0",
        ),
    ),
)


def steps_from(version: int) -> tuple[Step, ...]:
    """The steps from a mirror of this version to one of `SCHEMA_VERSION`, in order."""
    return tuple(step for step in STEPS if version < step.version <= SCHEMA_VERSION)
