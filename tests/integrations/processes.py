"""Programs in the foreground, each ended by its own process id, and ports for them."""

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

SECONDS_TO_START = 30
ATTEMPTS = 5


def free_port() -> int:
    """A port of loopback that nothing listened on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def accepts(port: int) -> bool:
    """Something listens there."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextlib.contextmanager
def running(
    command: Sequence[str | Path],
    log: Path,
    ready: Callable[[], bool],
    stop: signal.Signals = signal.SIGTERM,
    **options: Any,
) -> Iterator[None]:
    """Runs a program from when it is ready; RuntimeError with its output if it ends before."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **options
        )
    try:
        end = time.monotonic() + SECONDS_TO_START
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{command[0]} did not start: {log.read_text('utf-8')}")
            time.sleep(0.01)
        yield
    finally:
        process.send_signal(stop)
        process.wait()


@contextlib.contextmanager
def on_free_port(
    start: Callable[[int], contextlib.AbstractContextManager[object]],
) -> Iterator[int]:
    """Calls ``start`` with a port, and with another one if something else took it first."""
    with contextlib.ExitStack() as stack:
        for attempt in range(ATTEMPTS):
            port = free_port()
            try:
                stack.enter_context(start(port))
                break
            except RuntimeError:
                if attempt == ATTEMPTS - 1:
                    raise
        yield port
