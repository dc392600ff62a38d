"""What a sync of a mirror costs at several sizes: requests, CPU, memory and disk.

Each case is a world and four syncs in separate processes: the first, one of an unchanged world,
one after 1 % of the users got a message, and a full one; then quick ones, of an unchanged world and
after 1 % of the users got a message, once hints are trusted. The mock runs in another process,
whose CPU does not count. Peak memory is that of the process of the sync. The case ``wide`` has rows
of 10 KB, which a plain server makes, and no hints.

Usage: ``python benches/mirror_sizes.py [CASE …] [--python PATH] [--memory-limit 1GB]``;
``--python`` is an interpreter that has another backread.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

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
    wide: bool = False


CASES = {
    "1k": Case(1_000, 50),
    "10k": Case(10_000, 50),
    "100k": Case(100_000, 50),
    "long": Case(20, 50_000),
    "short": Case(500_000, 1),
    "wide": Case(5_051, 99, wide=True),
}
KINDS = ("first", "unchanged", "changed 1 %", "full", "quick, unchanged", "quick, changed 1 %")
MOST_NIGHTS = 10
BODY = 10_000
SECRET = "mock_mirror_sizes"


class Wide(BaseHTTPRequestHandler):
    """A service whose bodies have 10 KB; a line of the path says how often a list was changed."""

    protocol_version = "HTTP/1.1"
    case = CASES["wide"]
    changed: set[int] = set()  # noqa: RUF012
    text = ""

    def do_GET(self) -> None:
        """Answers a page of users or of messages."""
        address = urlsplit(self.path)
        query = parse_qs(address.query)
        if address.path == "/change":
            self.changed.update(range(1, self.case.users, 100))
            return self._send(b"{}")
        offset, limit = (int(query.get(name, ["0"])[0]) for name in ("offset", "limit"))
        user = None if address.path.endswith("/users") else int(address.path.split("/")[-2])
        rows, total = self._users(offset, limit) if user is None else self._messages(user)
        page = {"limit": limit, "offset": offset, "total": total}
        page["users" if user is None else "messages"] = rows[offset:] if user else rows
        return self._send(json.dumps(page).encode())

    def _users(self, offset: int, limit: int) -> tuple[list[Any], int]:
        ids = range(offset + 1, min(offset + limit, self.case.users) + 1)
        rows = [
            {"id": each, "name": f"User {each}", "email": f"{each}@example.com"} for each in ids
        ]
        return rows, self.case.users

    def _messages(self, user: int) -> tuple[list[Any], int]:
        count = self.case.messages - (user not in self.changed)
        moment = "2026-01-01T00:00:00.000Z"
        rows = []
        for each in range(count):
            at = (user * 7919 + each * 104_729) % (len(self.text) - BODY)
            rows.append(
                {"id": user * 1_000 + each, "body": self.text[at : at + BODY], "created_at": moment}
            )
        return rows, count

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Logs nothing."""


def serve(name: str) -> None:
    """Serves a case until stdin ends; each line on stdin changes 1 % of its users."""
    case = CASES[name]
    if case.wide:
        from threading import Thread

        chance = random.Random(1)
        words = [
            "".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(9_000)
        ]
        Wide.text = " ".join(chance.choices(words, k=300_000))
        server = ThreadingHTTPServer(("127.0.0.1", 0), Wide)
        Thread(target=server.serve_forever, daemon=True).start()
        print(f"http://127.0.0.1:{server.server_port}", SECRET, "example", flush=True)
        for _ in sys.stdin:
            Wide.changed.update(range(1, case.users, 100))
            print("changed", flush=True)
        return
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
