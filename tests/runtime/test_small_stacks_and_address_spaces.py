"""Reads in processes with little memory: limited addresses, and small stacks of threads.

musl gives a thread a stack of 128 KiB unless it asks for more.
"""

import subprocess
import sys

import pytest

from backread.testing import MockServer, World
from helpers.python_process import check_silent, run


def test_threads_read_where_addresses_are_limited():
    """As batch systems do by `ulimit -v`: memory that is reserved counts, used or not."""
    pytest.importorskip("resource")
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


STACK_BYTES = 128 * 1024
# A stack that is too small ends the process, so each call runs in a separate process.
PROGRAM = """
import asyncio, sys, threading
from backread.testing import MockServer, World

async def wait_for_all(server):
    async with server.async_client() as client:
        user = (await client.users.page()).items[0]
        return (await client.users.get(user.id)).id, len(await client.messages.all().to_list())

def call(server):
    with server.client() as client:
        done.append(calls[sys.argv[1]](server, client))

calls = {
    "get": lambda server, client: client.users.get(client.users.page().items[0].id),
    "all": lambda server, client: len(client.messages.all().to_list()),
    "probe": lambda server, client: client.probe(),
    "await": lambda server, client: asyncio.run(wait_for_all(server)),
}
done = []
threading.stack_size(int(sys.argv[2]))
with MockServer(World(seed=7, users=30, messages_per_user=(1, 30))) as server:
    thread = threading.Thread(target=call, args=(server,))
    thread.start()
    thread.join()
print(len(done))
"""


# A build without optimisation needs more: make test-long installs the release build.
@pytest.mark.long
@pytest.mark.parametrize("call", ["get", "all", "probe", "await"])
def test_a_call_needs_no_more_stack_than_musl_gives_a_thread(call):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, call, str(STACK_BYTES)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stdout) == (0, "1\n"), run.stderr
