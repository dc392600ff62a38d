"""What a limit on addresses does to reads: memory that an allocator reserves counts."""

import pytest

from backread.testing import MockServer, World
from helpers.python_process import check_silent, run

pytest.importorskip("resource")


def test_threads_read_where_addresses_are_limited():
    """As batch systems do by `ulimit -v`: memory that is reserved counts, used or not."""
    with MockServer(World(seed=7, users=8, messages_per_user=50)) as server:
        done = run(
            """
import resource
from concurrent.futures import ThreadPoolExecutor
from backread import Client

resource.setrlimit(resource.RLIMIT_AS, (400_000_000, 400_000_000))
with Client() as client, ThreadPoolExecutor(8) as pool:
    ids = [user.id for user in client.users.list()]
    print(sum(pool.map(lambda user: len(client.messages.list(user).to_list()), ids)))
""",
            server,
            # Python's own memory takes 64 MB of addresses for each thread otherwise.
            MALLOC_ARENA_MAX="2",
        )
    check_silent(done, "400")
