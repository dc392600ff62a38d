"""`Mirror.forget` in processes that kill themselves at one of their file-system calls.

Each line of stdin is a JSON list: a mirror's folder, the id of a user, a landing's folder and the
number of a call, as Python's audit events see them. A process that has imported everything already
forgets, and kills itself at that call; its exit code is printed. With the number 0 it forgets to
the end, and what is printed is a JSON list of the calls before which something changed on the disk:
a kill at any other leaves the same as one of these.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import duckdb  # noqa: F401 - not again in each process
import pyarrow.dataset  # noqa: F401

from backread.mirror import Mirror

CALLS = {
    "open",
    "os.chmod",
    "os.link",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.symlink",
    "shutil.rmtree",
}


def state(*folders: str) -> list[Any]:
    """What tells that something changed below the folders."""
    paths = sorted(path for folder in folders for path in Path(folder).rglob("*"))
    found = []
    for path in paths:
        status = path.lstat()
        found.append((path, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns))
    return found


def forget(folder: str, user_id: int, landing: str, last: int = 0) -> list[int]:
    """Forgets, and gives the calls that tell; at the call ``last`` the process ends."""
    below = (str(Path(folder).absolute()), str(Path(landing).absolute()))
    calls, before = 0, []
    telling = []

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal calls, before
        if event not in CALLS or not any(str(each).startswith(below) for each in arguments):
            return
        calls += 1
        if calls == last:
            os.kill(os.getpid(), signal.SIGKILL)
        if not last and (now := state(folder, landing)) != before:
            before = now
            telling.append(calls)

    mirror = Mirror(folder)
    sys.addaudithook(count)
    mirror.forget(user_id, landings=[landing])
    return telling


def in_a_process(arguments: list[Any]) -> None:
    """Prints the calls that tell, or the exit code of a process that was killed."""
    child = os.fork()
    if child == 0:
        print(json.dumps(forget(*arguments)), flush=True)
        os._exit(0)
    if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        print(code, flush=True)


if __name__ == "__main__":
    for line in sys.stdin:
        in_a_process(json.loads(line))
