"""What `Mirror.figures` and the report cost: seconds, seconds of all processors, and peak memory.

Without a folder it makes a mirror: conversations of 50 messages over two years, with bodies of
about 70 bytes. Each measurement is a separate process; its CPU seconds and the memory at its peak
include the interpreter and DuckDB. The first line is the figures alone, the others what the command
prints or writes.

Usage: ``python benches/mirror_report.py [FOLDER] [--messages 5000000] [--rounds 3] [--threads 2]``
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from backread.mirror import Mirror
from backread.mirror.database import open_database
from backread.mirror.publish import publish
from backread.mirror.store import Store

HOURS = ["--timezone", "Europe/Berlin", "--opening-hours", "mon-fri 9-17"]

MEASURED = """
import resource, sys, time
from backread.cli.app import run
from backread.mirror import Mirror
folder, threads, *arguments = sys.argv[1:]
Mirror(folder).sql(f"SET GLOBAL threads = {threads}", unrestricted=True)
began = time.perf_counter()
if arguments == ["figures"]:
    Mirror(folder).figures(timezone="Europe/Berlin", opening_hours="mon-fri 9-17")
else:
    code = run(["report", folder, *arguments])
    assert code == 0
seconds = time.perf_counter() - began
used = resource.getrusage(resource.RUSAGE_SELF)
print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000, file=sys.stderr)
"""


def fill(store: Store, messages: int) -> None:
    """Users with 50 messages on average, every other one of an operator, and their read lists."""
    store.rows(
        "INSERT INTO users (id, name, first_seen_at) "
        f"SELECT id, 'user ' || id, now() FROM range({messages // 50}) AS ids(id)"
    )
    store.rows(
        "INSERT INTO messages (user_id, id, body, created_at, sender_type, sender_id, "
        "sender_forename, sender_surname, auto_invitation, read_by_user, read_by_operator, "
        "file_url, first_seen_at) "
        "WITH drawn AS (SELECT id, (hash(id // 50) % 60000000)::BIGINT AS begun, id % 50 AS place, "
        "hash(id * 7) AS chance FROM range(?) AS ids(id)) "
        "SELECT id // 50, id, 'text ' || md5(id::VARCHAR) || md5((id + 1)::VARCHAR), "
        "TIMESTAMPTZ '2024-01-01' + to_seconds(begun + place * (chance % 900)::BIGINT), "
        "CASE WHEN place % 2 = 0 THEN 'user' ELSE 'operator' END, "
        "CASE WHEN place % 2 = 0 THEN id // 50 ELSE chance % 40 END, "
        "CASE WHEN place % 2 = 1 THEN 'operator' END, "
        "CASE WHEN place % 2 = 1 THEN (chance % 40)::VARCHAR END, "
        "place = 1 AND chance % 9 = 0, chance % 97 > 0, chance % 89 > 0, "
        "CASE WHEN chance % 25 = 0 THEN 'https://files.example.com/' || id || '.pdf' END, now() "
        "FROM drawn",
        [messages],
    )
    store.rows(
        "INSERT INTO lists (user_id, run_id, rows, certificate, kind) "
        f"SELECT id, 1, 50, 'snapshot', 'whole' FROM range({messages // 50}) AS ids(id)"
    )
    store.rows(
        "INSERT INTO runs (run_id, mode, state, certificate, started_at, ended_at) "
        "VALUES (1, 'full', 'finished', 'linked', now(), now())"
    )


def measure(folder: Path, threads: int, arguments: list[str], rounds: int) -> list[float]:
    """The fewest seconds and CPU seconds, and the most memory in MB, of some processes."""
    found = []
    for _ in range(rounds):
        command = [sys.executable, "-c", MEASURED, str(folder), str(threads), *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append([float(each) for each in done.stderr.splitlines()[-1].split()])
    seconds, processor, peaks = zip(*found, strict=True)
    return [min(seconds), min(processor), max(peaks)]


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--messages", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder: Path = options.folder or Path(scratch) / "chats"
        if options.folder is None:
            folder.mkdir(0o700)
            with open_database(folder) as connection:
                store = Store(folder, connection)
                fill(store, options.messages)
                publish(store)
        [(count,)] = Mirror(folder).sql("SELECT count(*) FROM messages").fetchall()
        load = os.getloadavg()[0]
        print(f"{count:,} messages, {options.threads} threads, load {load:.1f} before\n")
        print("| what | s | CPU s | MB |\n|---|---|---|---|")
        page = str(Path(scratch) / "report.html")
        for name, arguments in {
            "Mirror.figures with opening hours": ["figures"],
            "backread report": [],
            "backread report, opening hours": HOURS,
            "backread report -o, opening hours": ["-o", page, *HOURS],
        }.items():
            seconds, processor, peak = measure(folder, options.threads, arguments, options.rounds)
            print(f"| {name} | {seconds:.1f} | {processor:.1f} | {peak:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
