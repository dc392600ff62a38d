"""What a first sync and an unchanged one cost per million messages, by phase and by thread.

Each case is a service in a separate process, with bodies of one size. Three programs read it in
turns, each in a separate process: the first sync, an unchanged sync, and a crawl that discards the
rows. Lists of one page (``--each`` up to 98) take the same requests in all of them. The CPU of
imports does not count.

Usage: ``python benches/mirror_costs.py [--messages 500000] [--each 98] [--bodies 200,2000]
[--rounds 3] [--unread] [--python PATH]``. With ``--unread``, the first message of each list is not
marked as read, so that most of a page is read again where a list grows. ``--python`` is an
interpreter that has another backread.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MEASURED = """
import json, resource, sys, time
from pathlib import Path

import duckdb
import pyarrow as pa
from backread import Client, Mirror

def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

def crawl(told):
    with Client() as client:
        for _ in pa.RecordBatchReader.from_stream(client.users.list()):
            pass
        for _ in pa.RecordBatchReader.from_stream(client.messages.all()):
            pass

def sync(told):
    with Client() as client:
        Mirror(sys.argv[2]).sync(client, on_progress=told)

phases = {}
began, started = time.perf_counter(), cpu()
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
at = [None, started]

def told(progress):
    if progress.phase != at[0]:
        now = cpu()
        if at[0] is not None:
            phases[at[0]] = phases.get(at[0], 0) + now - at[1]
        at[:] = [progress.phase, now]

(crawl if sys.argv[1] == "crawl" else sync)(told)
status = Path("/proc/self/status").read_text()
print(json.dumps({
    "cpu": cpu() - started,
    "seconds": time.perf_counter() - began,
    "faults": resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults,
    "main": time.thread_time(),
    "peak": int(status.split("VmHWM:")[1].split()[0]) / 1024,
    **phases,
}))
"""

SECRET = "mock_mirror_costs"
MOMENT = "2026-01-{:02}T{:02}:{:02}:{:02}.{:03}Z"


class Service(asyncio.Protocol):
    """Answers pages that are the same each time."""

    users = 0
    each = 0
    body = 0
    unread = False
    text = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the connection."""
        self._transport: Any = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        """Answers each whole request."""
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            request, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            body = self._page(request.partition(b"\r\n")[0].split()[1].decode()).encode()
            head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
            self._transport.write(f"{head}{len(body)}\r\n\r\n".encode() + body)

    def _page(self, address: str) -> str:
        path, _, query = address.partition("?")
        asked = dict(each.split("=") for each in query.split("&"))
        offset, limit = int(asked["offset"]), int(asked["limit"])
        parts = path.split("/")
        if parts[-1] == "messages":
            user, key, total, draw = int(parts[-2]), "messages", self.each, self._message
        else:
            user, key, total, draw = 0, "users", self.users, self._user
        rows = ",".join(draw(user, at) for at in range(offset, min(offset + limit, total)))
        return f'{{"limit":{limit},"offset":{offset},"total":{total},"{key}":[{rows}]}}'

    def _user(self, _: int, at: int) -> str:
        moment = _moment(at)
        return (
            f'{{"id":{at + 1},"name":"User {at}","email":"user{at}@example.com","reference":"{at}",'
            f'"created_at":"{moment}","updated_at":"{moment}","online_at":"{moment}",'
            f'"last_url":"https://example.com/page/{at}","user_attributes":[]}}'
        )

    def _message(self, user: int, at: int) -> str:
        number = user * self.each + at
        start = number * 104_729 % (len(self.text) - self.body)
        kind = "operator" if at % 2 else "user"
        read = "false" if self.unread and at == 0 else "true"
        sender = (
            f'"id":{user % 20},"forename":"Kim","surname":"Lee","email":"kim@example.com",'
            '"picture_thumb_url":null'
            if at % 2
            else f'"id":{user},"name":"User {user}","email":"user{user}@example.com"'
        )
        return (
            f'{{"id":{number},"body":"{self.text[start : start + self.body]}",'
            f'"read_by_user":{read},"read_by_operator":true,'
            f'"created_at":"{_moment(number)}","file_url":null,'
            f'"auto_invitation":false,"sender_type":"{kind}","sender":{{{sender}}}}}'
        )


