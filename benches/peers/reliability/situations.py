"""One library in one situation; prints what came of it as one line of JSON.

Usage: ``python situations.py LIBRARY SITUATION SECONDS``, with the settings in the environment
(`settings.py`). After so many seconds it says that it hangs, and ends.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import resource
import sys
import threading
import time
from typing import Any

import disclosures
import ends
import processes
from outcomes import Outcome, awaited, megabytes
from settings import Settings

MOST_MEMORY = 12 << 30


def answer(face: Any, settings: Settings) -> Outcome:
    """One call."""
    return asyncio.run(awaited(face, settings))


def twice(face: Any, settings: Settings) -> Outcome:
    """Two calls on one connection."""
    return asyncio.run(awaited(face, settings, calls=2))


SITUATIONS = {
    each.__name__: each
    for each in (
        answer,
        twice,
        processes.fork,
        processes.fork_busy,
        processes.two_loops,
        processes.worker,
        ends.interrupt,
        ends.exit_thread,
        ends.exit_task,
        ends.cancel,
        disclosures.shown,
        disclosures.raised,
        disclosures.pickled,
        disclosures.logged,
    )
}


class Guarded:
    """Says how long it took, how much memory, and that it hangs where it takes too long."""

    def __init__(self, limit: float) -> None:
        self._began = time.monotonic()
        self._held = megabytes("VmRSS")
        self._said = threading.Lock()
        timer = threading.Timer(limit, self._give_up)
        timer.daemon = True
        timer.start()

    def say(self, outcome: Outcome) -> None:
        """Prints the outcome, once."""
        if self._said.acquire(blocking=False):
            seconds = time.monotonic() - self._began
            more = megabytes("VmHWM") - self._held
            print(json.dumps({"seconds": seconds, "mb": more, **outcome}), flush=True)

    def _give_up(self) -> None:
        self.say({"kind": "hangs"})
        os._exit(0)


def main(library: str, situation: str, limit: float) -> None:
    """Runs the situation and prints what came of it."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    face = importlib.import_module(f"{library}_face")
    settings = Settings.told()
    guarded = Guarded(limit)
    guarded.say(SITUATIONS[situation](face, settings))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
