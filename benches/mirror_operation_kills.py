"""Kills with -9 at random moments of sync, publish, export and forget.

Each operation runs in a separate process on a copy of a mirror, and is killed at a uniformly
random moment of the time that it takes undisturbed. Then what is published, read by `Mirror.sql`,
by path and by ``chats.duckdb``, must be exactly the state before the operation or after it, and the
target of an export absent or complete. The operation is repeated, and must end where an undisturbed
one ends, without leftovers, and after ``forget`` without a byte of the texts. Ends with 1 after a
violation; each is printed.

Usage: ``python benches/mirror_operation_kills.py [--kills 60] [--users 300] [--seed 1]``
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from backread import Mirror, MirrorError
from backread.testing import MockServer, World
from mirror_operation_bases import MARKS, SECONDS, TABLES, Case, State, copied, exported, make_bases
from traces import traces

FORMATS = ("parquet", "csv", "chats.sqlite", "chats.duckdb")
"""What an export writes: a folder of this format, or a file."""

CHILD = """
import sys
from backread import Client, Mirror
from backread.mirror import forget, synchronize
from backread.mirror.export import run
operation, given = sys.argv[1:]
mirror = Mirror("chats")
begin = lambda: print("begun", flush=True)
if operation == "publish":
    publish, tell, begin = synchronize.publish, begin, lambda: None
    synchronize.publish = lambda store: (tell(), publish(store))
begin()
if operation == "export":
    mirror.export(f"out/{given}", format=None if "." in given else given)
elif operation == "forget":
    mirror.forget(int(given), landings=["landed"])
else:
    with Client() as client:
        mirror.sync(client)
