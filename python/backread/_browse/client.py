"""Whose program sent a request."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

__all__ = ["is_other_user"]

CONNECTIONS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""The connections of a Linux machine, with the user of each (proc(5)).

A socket of IPv6 that connects to ``::ffff:127.0.0.1`` is in the second.
"""

ROOT = 0


def is_other_user(connection: socket.socket) -> bool:
    """Whether the other end runs as another user; False where no one can know, and for root."""
    rows = [row.split() for table in CONNECTIONS for row in _lines(table)]
    try:
        ours = _written(connection.getsockname())
        theirs = _written(connection.getpeername())
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
