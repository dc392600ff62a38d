"""Services that spell rows differently in each response: signed addresses, or the current time."""

from itertools import count

import pytest

from backread import WalkReport
from canned import envelope, users, walk
from scripted_server import Request, ScriptedServer, answer

ROWS = 1_000


def read_respelled(
    face, *, page_size: int, total: int | None, steady: int | None = None
) -> tuple[list[int], WalkReport, int]:
    """Reads them; the row at the position ``steady`` is always spelled alike."""
    rows, responses = users(ROWS), count()

    def service(request: Request) -> bytes:
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        signature = f"https://files.example/?signature={next(responses)}"
        page = [
            row if row is rows[steady or 0] and steady else {**row, "last_url": signature}
            for row in rows[offset : offset + limit]
        ]
        return answer(200, envelope(page, limit=limit, offset=offset, total=total))

    with ScriptedServer(service) as server:
        read, report = walk(face, server, page_size=page_size)
        return read, report, len(server.requests)


@pytest.mark.parametrize("page_size", [99, 10])
@pytest.mark.parametrize("total", [None, ROWS])
def test_all_rows_are_read_with_few_requests_more(face, page_size: int, total: int | None):
    read, report, requests = read_respelled(face, page_size=page_size, total=total)
    assert read == list(range(1, ROWS + 1))
    # Pages overlap by three rows.
    assert requests <= ROWS / (page_size - 3) + 5
    assert report.missing_links == 0


@pytest.mark.parametrize("page_size", [99, 10])
@pytest.mark.parametrize("total", [None, ROWS])
@pytest.mark.parametrize("steady", [5, 93, 95, 97])
def test_one_row_that_stays_the_same_changes_nothing(face, page_size, total, steady):
    """A user without a picture, whose address would be signed."""
    read, report, requests = read_respelled(face, page_size=page_size, total=total, steady=steady)
    assert read == list(range(1, ROWS + 1))
    assert requests <= ROWS / (page_size - 3) + 10
    assert report.missing_links == 0


def test_the_report_says_that_only_ids_were_compared(face):
    _, report, _ = read_respelled(face, page_size=99, total=ROWS)
    assert report.certificate == "uncertified"
    assert "only their ids were compared" in str(report.reason)
