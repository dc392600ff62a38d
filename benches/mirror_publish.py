"""What publishing a mirror costs: at first, without a change, after few changes; and reading it.

Fills a mirror with messages and lists and publishes it; again without a change; with every list
read again; and after changing some messages of some users, whose ids are scattered. Then runs
queries.

Usage: ``python benches/mirror_publish.py [--users 10000] [--messages 100] [--words 3] [--every 100]
[--changes 1] [--rounds 15] [--memory-limit 1000000000]``; a word has 33 characters.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from pathlib import Path

from backread.mirror import Mirror, publish
from backread.mirror.database import open_database
from backread.mirror.layout import PUBLISHED
from backread.mirror.schema import MESSAGES, TECHNICAL, USERS
from backread.mirror.store import Store

QUERIES = {
    "count(*), max(created_at)": "SELECT count(*), max(created_at) FROM messages",
    "messages of each user": "SELECT user_id, count(*), max(created_at) FROM messages GROUP BY 1",
    "one user": "SELECT * FROM messages WHERE user_id = 4242",
    "conversations": "SELECT * FROM conversations",
}
CONVERSATION = "Mirror.conversation"


def fill(store: Store, users: int, messages: int, words: int) -> None:
    """Rows of a service, and a finished run that read them."""
    names = ", ".join(name for name, _ in USERS.columns + TECHNICAL[:3])
    store.rows(
        f"INSERT INTO users ({names}) SELECT id, 'User ' || id, id || '@example.com', "
        "md5(id::VARCHAR), now(), now(), now(), 'https://example.com/' || id, NULL, NULL, "
        f"now(), NULL, NULL FROM range({users}) AS ids(id)"
    )
    names = ", ".join(name for name, _ in MESSAGES.columns + TECHNICAL[:3])
    store.rows(
        f"INSERT INTO messages ({names}) SELECT id % {users}, id, "
        f"repeat(md5(id::VARCHAR) || ' ', 1 + id % {2 * words - 1}), true, id % 3 = 0, "
        "TIMESTAMPTZ '2025-01-01' + to_seconds(id * 13), NULL, id % 11 = 0, "
        "CASE id // 7 % 2 WHEN 0 THEN 'user' ELSE 'operator' END, id % 50, NULL, NULL, "
        "'Forename ' || id % 50, 'Surname', NULL, NULL, NULL, now(), NULL, NULL "
        f"FROM range({users * messages}) AS ids(id)"
    )
    store.rows(
        "INSERT INTO lists (user_id, run_id, rows, total, requests, certificate, started_at, "
        "ended_at, kind, first_ids, last_ids) SELECT id, 1, 1, 1, 1, 'snapshot', now(), now(), "
        f"'whole', [id * 3], [id * 3 + 1] FROM range({users}) AS ids(id)"
    )
    store.rows(
        "INSERT INTO runs (run_id, state, started_at, ended_at) "
        "VALUES (1, 'finished', now(), now())"
    )


def change(store: Store, options: argparse.Namespace) -> int:
    """Changes messages as a merge does; gives how many."""
    chance = random.Random(1)
    users = options.users
    ids = [
        user + users * nth
        for user in chance.sample(range(users), users // options.every)
        for nth in chance.sample(range(options.messages), options.changes)
    ]
    values = ", ".join(map(str, ids))
    with store.transaction():
        store.rows(f"UPDATE messages SET read_by_operator = true WHERE id IN ({values})")
        store.rows(
            "INSERT INTO unpublished_messages "
            f"SELECT user_id, id FROM messages WHERE id IN ({values})"
        )
    return len(ids)


def published(store: Store) -> tuple[float, float, int, int]:
    """Seconds of a publication, its CPU seconds, and the bytes and number of the files written."""
    before = inodes(store.folder)
    start, cpu = time.perf_counter(), time.process_time()
    publish.publish(store)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    after = inodes(store.folder)
    new = [after[each] for each in after.keys() - before.keys()]
    return seconds, cpu, sum(new), len(new)


def inodes(folder: Path) -> dict[int, int]:
    """The size of each published file, without those that have two names twice."""
    found = [path.stat() for path in (folder / PUBLISHED).rglob("*.parquet")]
    return {each.st_ino: each.st_size for each in found}


def query_times(mirror: Mirror, rounds: int) -> dict[str, float]:
    """The fewest seconds of each query."""
    taken: dict[str, list[float]] = {name: [] for name in (*QUERIES, CONVERSATION)}
    for _ in range(rounds):
        for label, query in QUERIES.items():
            start = time.perf_counter()
            mirror.sql(query).fetchall()
            taken[label].append(time.perf_counter() - start)
        start = time.perf_counter()
        mirror.conversation(4242)
        taken[CONVERSATION].append(time.perf_counter() - start)
    return {query: min(times) for query, times in taken.items()}


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=100, help="of each user")
    parser.add_argument("--words", type=int, default=3, help="of a message, on average")
    parser.add_argument("--every", type=int, default=100, help="one user of so many changes")
    parser.add_argument("--changes", type=int, default=1, help="messages of each that change")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--memory-limit", type=int, default=10**9, help="bytes for DuckDB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with open_database(folder, options.memory_limit) as connection:
            store = Store(folder, connection)
            fill(store, options.users, options.messages, options.words)
            taken = {"the first": published(store), "without a change": published(store)}
            store.rows("UPDATE lists SET run_id = 2, ended_at = now()")
            taken["every list read again"] = published(store)
            changed = change(store, options)
            taken["after the changes"] = published(store)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"{options.users * options.messages:,} messages, {changed:,} changed; ", end="")
        print(f"peak {peak:,} MB with filling\n")
        print("| publication | seconds | CPU seconds | bytes written | files written |")
        print("|---|---|---|---|---|")
        for label, (seconds, cpu, size, files) in taken.items():
            print(f"| {label} | {seconds:.3f} | {cpu:.3f} | {size:,} | {files} |")
        print("\n| query | ms |\n|---|---|")
        for query, seconds in query_times(Mirror(folder), options.rounds).items():
            print(f"| {query} | {seconds * 1000:.1f} |")


if __name__ == "__main__":
    main()
