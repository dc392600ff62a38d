"""What ``mirror_operation_kills.py`` begins with, and what it reads of exports."""

from __future__ import annotations

import shutil
import sys
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import connect as connect_sqlite
from typing import Any

import duckdb

from backread import Mirror
from backread.testing import MockServer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from landings import land

__all__ = ["MARKS", "SECONDS", "TABLES", "Case", "State", "copied", "exported", "make_bases"]

TABLES = ("users", "messages", "conversations")
MARKS = ["name-Zoë-c40", "body-Zoë-c40"]
SECONDS = 120
"""What any process may take."""

State = dict[str, Any]


@dataclass
class Case:
    """An operation, the folder that it begins with, and what it comes to undisturbed."""

    operation: str
    base: Path
    given: str = ""
    seconds: float = SECONDS
    before: State = field(default_factory=dict)
    after: State = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)


def make_bases(place: Path, server: MockServer, leaving: int) -> dict[str, Path]:
    """Makes them in ``place``, each with an own copy: ``chats.duckdb`` has an absolute path.

    All texts of the user ``leaving`` are marked. Edits the server's world in between.
    """
    world = server.world
    world.edit_user(leaving, name=MARKS[0])
    for message_id in world.message_ids(leaving):
        world.edit_message(leaving, message_id, body=MARKS[1])
    (place / "out").mkdir(parents=True)
    mirror = Mirror(place / "chats")
    bases = {name: place.with_name(name) for name in ("earlier", "unpublished", "later")}
    with server.client() as client:
        mirror.sync(client)
        copied(place, bases["earlier"])
        world.add_users(10)
        for user_id in world.user_ids()[::3]:
            world.add_messages(user_id, 3)
            world.edit_user(user_id, name=f"Renamed {user_id}")
        mirror.sync(client, publish=False)
        copied(place, bases["unpublished"])
        copied(bases["earlier"], place)
        land(place / "landed", server)
        # The earlier snapshot is retired, and still there.
        mirror.sync(client)
        copied(place, bases["later"])
    return bases


def copied(source: Path, target: Path) -> Path:
    """The target, which has become a copy of the source."""
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(source, target, symlinks=True)


def exported(target: Path) -> list[Any]:
    """The rows of an exported file or folder."""
    if target.is_dir():
        files = sorted(target.iterdir())
        return [(each.name, duckdb.sql(f"FROM '{each}' ORDER BY ALL").fetchall()) for each in files]
    if target.suffix == ".sqlite":
        with closing(connect_sqlite(target)) as database:
            return [sorted(map(repr, database.execute(f"SELECT * FROM {each}"))) for each in TABLES]
    with duckdb.connect(str(target), read_only=True) as database:
        return [database.sql(f"FROM {each} ORDER BY ALL").fetchall() for each in TABLES]
