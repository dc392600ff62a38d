"""Serves a world with the mock.

Usage: ``python benches/peers/mock.py USERS MOST_MESSAGES``. Prints its URL, secret and vendor, and
then for each line on stdin how many requests it has answered; ends when stdin does.
"""

import sys

from backread.testing import MockServer, World


def main(users: int, most: int) -> None:
    """Serves until stdin ends."""
    with MockServer(World(seed=1, users=users, messages_per_user=(0, most))) as server:
        print(server.url, server.secret, server.vendor, flush=True)
        for _ in sys.stdin:
            print(sum(server.counts().values()), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
