"""Who sent a request: whether it still waits for the reply, and whose program it is."""

from __future__ import annotations

import os
import socket
from pathlib import Path

__all__ = ["Client"]

CONNECTIONS = Path("/proc/net/tcp")
"""The connections of a Linux machine, with the user of each (proc(5))."""

ROOT = 0


class Client:
    """The other end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def has_gone(self) -> bool:
        """Whether it closed the connection, as a browser does with a request that it gives up."""
        before = self._connection.gettimeout()
        try:
            self._connection.settimeout(0)
            return not self._connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self._connection.settimeout(before)

    def is_other_user(self) -> bool:
        """Whether it runs as another user; False where the system does not say, and for root."""
        try:
            ours, theirs = self._connection.getsockname(), self._connection.getpeername()
            rows = [row.split() for row in CONNECTIONS.read_text().splitlines()[1:]]
        except OSError:
            return False
        ends = [_port(theirs), _port(ours)]
        uids = {int(row[7]) for row in rows if [each[-5:] for each in row[1:3]] == ends}
        return bool(uids) and not uids & {os.geteuid(), ROOT}


def _port(address: tuple[str, int]) -> str:
    return f":{address[1]:04X}"
