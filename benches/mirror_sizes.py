"""What a sync of a mirror costs at several sizes: requests, CPU, memory and disk.

Each case is a world and four syncs in separate processes: the first, one of an unchanged world,
one after 1 % of the users got a message, and a full one; then quick ones, of an unchanged world and
after 1 % of the users got a message, once hints are trusted. The mock runs in another process,
whose CPU does not count. Peak memory is that of the process of the sync.

Usage: ``python benches/mirror_sizes.py [CASE …] [--python PATH] [--memory-limit 1GB]``;
``--python`` is an interpreter that has another backread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SYNC = """
import json, resource, sys, time
from backread import Client, Mirror

folder, mode, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
began = time.monotonic()
with Client() as client:
    report = Mirror(folder, **options).sync(client, mode=mode)
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "mode": report.mode,
    "requests": report.requests,
    "rows": report.users + report.messages,
    "changed": report.messages_added + report.messages_updated,
    "seconds": time.monotonic() - began,
    "cpu": used.ru_utime + used.ru_stime,
    "peak": used.ru_maxrss / 1024,
}))
"""


@dataclass(frozen=True)
class Case:
    """A world: the number of users, and of messages of each user."""

    users: int
    messages: int


CASES = {
    "1k": Case(1_000, 50),
    "10k": Case(10_000, 50),
    "100k": Case(100_000, 50),
    "long": Case(20, 50_000),
    "short": Case(500_000, 1),
}
KINDS = ("first", "unchanged", "changed 1 %", "full", "quick, unchanged", "quick, changed 1 %")
MOST_NIGHTS = 10


def serve(name: str) -> None:
    """Serves a case until stdin ends; each line on stdin changes 1 % of its users."""
    case = CASES[name]
    from backread.testing import MockServer, World

    world = World(seed=1, users=case.users, messages_per_user=(case.messages, case.messages))
    with MockServer(world) as mock:
        print(mock.url, mock.secret, mock.vendor, flush=True)
        for _ in sys.stdin:
            ids = world.user_ids()
            for user_id in ids[:: min(100, len(ids))]:
                mock.world.add_messages(user_id, 1)
            print("changed", flush=True)


@contextmanager
def served(name: str) -> Iterator[tuple[dict[str, str], subprocess.Popen[str]]]:
    """A case in a separate process, and the settings of its clients."""
    command = [sys.executable, __file__, "--serve", name]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            url, secret, vendor = process.stdout.readline().split()
            names = ("BACKREAD_BASE_URL", "BACKREAD_API_SECRET", "BACKREAD_VENDOR")
            yield dict(zip(names, (url, secret, vendor), strict=True)), process
        finally:
            process.stdin.close()


def size_of(folder: Path) -> int:
    """Bytes on the disk below the folder, each file once, however many links it has."""
    found = {entry.stat().st_ino: entry.stat().st_blocks for entry in folder.rglob("*")}
    return 512 * sum(found.values())


def measure(name: str, python: str, options: dict[str, str]) -> None:
    """Prints a line for each sync of a case."""
    with served(name) as (settings, process), tempfile.TemporaryDirectory() as directory:
        folder = Path(directory, "chats")

        def change() -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("change\n")
            process.stdin.flush()
            process.stdout.readline()

        def sync(mode: str) -> dict[str, Any]:
            done = subprocess.run(
                [python, "-c", SYNC, str(folder), mode, json.dumps(options)],
                env=os.environ | settings,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                raise RuntimeError(done.stderr.strip().splitlines()[-1])
            found: dict[str, Any] = json.loads(done.stdout)
            return found

        for kind in KINDS:
            mode = kind if kind == "full" else kind.partition(",")[0]
            mode = mode if mode in ("full", "quick") else "incremental"
            nights = 0
            if kind == "quick, unchanged":
                while nights < MOST_NIGHTS and sync("quick")["mode"] != "quick":
                    nights += 1
                    change()
            if "changed 1" in kind:
                change()
            got = sync(mode)
            print(
                f"| {name} | {kind} | {got['mode']} | {got['requests']:,} | {got['rows']:,} "
                f"| {got['changed']:,} | {got['seconds']:.1f} | {got['cpu']:.1f} "
                f"| {got['peak']:.0f} | {size_of(folder) / 1e6:.0f} |",
                flush=True,
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=[*CASES])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--memory-limit")
    parser.add_argument("--serve", choices=[*CASES], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return 0
    options = {"memory_limit": given.memory_limit} if given.memory_limit else {}
    print("| case | sync | mode | requests | rows read | changed | s | CPU s | peak MB | disk MB |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in given.cases:
        measure(name, given.python, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
