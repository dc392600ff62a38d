"""One `Mirror.forget` in a process of its own, which kills itself at one of its file-system calls.

Usage: ``python forget_child.py FOLDER USER_ID LANDING [NUMBER]``. Without a number it prints how
many such calls there are, as Python's audit events see them.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

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

if __name__ == "__main__":
    folder, user_id, landing, *number = sys.argv[1:]
    below = (str(Path(folder).absolute()), str(Path(landing).absolute()))
    last = int(number[0]) if number else 0
    calls = 0

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        global calls
        if event not in CALLS or not any(str(each).startswith(below) for each in arguments):
            return
        calls += 1
        if calls == last:
            os.kill(os.getpid(), signal.SIGKILL)

    mirror = Mirror(folder)
    sys.addaudithook(count)
    mirror.forget(int(user_id), landings=[landing])
    print(calls)
