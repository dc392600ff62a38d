"""A service of one list some of whose pages fail."""

from collections.abc import Callable, Sequence
from typing import Any

from helpers.api_rows import paged
from helpers.scripted_server import Request, answer

SERVER_ERROR = answer(500, b"oops")


def failing(
    rows: Sequence[Any], key: str, fails: Callable[[range], bool], failure: Any = SERVER_ERROR
) -> Any:
    """A service of one list that fails the pages of which `fails` says so."""
    whole = paged(rows, key=key)

    def service(request: Request) -> Any:
        if not request.path.endswith(key):
            return whole(request)
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        return failure if fails(range(offset, offset + limit)) else whole(request)

    return service
