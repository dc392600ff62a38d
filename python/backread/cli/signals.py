"""Signals that end a command: for most it is a failure, for servers it is not."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from types import FrameType


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


@contextmanager
def ended_like_ctrl_c() -> Iterator[list[int]]:
    """Makes SIGTERM and the end of the terminal a KeyboardInterrupt; gives those that came.

    Otherwise they would end the process at once, or not at all if it is the first of a container:
    Linux ignores signals without a handler there.
    """
    came: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt(f"stopped by {signal.Signals(number).name}")

    # Python sets handlers only in the main thread.
    endings = _endings() if current_thread() is main_thread() else []
    held = [each for each in endings if signal.getsignal(each) is signal.SIG_DFL]
    for each in held:
        signal.signal(each, stop)
    try:
        yield came
    finally:
        for each in held:
            signal.signal(each, signal.SIG_DFL)


def _endings() -> list[signal.Signals]:
    """The signals that end the command."""
    endings = [signal.SIGINT, signal.SIGTERM]
    # Sent when the terminal closes; Windows lacks it, and nohup ignores it.
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:
        endings.append(hang_up)
    return endings
