"""A mirror as backread's first schema kept and published it; no code of today has a part in it."""

import json
from pathlib import Path

import duckdb

STATEMENTS = (
    "SET TimeZone = 'UTC'",
    "CREATE TABLE meta (key VARCHAR, value VARCHAR)",
    """
    INSERT INTO meta VALUES ('schema_version', '1'), ('mirror_id', 'aaaa'),
        ('base_url', 'https://chat.example.com'), ('vendor', 'example')
    """,
    "CREATE TABLE dirty (table_name VARCHAR, bucket BIGINT)",
    """
    CREATE TABLE users (id BIGINT, name VARCHAR, email VARCHAR, reference VARCHAR,
        created_at TIMESTAMPTZ, updated_at TIMESTAMPTZ, online_at TIMESTAMPTZ, last_url VARCHAR,
        user_attributes STRUCT("name" VARCHAR, "value" VARCHAR, extra VARCHAR)[], extra VARCHAR,
        first_seen_at TIMESTAMPTZ, last_seen_at TIMESTAMPTZ, deleted_at TIMESTAMPTZ)
    """,
    "CREATE TABLE seen_users (id BIGINT)",
    """
    CREATE TABLE messages (user_id BIGINT, id BIGINT, body VARCHAR, read_by_user BOOLEAN,
        read_by_operator BOOLEAN, created_at TIMESTAMPTZ, file_url VARCHAR,
        auto_invitation BOOLEAN, sender_type VARCHAR, sender_id BIGINT, sender_name VARCHAR,
        sender_email VARCHAR, sender_forename VARCHAR, sender_surname VARCHAR,
        sender_picture_thumb_url VARCHAR, sender_extra VARCHAR, extra VARCHAR,
        first_seen_at TIMESTAMPTZ, last_seen_at TIMESTAMPTZ, deleted_at TIMESTAMPTZ)
    """,
    "CREATE TABLE seen_messages (user_id BIGINT, id BIGINT)",
    """
    CREATE TABLE lists (user_id BIGINT, run_id BIGINT, rows BIGINT, total BIGINT,
        requests BIGINT, certificate VARCHAR, reason VARCHAR, started_at TIMESTAMPTZ,
        ended_at TIMESTAMPTZ)
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
        lists_by_certificate MAP(VARCHAR, BIGINT), error VARCHAR)
    """,
    """
    INSERT INTO users (id, name, first_seen_at, deleted_at, last_seen_at) VALUES
        (1, 'Ada', '2026-01-01 10:00:00+00', NULL, NULL),
        (2, 'Grace', '2026-01-01 10:00:00+00', NULL, NULL),
        (3, 'Gone', '2026-01-01 10:00:00+00', '2026-01-02 10:00:00+00', '2026-01-01 10:01:00+00')
    """,
    """
    INSERT INTO messages (user_id, id, body, first_seen_at) VALUES
        (1, 11, 'one', '2026-01-01 10:00:00+00'), (1, 12, 'two', '2026-01-01 10:00:00+00'),
        (2, 21, 'three', '2026-01-01 10:00:00+00')
    """,
    """
    INSERT INTO lists VALUES
        (1, 1, 2, 2, 1, 'snapshot', NULL, '2026-01-02 10:00:00+00', '2026-01-02 10:00:00+00'),
        (2, 1, 0, NULL, 1, 'uncertified',
         'the user was gone when the messages were asked for',
         '2026-01-02 10:00:00+00', '2026-01-02 10:00:00+00')
    """,
    """
    INSERT INTO runs VALUES (1, 'full', 'finished', 0, '2026-01-02 10:00:00+00',
        '2026-01-02 10:01:00+00', 60, 3, 2, 3, 3, 0, 3, 0, 1, 0, 'snapshot', NULL,
        MAP {'snapshot': 1, 'uncertified': 1}, NULL)
    """,
)

UNFINISHED = (
    """
    INSERT INTO runs (run_id, mode, state, resumptions, started_at, seconds, requests, users,
        messages, users_added, users_updated, messages_added, messages_updated, deleted, rejects,
        certificate, error)
    VALUES (2, 'incremental', 'unfinished', 0, now(), 1, 2, 2, 2, 0, 0, 0, 0, 0, 0, 'snapshot',
        'ConnectError: the connection broke')
    """,
    "INSERT INTO lists VALUES (1, 2, 2, 2, 1, 'snapshot', NULL, now(), now())",
    "INSERT INTO seen_users VALUES (1), (2)",
    "INSERT INTO seen_messages VALUES (1, 11), (1, 12)",
)
"""A second run that had read both users and one of the lists when it was stopped."""

PUBLISHED = ("users", "messages", "lists", "rejects", "runs")


def make_version1(folder: Path, *, unfinished: bool = False) -> None:
    """Writes the mirror; ``unfinished`` leaves a run in it, as a kill would."""
    directory = folder / "published"
    directory.mkdir(parents=True)
    with duckdb.connect(str(folder / "mirror.duckdb")) as connection:
        for statement in STATEMENTS:
            connection.execute(statement).fetchall()
        publish_version1(connection, directory)
        for statement in UNFINISHED if unfinished else ():
            connection.execute(statement).fetchall()


def publish_version1(
    connection: duckdb.DuckDBPyConnection,
    directory: Path,
    *,
    mirror_id: str = "aaaa",
    written: int = 1,
) -> None:
    """Writes the tables and the manifest, which has the format ``written``, 1 or 2."""
    files = {name: [f"{name}.00000001.parquet"] for name in PUBLISHED}
    for name, [file] in files.items():
        path = str(directory / file).replace("'", "''")
        connection.execute(f"COPY {name} TO '{path}' (FORMAT parquet)").fetchall()
    manifest = {
        "format": written,
        "mirror_id": mirror_id,
        "sequence": 1,
        "run_id": 1,
        "seen_at": "2026-01-02T10:01:00+00:00",
        "published_at": "2026-01-02T10:01:01+00:00",
        "files": files,
        "retired": {},
    }
    (directory / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
