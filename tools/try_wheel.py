"""Says whether an installed wheel works: the client reads what the mock serves.

Usage: ``python -I tools/try_wheel.py``. Needs only the wheel. Exit code 0 and one line, or a
traceback.
"""

import platform

import backread
from backread.testing import MockServer, World


def main() -> None:
    """Starts a small world, reads all of it, and compares the counts."""
    world = World(seed=7, users=20, messages_per_user=(0, 30))
    with MockServer(world) as server, server.client() as client:
        users = client.users.list().to_list()
        messages = client.messages.all().to_list()
    if (len(users), len(messages)) != (world.total_users, world.total_messages):
        raise SystemExit(f"read {len(users)} users and {len(messages)} messages of {world!r}")
    print(
        f"backread {backread.__version__} on {platform.platform()}, Python "
        f"{platform.python_version()}: {len(users)} users, {len(messages)} messages"
    )


if __name__ == "__main__":
    main()
