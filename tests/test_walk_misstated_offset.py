"""Services whose pages are right, but whose ``offset`` or ``limit`` says something else."""

from collections.abc import Callable

import pytest

from canned import envelope, users, walk
from scripted_server import Request, ScriptedServer, answer

ROWS = 2_000


@pytest.mark.parametrize("page_size", [99, 10])
@pytest.mark.parametrize(
    "said",
    [
        lambda offset, limit: offset + 1,
        lambda offset, limit: offset + limit,
        lambda offset, limit: 0,
        lambda offset, limit: offset // limit,
    ],
    ids=["from one", "the next", "always 0", "the page's number"],
)
def test_all_rows_are_read(face, said: Callable[[int, int], int], page_size: int):
    rows = users(ROWS)

    def service(request: Request) -> bytes:
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        page = rows[offset : offset + limit]
        claimed = said(offset, limit)
        return answer(200, envelope(page, limit=limit, offset=claimed, total=ROWS))

    with ScriptedServer(service) as server:
        read, report = walk(face, server, page_size=page_size)
    assert sorted(read) == list(range(1, ROWS + 1))
    assert report.certificate == "uncertified"


def test_a_page_as_full_as_requested_is_not_the_whole_list_whatever_limit_it_says(face):
    rows = users(150)

    def service(request: Request) -> bytes:
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        page = rows[offset : offset + limit]
        said = {"limit": limit + 1, "offset": offset, "total": len(page)}
        return answer(200, envelope(page, **said))

    with ScriptedServer(service) as server:
        _, report = walk(face, server, page_size=3)
    assert report.certificate == "uncertified"
