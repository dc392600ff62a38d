"""backread's own mirror.

Usage: ``python backread_mirror.py sync|held FOLDER``, the service in the environment.
"""

import json
import sys
from pathlib import Path

# A mirror imports the next two when it is first used, and imports are not timed.
import duckdb  # noqa: F401

import backread.mirror.sync.synchronize  # noqa: F401
from backread import Client, Mirror


def sync(folder: Path) -> None:
    """One run."""
    with Client() as client:
        report = Mirror(folder).sync(client)
    doubts = {
        "doubts_users": report.certificate == "uncertified",
        "doubts_lists": report.uncertified_users,
    }
    print(json.dumps(doubts))


def held(folder: Path) -> None:
    """Prints the ids of the users, and of the messages with their read flags."""
    mirror = Mirror(folder)
    users = mirror.sql("SELECT id FROM users WHERE deleted_at IS NULL").fetchall()
    messages = mirror.sql(
        "SELECT user_id, id, read_by_user, read_by_operator FROM messages WHERE deleted_at IS NULL"
    ).fetchall()
    print(json.dumps({"users": [each for (each,) in users], "messages": messages}))


if __name__ == "__main__":
    {"sync": sync, "held": held}[sys.argv[1]](Path(sys.argv[2]))
