"""What the allocator shows of itself: freed columns, and a limit on addresses."""

import platform
from pathlib import Path

import pytest

from backread.testing import MockServer, World
from interpreter import check_silent, run

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="this system does not say what a process takes"
)

MEGABYTES = """
import os
from backread import Client

def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
"""


@pytest.mark.skipif(
    (platform.libc_ver()[0], platform.machine()) != ("glibc", "x86_64"),
    reason="elsewhere the system's allocator is used",
)
def test_most_memory_of_dropped_columns_goes_back_to_the_system_at_once():
    pytest.importorskip("pyarrow")
    with MockServer(World(seed=7, users=400, messages_per_user=100)) as server:
        done = run(
            MEGABYTES
            + """
import gc
import pyarrow as pa
with Client() as client:
    pa.table(client.messages.all())
    before = megabytes()
    held = [pa.table(client.messages.all()) for _ in range(10)]
    full = megabytes()
    del held
    gc.collect()
    print(full - before > 50, megabytes() - before < (full - before) / 2)
""",
            server,
        )
    check_silent(done, "True True")


def test_threads_read_where_addresses_are_limited():
    """As batch systems do by `ulimit -v`: memory that is reserved counts, used or not."""
    with MockServer(World(seed=7, users=8, messages_per_user=50)) as server:
        done = run(
            """
import resource
from concurrent.futures import ThreadPoolExecutor
from backread import Client

resource.setrlimit(resource.RLIMIT_AS, (800_000_000, 800_000_000))
with Client() as client, ThreadPoolExecutor(8) as pool:
    ids = [user.id for user in client.users.list()]
    print(sum(pool.map(lambda user: len(client.messages.list(user).to_list()), ids)))
""",
            server,
        )
    check_silent(done, "400")
