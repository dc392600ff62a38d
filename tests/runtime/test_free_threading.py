"""Many threads at once on the same client and the same objects, with a GIL and without one."""

import gc
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

THREADS = 16
ROUNDS = 30
WITHOUT_GIL = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def together(work: Callable[[int], Any]) -> list[Any]:
    """What the work gives in each of the threads, which begin it at one moment."""
    barrier = threading.Barrier(THREADS)

    def begin(number: int) -> Any:
        barrier.wait(timeout=60)
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def test_the_import_leaves_the_gil_as_it_is():
    program = "import sys, backread.testing; print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.strip() == str(not WITHOUT_GIL)


def test_threads_read_in_every_way_at_once(backread_mock):
    client = backread_mock.client()
    world = backread_mock.world
    everything = {(user, one) for user in world.user_ids() for one in world.message_ids(user)}
    was_on = gc.isenabled()

    def read(number: int) -> Any:
        listing = client.messages.all(as_dict=number % 2 == 0)
        if number % 2:
            return {(one.user_id, one.id) for one in listing} == everything
        return {one["id"] for one in listing} == {one for _, one in everything}

    assert together(read) == [True] * THREADS
    assert gc.isenabled() is was_on


def test_threads_share_one_listing_and_each_row_comes_once(backread_mock):
    rows = iter(backread_mock.client().users.list())
    lock = threading.Lock()

    def take(_: int) -> list[int]:
        mine = []
        while True:
            # An iterator of Python's own runs in one thread at a time.
            with lock:
                row = next(rows, None)
            if row is None:
                return mine
            mine.append(row.id)

    taken = [one for mine in together(take) for one in mine]
    assert sorted(taken) == sorted(backread_mock.world.user_ids())
