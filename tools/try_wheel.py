"""Says whether an installed wheel works: the client and a mirror read what the mock serves.

Usage: ``python -I tools/try_wheel.py [--without-sync]``. Needs the wheel with its extra ``mirror``.
Where DuckDB has no wheels, with musl or free-threaded Python, ``--without-sync`` needs the wheel
alone. Exit code 0 and one line, or a message or traceback.
"""

import platform
import sys
import sysconfig
import tempfile
from pathlib import Path

import backread
from backread.testing import MockServer, World


def main(sync: bool) -> None:
    """Starts a small world, reads all of it, syncs a mirror with it, and compares the counts."""
    world = World(seed=7, users=20, messages_per_user=(0, 30))
    expected = (world.total_users, world.total_messages)
    with MockServer(world) as server, server.client() as client:
        read = (len(client.users.list().to_list()), len(client.messages.all().to_list()))
        mirrored = synced(client) if sync else expected
    for way, counts in (("read", read), ("mirrored", mirrored)):
        if counts != expected:
            raise SystemExit(f"{way} {counts} users and messages of {expected}")
    # An import that needs the GIL switches it on, so this is after all imports.
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    if gil and sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise SystemExit("importing backread switched the GIL on")
    print(
        f"backread {backread.__version__} on {platform.platform()}, {platform.machine()}, Python "
        f"{platform.python_version()}{'' if gil else ' without a GIL'}: {read[0]} users, {read[1]} "
        f"messages{' read and mirrored' if sync else ' read; no sync'}"
    )


def synced(client: backread.Client) -> tuple[int, ...]:
    """Gives the numbers of users and messages in a new mirror after its first sync."""
    from backread.mirror import Mirror

    with tempfile.TemporaryDirectory(prefix="backread-try-") as folder:
        mirror = Mirror(Path(folder) / "chats")
        mirror.sync(client)
        counts = mirror.sql(
            "SELECT (SELECT count(*) FROM users), (SELECT count(*) FROM messages)"
        ).fetchall()
    return tuple(counts[0])


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--without-sync"]):
        sys.exit("usage: python -I tools/try_wheel.py [--without-sync]")
    main(sync=not sys.argv[1:])