def _moment(number: int) -> str:
    seconds, thousandth = divmod(number * 1_237, 1_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return MOMENT.format(days % 28 + 1, hour, minute, second, thousandth)


async def serve(users: int, each: int, body: int, unread: int) -> None:
    """Serves until stdin ends."""
    chance = random.Random(1)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(9_000)]
    Service.users, Service.each, Service.body, Service.unread = users, each, body, bool(unread)
    Service.text = " ".join(chance.choices(words, k=1_000_000))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Service, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


@contextmanager
def served(users: int, each: int, body: int, unread: bool) -> Iterator[dict[str, str]]:
    """A service, and the settings of its clients."""
    command = [sys.executable, __file__, "--serve", f"{users},{each},{body},{int(unread)}"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            url = process.stdout.readline().strip()
            yield {
                "BACKREAD_BASE_URL": url,
                "BACKREAD_API_SECRET": SECRET,
                "BACKREAD_VENDOR": "example",
            }
        finally:
            process.stdin.close()


def measured(python: str, what: str, folder: Path, settings: dict[str, str]) -> dict[str, float]:
    """One program, in a separate process."""
    done = subprocess.run(
        [python, "-c", MEASURED, what, str(folder)],
        env=os.environ | settings,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def size_of(folder: Path) -> dict[str, float]:
    """Megabytes of the database and of the published files."""
    database = (folder / "mirror.duckdb").stat().st_size
    published = sum(each.stat().st_size for each in (folder / "published").rglob("*.parquet"))
    return {"database": database / 1e6, "published": published / 1e6}


def compare(
    python: str, messages: int, each_user: int, body: int, rounds: int, unread: bool
) -> None:
    """Prints the least of all rounds, in CPU seconds per million messages."""
    users = max(1, messages // each_user)
    millions = users * each_user / 1e6
    found: dict[str, list[dict[str, float]]] = {"first": [], "unchanged": [], "crawl": []}
    with served(users, each_user, body, unread) as settings:
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name, "chats")
                for what in found:
                    found[what].append(measured(python, what, folder, settings))
                    if what == "first":
                        found[what][-1] |= size_of(folder)
    for what, each in found.items():
        cpu = min(one["cpu"] for one in each) / millions
        rate = users * each_user / min(one["seconds"] for one in each)
        parts = [
            f"{name} {min(one[name] for one in each) / millions:.2f}"
            for name in ("reading", "finishing", "publishing", "main")
            if name in each[0]
        ]
        if what == "first":
            parts += [f"{name} {each[0][name]:.1f} MB" for name in ("database", "published")]
        peak = min(one["peak"] for one in each)
        faults = min(one["faults"] for one in each)
        print(
            f"| {body:,} B | {what} | {cpu:.2f} | {rate:,.0f} | {peak:.0f} | {faults:,.0f} "
            f"| {', '.join(parts)} |",
            flush=True,
        )
    beyond = min(one["cpu"] for one in found["unchanged"]) - min(
        one["cpu"] for one in found["crawl"]
    )
    print(f"| {body:,} B | unchanged beyond the crawl | {beyond / millions:.2f} | | | | |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--each", type=int, default=98, help="messages of each user")
    parser.add_argument("--bodies", default="200,2000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--unread", action="store_true", help="no first message is marked as read")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(*map(int, given.serve.split(","))))
        return 0
    print("| bodies | what | CPU s a million | rows/s | peak MB | page faults | by part |")
    print("|---|---|---|---|---|---|---|")
    for body in map(int, given.bodies.split(",")):
        compare(given.python, given.messages, given.each, body, given.rounds, given.unread)
    return 0


if __name__ == "__main__":
    sys.exit(main())
