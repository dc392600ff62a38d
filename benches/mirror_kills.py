"""A sync that is killed with -9 again and again, over a world that keeps changing.

One run is killed at random points, the world changes between the kills, and each next sync takes
the run up again. Printed are the requests of all attempts together next to those of one run that
nobody kills, and whether the mirror, after one more full sync, holds what a fresh one holds. Ends
with 1 where it does not, or where the requests are more than ``--most`` times as many.

Usage: ``python benches/mirror_kills.py [--users 10000] [--kills 30] [--seed 1]``
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backread import Mirror
from backread.testing import MockServer, World

SYNC = """
import sys
from backread import Client, Mirror
with Client() as client:
    Mirror(sys.argv[1]).sync(client)
"""

SECONDS = 600
CONTENT = (
    "SELECT COLUMNS(* EXCLUDE (first_seen_at, last_seen_at, deleted_at, changed_at, "
    "changed_in_run))::VARCHAR FROM {} WHERE deleted_at IS NULL ORDER BY ALL"
)


@dataclass
class Killed:
    """What the attempts of one run came to."""

    kills: int
    requests: int
    seconds: float


def requests_of(server: MockServer) -> int:
    """What the mock has answered so far."""
    return sum(server.counts().values())


def start(folder: Path, server: MockServer) -> subprocess.Popen[bytes]:
    """A sync in a separate process."""
    settings = {
        "BACKREAD_BASE_URL": server.url,
        "BACKREAD_API_SECRET": server.secret,
        "BACKREAD_VENDOR": server.vendor,
    }
    return subprocess.Popen([sys.executable, "-c", SYNC, str(folder)], env=os.environ | settings)


def change(world: World, chance: random.Random) -> None:
    """A few edits of every kind."""
    users = world.user_ids()
    world.add_users(chance.randint(0, 3))
    for user_id in chance.sample(users, 8):
        world.add_messages(user_id, chance.randint(1, 5))
    for user_id in chance.sample(users, 4):
        world.edit_user(user_id, name=f"Renamed {chance.random()}")
    for user_id in chance.sample(users, 8):
        messages = world.message_ids(user_id)
        if messages:
            world.edit_message(user_id, messages[-1], read_by_user=True, read_by_operator=True)
            world.remove_message(user_id, chance.choice(messages))
    if chance.random() < 0.5:
        world.remove_user(chance.choice(users))


def run_killed(
    folder: Path, server: MockServer, points: list[int], chance: random.Random
) -> Killed:
    """One run, killed when so many requests were answered in all, and then left to its end."""
    kills, began = 0, time.monotonic()
    for point in points:
        with start(folder, server) as process:
            while process.poll() is None and requests_of(server) < point:
                time.sleep(0.002)
            # Anywhere in the reading, the merging or the commit that goes on now.
            time.sleep(chance.uniform(0, 0.05))
            if process.poll() is not None:
                break
            process.kill()
        kills += 1
        change(server.world, chance)
    with start(folder, server) as process:
        process.wait(SECONDS)
        if process.returncode:
            raise SystemExit(f"the sync after the kills ended with {process.returncode}")
    return Killed(kills, requests_of(server), time.monotonic() - began)


def content(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that a mirror holds of what is there."""
    mirror = Mirror(folder)
    return {table: mirror.sql(CONTENT.format(table)).fetchall() for table in ("users", "messages")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--longest", type=int, default=120)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=float, default=1.2)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    world = World(seed=given.seed, users=given.users, messages_per_user=(0, given.longest))
    pages = sum(max(1, -(-len(world.message_ids(each)) // 99)) for each in world.user_ids())
    expected = pages + -(-given.users // 99)
    points = sorted(chance.randrange(1, expected) for _ in range(given.kills))
    with tempfile.TemporaryDirectory() as directory, MockServer(world) as server:
        killed = run_killed(Path(directory, "killed"), server, points, chance)
        with MockServer(world) as other, other.client() as client:
            fresh = Mirror(Path(directory, "fresh")).sync(client, mode="full")
        with server.client() as client:
            closing = Mirror(Path(directory, "killed")).sync(client, mode="full")
        same = content(Path(directory, "killed")) == content(Path(directory, "fresh"))
    ratio = killed.requests / fresh.requests
    print(f"users {world.total_users:,}, messages {world.total_messages:,}, seed {given.seed}")
    print(f"kills {killed.kills}, in {killed.seconds:.1f} s")
    print(f"requests of all attempts together {killed.requests:,}")
    print(f"requests of one run without a kill {fresh.requests:,}")
    print(f"ratio {ratio:.3f} (at most {given.most})")
    print(f"the full sync afterwards: {closing.requests:,} requests, {closing.deleted:,} gone")
    print(f"holds what a fresh mirror holds: {'yes' if same else 'NO'}")
    return 0 if same and ratio <= given.most else 1


if __name__ == "__main__":
    sys.exit(main())
