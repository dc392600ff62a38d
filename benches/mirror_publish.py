"""What publishing a mirror costs after few changes, and what reading it costs then.

Fills a mirror with messages, publishes it, changes some messages of some users, and publishes that
twice: once into the files beside the parts, once by writing every part with a change anew. Then
runs queries over both snapshots in turn.

Usage: ``python benches/mirror_publish.py [--users 10000] [--messages 100] [--every 100]
[--changes 1] [--rounds 15]``
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from pathlib import Path

from backread.mirror import Mirror, publish
from backread.mirror.database import open_database
from backread.mirror.manifest import PUBLISHED
from backread.mirror.schema import MESSAGES, TECHNICAL, USERS
from backread.mirror.store import Store

QUERIES = {
    "count(*), max(created_at)": "SELECT count(*), max(created_at) FROM messages",
    "messages of each user": "SELECT user_id, count(*), max(created_at) FROM messages GROUP BY 1",
    "one user": "SELECT * FROM messages WHERE user_id = 4242",
    "conversations": "SELECT * FROM conversations",
}


def fill(store: Store, users: int, messages: int) -> None:
    """Rows of a service, and a finished run that read them."""
    names = ", ".join(name for name, _ in USERS.columns + TECHNICAL)
    store.rows(
        f"INSERT INTO users ({names}) SELECT id, 'User ' || id, id || '@example.com', "
        "md5(id::VARCHAR), now(), now(), now(), 'https://example.com/' || id, NULL, NULL, "
        f"now(), NULL, NULL FROM range({users}) AS ids(id)"
    )
    names = ", ".join(name for name, _ in MESSAGES.columns + TECHNICAL)
    store.rows(
        f"INSERT INTO messages ({names}) SELECT id % {users}, id, "
        "repeat(md5(id::VARCHAR) || ' ', 1 + id % 5), true, id % 3 = 0, "
        "TIMESTAMPTZ '2025-01-01' + to_seconds(id * 13), NULL, id % 11 = 0, "
        "CASE id // 7 % 2 WHEN 0 THEN 'user' ELSE 'operator' END, id % 50, NULL, NULL, "
        "'Forename ' || id % 50, 'Surname', NULL, NULL, NULL, now(), NULL, NULL "
        f"FROM range({users * messages}) AS ids(id)"
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


def published(store: Store, share: float) -> tuple[float, int, int]:
    """Seconds of a publication, and the bytes and the number of new content files."""
    directory = store.folder / PUBLISHED
    before = {entry.name for entry in directory.glob("*.parquet")} if directory.exists() else set()
    publish.CHANGED_SHARE = share
    start = time.perf_counter()
    publish.publish(store)
    seconds = time.perf_counter() - start
    new = [
        entry.stat().st_size
        for entry in directory.glob("*.parquet")
        if entry.name not in before and entry.name.startswith(("messages", "users"))
    ]
    return seconds, sum(new), len(new)


def query_times(mirrors: dict[str, Mirror], rounds: int) -> dict[str, dict[str, float]]:
    """The fewest seconds of each query over each mirror, in random turns."""
    taken: dict[str, dict[str, list[float]]] = {
        query: {name: [] for name in mirrors} for query in QUERIES
    }
    for _ in range(rounds):
        for label, query in QUERIES.items():
            for name in random.sample([*mirrors], len(mirrors)):
                start = time.perf_counter()
                mirrors[name].sql(query).fetchall()
                taken[label][name].append(time.perf_counter() - start)
    return {
        query: {name: min(times) for name, times in each.items()} for query, each in taken.items()
    }


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=100, help="of each user")
    parser.add_argument("--every", type=int, default=100, help="one user of so many changes")
    parser.add_argument("--changes", type=int, default=1, help="messages of each that change")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "beside"
        first.mkdir()
        default = publish.CHANGED_SHARE
        with open_database(first) as connection:
            store = Store(first, connection)
            fill(store, options.users, options.messages)
            everything = published(store, default)
            changed = change(store, options)
        second = Path(folder) / "anew"
        shutil.copytree(first, second)
        written = {}
        for path, share in ((second, 0.0), (first, default)):
            with open_database(path) as connection:
                written[path.name] = published(Store(path, connection), share)
        print(f"{options.users * options.messages:,} messages, {changed:,} changed\n")
        print("| publication | seconds | bytes | new files |\n|---|---|---|---|")
        for label, (seconds, size, files) in (
            ("the first", everything),
            ("parts with a change anew", written["anew"]),
            ("changed rows beside the parts", written["beside"]),
        ):
            print(f"| {label} | {seconds:.3f} | {size:,} | {files} |")
        mirrors = {path.name: Mirror(path) for path in (second, first)}
        print("\n| query, ms | parts alone | with changed rows | ratio |\n|---|---|---|---|")
        for query, times in query_times(mirrors, options.rounds).items():
            anew, beside = times["anew"] * 1000, times["beside"] * 1000
            print(f"| {query} | {anew:.1f} | {beside:.1f} | {beside / anew:.2f} |")


if __name__ == "__main__":
    main()
