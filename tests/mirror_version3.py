"""A mirror as backread's third schema kept and published it; no code of today has a part in it."""

from pathlib import Path

import duckdb

from mirror_version1 import publish_version1

TIMES = "first_seen_at TIMESTAMPTZ, last_seen_at TIMESTAMPTZ, deleted_at TIMESTAMPTZ"

STATEMENTS = (
    "SET TimeZone = 'UTC'",
    "CREATE TABLE meta (key VARCHAR, value VARCHAR)",
    """
    INSERT INTO meta VALUES ('schema_version', '3'), ('mirror_id', 'bbbb'),
        ('base_url', 'https://chat.example.com'), ('vendor', 'example')
    """,
    "CREATE TABLE cursors (user_id BIGINT, checkpoint VARCHAR, started_at TIMESTAMPTZ)",
    """
    CREATE TABLE lists (user_id BIGINT, run_id BIGINT, rows BIGINT, total BIGINT,
        requests BIGINT, certificate VARCHAR, reason VARCHAR, started_at TIMESTAMPTZ,
        ended_at TIMESTAMPTZ, kind VARCHAR, swept_at TIMESTAMPTZ, grows VARCHAR,
        first_ids BIGINT[], last_ids BIGINT[], unread_from BIGINT, user_updated_at TIMESTAMPTZ,
        user_online_at TIMESTAMPTZ)
    """,
    """
    CREATE TABLE rejects (resource VARCHAR, user_id BIGINT, id BIGINT, json VARCHAR,
        reason VARCHAR, run_id BIGINT, first_seen_at TIMESTAMPTZ, last_seen_at TIMESTAMPTZ)
    """,
    """
    CREATE TABLE runs (run_id BIGINT, mode VARCHAR, state VARCHAR, resumptions BIGINT,
        started_at TIMESTAMPTZ, ended_at TIMESTAMPTZ, seconds DOUBLE, requests BIGINT,
        users BIGINT, messages BIGINT, users_added BIGINT, users_updated BIGINT,
        messages_added BIGINT, messages_updated BIGINT, deleted BIGINT, rejects BIGINT,
        certificate VARCHAR, certificate_reason VARCHAR,
        lists_by_certificate MAP(VARCHAR, BIGINT), error VARCHAR,
        lists_by_kind MAP(VARCHAR, BIGINT), rows_asked BIGINT, users_swept_at TIMESTAMPTZ,
        outage_seconds DOUBLE)
    """,
    f"""
    CREATE TABLE users (id BIGINT, name VARCHAR, email VARCHAR, reference VARCHAR,
        created_at TIMESTAMPTZ, updated_at TIMESTAMPTZ, online_at TIMESTAMPTZ, last_url VARCHAR,
        user_attributes STRUCT("name" VARCHAR, "value" VARCHAR, "extra" VARCHAR)[], extra VARCHAR,
        {TIMES})
    """,
    f"""
    CREATE TABLE messages (user_id BIGINT, id BIGINT, body VARCHAR, read_by_user BOOLEAN,
        read_by_operator BOOLEAN, created_at TIMESTAMPTZ, file_url VARCHAR,
        auto_invitation BOOLEAN, sender_type VARCHAR, sender_id BIGINT, sender_name VARCHAR,
        sender_email VARCHAR, sender_forename VARCHAR, sender_surname VARCHAR,
        sender_picture_thumb_url VARCHAR, sender_extra VARCHAR, extra VARCHAR, {TIMES})
    """,
    "CREATE TABLE seen_users (id BIGINT)",
    "CREATE TABLE unpublished_users (id BIGINT)",
    "CREATE TABLE seen_messages (user_id BIGINT, id BIGINT)",
    "CREATE TABLE unpublished_messages (user_id BIGINT, id BIGINT)",
    """
    INSERT INTO users (id, name, first_seen_at) VALUES
        (1, 'Ada', '2026-01-01 10:00:00+00'), (2, 'Grace', '2026-01-01 10:00:00+00')
    """,
    """
    INSERT INTO messages (user_id, id, body, first_seen_at) VALUES
        (1, 11, 'one', '2026-01-01 10:00:00+00'), (2, 21, 'three', '2026-01-01 10:00:00+00')
    """,
    """
    INSERT INTO lists (user_id, run_id, rows, total, requests, certificate, started_at, ended_at,
        kind, swept_at)
    SELECT id, 1, 1, 1, 1, 'snapshot', first_seen_at, first_seen_at, 'whole', first_seen_at
    FROM users
    """,
    """
    INSERT INTO runs (run_id, mode, state, resumptions, started_at, ended_at, seconds, requests,
        users, messages, users_added, users_updated, messages_added, messages_updated, deleted,
        rejects, certificate, rows_asked, outage_seconds)
    VALUES (1, 'incremental', 'finished', 0, '2026-01-01 09:59:00+00', '2026-01-01 10:01:00+00',
        120, 3, 2, 2, 2, 0, 2, 0, 0, 0, 'snapshot', 0, 0)
    """,
)


def make_version3(folder: Path) -> None:
    """Writes the mirror: two users with a message each, and the run that read them."""
    directory = folder / "published"
    directory.mkdir(parents=True)
    with duckdb.connect(str(folder / "mirror.duckdb")) as connection:
        for statement in STATEMENTS:
            connection.execute(statement).fetchall()
        publish_version1(connection, directory, mirror_id="bbbb", written=2)
