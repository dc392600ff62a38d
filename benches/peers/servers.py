"""Servers for mock_server.py, each in a process that prints its URL and serves until stdin ends.

Usage: ``python benches/peers/servers.py mock USERS MOST_MESSAGES`` serves a world with the mock. It
prints its secret and vendor too, and then for each line on stdin how many requests it has answered.
``... httpserver FILE`` serves the file as JSON at /external/users with pytest-httpserver.
"""

import logging
import sys
from pathlib import Path


def mock(users: int, most: int) -> None:
    """Serves a world."""
    from backread.testing import MockServer, World

    with MockServer(World(seed=1, users=users, messages_per_user=(0, most))) as server:
        print(server.url, server.secret, server.vendor, flush=True)
        for _ in sys.stdin:
            print(sum(server.counts().values()), flush=True)


def httpserver(file: Path) -> None:
    """Serves a file."""
    from pytest_httpserver import HTTPServer

    # It is measured at its best: without a line on stderr for each request.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    with HTTPServer(host="127.0.0.1", port=0) as server:
        server.expect_request("/external/users").respond_with_data(
            file.read_bytes(), content_type="application/json; charset=utf-8"
        )
        print(server.url_for("").rstrip("/"), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1] == "mock":
        mock(int(sys.argv[2]), int(sys.argv[3]))
    else:
        httpserver(Path(sys.argv[2]))
