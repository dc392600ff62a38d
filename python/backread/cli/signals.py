"""Commands that run until they are stopped, for which Ctrl-C is no failure."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType

__all__ = ["ended_by_signal"]


@contextmanager
def ended_by_signal() -> Iterator[Callable[[], None]]:
    """Gives a function that waits for Ctrl-C, SIGTERM or the end of the terminal."""
    stopped = Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    def wait() -> None:
        # In slices, because a signal does not end a wait on Windows.
        while not stopped.wait(0.5):
            pass

    held = {each: signal.signal(each, stop) for each in _endings()}
    try:
        yield wait
    finally:
        for each, handler in held.items():
            signal.signal(each, handler)


def _endings() -> list[signal.Signals]:
    """The signals that end the command."""
    endings = [signal.SIGINT, signal.SIGTERM]
    # Sent when the terminal closes; Windows lacks it, and nohup ignores it.
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:
        endings.append(hang_up)
    return endings