print("ended", flush=True)
"""


@dataclass
class Place:
    """The folder in which all operations run, on copies of others."""

    folder: Path
    temporary: Path
    server: MockServer
    leaving: int
    since: datetime

    def run(self, case: Case, kill_after: float | None = None) -> tuple[int, float, str]:
        """The exit code, the seconds from its beginning to its end, and what it printed."""
        settings = {
            "BACKREAD_BASE_URL": self.server.url,
            "BACKREAD_API_SECRET": self.server.secret,
            "BACKREAD_VENDOR": self.server.vendor,
            "TMPDIR": str(self.temporary),
        }
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, case.operation, case.given],
            cwd=self.folder,
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            said = process.stdout.readline()
            began = time.monotonic()
            if kill_after is None:
                said += process.stdout.readline()
            else:
                time.sleep(kill_after)
                process.kill()
            seconds = time.monotonic() - began
            said += process.stdout.read()
            return process.wait(SECONDS), seconds, said

    def state(self) -> State:
        """What is there for readers, or the error that they get."""
        try:
            return self._read()
        except (MirrorError, duckdb.Error) as error:
            return {f"readers fail with {error}": error}

    def _read(self) -> State:
        mirror = Mirror(self.folder / "chats")
        found = {f"{each} by sql": self._digest(mirror.sql(f"FROM {each}")) for each in TABLES}
        current, views = mirror.folder / "published" / "current", mirror.folder / "chats.duckdb"
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for each in TABLES[:2] if current.exists() else ():
                rows = connection.sql(f"FROM '{current}/{each}/*.parquet'")
                found[f"{each} by path"] = self._digest(rows)
            if views.exists():
                connection.execute(f"ATTACH '{views}' AS views (READ_ONLY)")
                for each in TABLES:
                    found[f"{each} by views"] = self._digest(connection.sql(f"FROM views.{each}"))
            if (landed := self.folder / "landed").exists():
                others = f"FROM '{landed}/run=*/**/*.parquet' WHERE user_id <> {self.leaving}"
                found["landed of others"] = self._digest(connection.sql(others))
        for target in (self.folder / "out").glob("[!.]*"):
            found["exported"] = exported(target)
        return found

    def _digest(self, rows: duckdb.DuckDBPyRelation) -> tuple[Any, ...]:
        """Of all rows; times since the operation began count as equal.

        Without the column in which `Mirror.sql` has the end of the newest run.
        """
        columns = [
            f"CASE WHEN \"{name}\" >= '{self.since}' THEN 'later' ELSE \"{name}\"::VARCHAR END"
            if str(kind).startswith("TIMESTAMP")
            else f'"{name}"'
            for name, kind in zip(rows.columns, rows.types, strict=True)
            if name != "last_seen_at"
        ]
        query = f"count(*), sum(hash({', '.join(columns)})::HUGEINT)::VARCHAR"
        return tuple(rows.aggregate(query).fetchall()[0])

    def kinds(self) -> set[str]:
        """The files and folders, without what is a number or random in their paths."""
        names = (str(each.relative_to(self.folder)) for each in self.folder.rglob("*"))
        return {re.sub(r"[0-9a-f]{12,}|\d+", "#", each) for each in names}

    def orphans(self) -> list[str]:
        """Snapshots that the published one does not know."""
        published = self.folder / "chats" / "published"
        known = json.loads((published / "current" / "snapshot.json").read_bytes())
        names = {f"{known['sequence']:08}", *known["retired"]}
        return [each.name for each in published.glob("[0-9]*[0-9]") if each.name not in names]

    def measure(self, case: Case) -> None:
        """Runs the operation undisturbed."""
        for _ in range(2):
            copied(case.base, self.folder)
            case.before = self.state()
            code, seconds, said = self.run(case)
            if code:
                raise SystemExit(f"{case.operation} failed undisturbed: {said}")
            case.seconds = min(case.seconds, seconds)
        case.after, case.kinds = self.state(), self.kinds()

    def kill(self, case: Case, moment: float) -> tuple[bool, str, list[str]]:
        """Whether the kill hit, what it left, and what is wrong with that."""
        copied(case.base, self.folder)
        code, _, said = self.run(case, moment)
        hit, left = code == -signal.SIGKILL, "mixed"
        wrong = [] if hit or not code else [f"ended with {code}: {said}"]
        found = self.state()
        sides = [
            each for each in ("before", "after") if found.items() <= getattr(case, each).items()
        ]
        if sides:
            left = sides[0]
        else:
            wrong.append(f"neither before nor after: {different(found, case.after)}")
        code, _, said = self.run(case)
        # An export that was killed after its last step is refused.
        if code and "exported" not in found:
            wrong.append(f"repeated, it ended with {code}: {said}")
        if (ended := self.state()) != case.after:
            wrong.append(f"repeated, it ended otherwise: {different(ended, case.after)}")
        else:
            wrong += [f"left: the snapshot {each}" for each in self.orphans()]
        wrong += [f"left: {each}" for each in sorted(self.kinds() - case.kinds)]
        if case.operation == "forget":
            wrong += traces(self.folder, *MARKS)
        at = f"{case.operation} {case.given} killed after {moment:.3f} of {case.seconds:.3f} s"
        return hit, left, [f"{at}: {each}" for each in wrong]


def different(found: State, other: State) -> str:
    """The names of what differs."""
    return ", ".join(each for each in found.keys() | other if found.get(each) != other.get(each))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--users", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    world = World(seed=given.seed, users=given.users, messages_per_user=(1, 60))
    violations = 0
    with tempfile.TemporaryDirectory() as directory, MockServer(world) as server:
        leaving = world.user_ids()[given.users // 2]
        folder, temporary = Path(directory, "place"), Path(directory, "temporary")
        bases = make_bases(folder, server, leaving)
        temporary.mkdir()
        place = Place(folder, temporary, server, leaving, datetime.now(UTC))
        operations = {
            "sync": [Case("sync", bases["earlier"])],
            "publish": [Case("publish", bases["unpublished"])],
            "export": [Case("export", bases["later"], each) for each in FORMATS],
            "forget": [Case("forget", bases["later"], str(leaving))],
        }
        print(f"{world.total_users:,} users, {world.total_messages:,} messages, seed {given.seed}")
        kills = given.kills // len(operations)
        for operation, cases in operations.items():
            for case in cases:
                place.measure(case)
            hits, left, wrong = 0, Counter[str](), list[str]()
            for number in range(kills):
                case = cases[number % len(cases)]
                hit, found, said = place.kill(case, chance.uniform(0, case.seconds))
                hits += hit
                left[found] += 1
                wrong += said
            line = f"{operation}: {kills} kills, {hits} hit, {left['before']} before, "
            line += f"{left['after']} after, {len(wrong)} violations"
            print(line, *wrong, sep="\n  ", flush=True)
            violations += len(wrong)
        # The last process has removed what the killed ones left.
        violations += len(kept := [*temporary.iterdir()])
        print("temporary files that are left:", len(kept), *kept)
    print(f"violations in all: {violations}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
