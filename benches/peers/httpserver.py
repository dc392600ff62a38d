"""Serves the bytes of one file as JSON at /external/users with pytest-httpserver.

Usage: ``python benches/peers/httpserver.py FILE``. Prints its URL, and serves until stdin ends.
"""

import logging
import sys
from pathlib import Path

from pytest_httpserver import HTTPServer


def main(file: Path) -> None:
    """Serves until stdin ends."""
    # It is measured at its best: without a line on stderr for each request.
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    with HTTPServer(host="127.0.0.1", port=0) as server:
        server.expect_request("/external/users").respond_with_data(
            file.read_bytes(), content_type="application/json; charset=utf-8"
        )
        print(server.url_for("").rstrip("/"), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
