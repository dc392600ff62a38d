"""Debian's HAProxy in the foreground, before one upstream whose health it checks."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

from nginx import Front
from processes import accepts, on_free_port, running

PROGRAM = "/usr/sbin/haproxy"


@contextlib.contextmanager
def haproxy(folder: Path, upstream: Path, *, frontend: str = "") -> Iterator[Front]:
    """HAProxy before an upstream on a Unix socket; without it, it answers 503 at once.

    ``frontend`` is lines of the configuration.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "haproxy.log"

    def configuration(port: int) -> str:
        return f"""
global
    nbthread 1
    maxconn 512
    hard-stop-after 5s
    noreuseport
    log stdout format raw local0
defaults
    mode http
    log global
    option dontlognull
    option http-ignore-probes
    log-format "%Ts.%ms %ST %HU"
    timeout connect 2s
    timeout client 60s
    timeout server 60s
frontend front
    bind 127.0.0.1:{port}
    {frontend}
    default_backend origin
backend origin
    retries 0
    server only unix@{upstream} check inter 50ms fall 1 rise 1
"""

    def start(port: int) -> contextlib.AbstractContextManager[object]:
        file = folder / "haproxy.cfg"
        file.write_text(configuration(port), "utf-8")
        # -db: in the foreground, one process.
        command = [PROGRAM, "-db", "-f", file]
        # SIGTERM would lose the log of requests that have just been answered.
        return running(command, log, lambda: accepts(port), signal.SIGUSR1)

    with on_free_port(start) as port:
        yield Front(f"http://127.0.0.1:{port}", log)
