"""Who sent a request: whether it still waits for the reply, and whose program it is."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

__all__ = ["Client"]

CONNECTIONS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""The connections of a Linux machine, with the user of each (proc(5)).

A socket of IPv6 that connects to ``::ffff:127.0.0.1`` is in the second.
"""

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
        rows = [row.split() for table in CONNECTIONS for row in _lines(table)]
        try:
            ours = _written(self._connection.getsockname())
            theirs = _written(self._connection.getpeername())
        except OSError:
            # It has gone, so it cannot be the browser.
            return True
        if not _users(rows, ours, theirs):
            # The tables lack our own end too: this system leaves them empty.
            return False
        users = _users(rows, theirs, ours)
        return not users or not users <= {os.geteuid(), ROOT}


def _lines(table: Path) -> list[str]:
    try:
        return table.read_text().splitlines()[1:]
    except OSError:
        return []


def _users(rows: list[list[str]], local: str, remote: str) -> set[int]:
    return {int(row[7]) for row in rows if row[1].endswith(local) and row[2].endswith(remote)}


def _written(address: tuple[str, int]) -> str:
    """An address as the tables write it; those of IPv6 have more digits before it."""
    host = int.from_bytes(socket.inet_aton(address[0]), sys.byteorder)
    return f"{host:08X}:{address[1]:04X}"
