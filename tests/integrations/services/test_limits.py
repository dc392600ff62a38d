"""nginx's ``limit_req``, as 429 and as 503, and a pool with an unhealthy upstream."""

from pathlib import Path
from typing import Any

import pytest
import scenarios

SECONDS = 3.0


def limited(folder: Path, rate: int, status: int, **options: Any) -> scenarios.Paced:
    """A read through a limit, a second one if it fails: six 503s in a row may come by chance."""
    for attempt in ("first", "second"):
        (folder / attempt).mkdir()
        paced = scenarios.limited(folder / attempt, rate, status, seconds=SECONDS, **options)
        if paced.read.error is None:
            break
    return paced


@pytest.mark.parametrize(
    ("rate", "status", "retry_after"),
    [
        (50, 429, True),
        (50, 503, False),
        *(
            pytest.param(rate, status, retry_after, marks=pytest.mark.long)
            for rate in (10, 500)
            for status, retry_after in ((429, False), (503, True))
        ),
    ],
)
def test_one_call_reads_everything_through_a_limit(rate, status, retry_after, folder):
    paced = limited(folder, rate, status, retry_after=retry_after)
    assert paced.read.error is None
    # At 10 a second the 16 requests that are in flight at first are most of what is sent.
    assert paced.rejected_share < (0.75 if rate == 10 else 0.5)
    # A second's wait is long at 500 a second, and each 503 costs one until it means "too fast".
    costly = retry_after and status == 503 and rate == 500
    assert paced.used > (0.01 if costly else 0.1 if retry_after else 0.2)


def test_an_unhealthy_upstream_does_not_end_the_read(folder):
    # Of 600 requests, each of which meets it six times in a row once in 729, one may well fail.
    paced = scenarios.unhealthy_pool(folder, 600, max_retries=15)
    assert paced.read.error is None
    assert paced.rejected_share == pytest.approx(1 / 3, abs=0.15)
