"""The rate limit of a lane, and how the client fares with it."""

import math
import pickle

import pytest

import backread
from backread.testing import Rate


def test_a_rate_reads_back_from_its_text():
    rate = Rate(10, burst=20, says="headers")
    assert str(rate) == "10/s burst=20 says=headers"
    assert Rate.read(str(rate)) == rate
    assert pickle.loads(pickle.dumps(rate)) == rate
    assert (Rate(0.5).burst, Rate(7.9).burst) == (1, 7)
    assert (Rate(3).per_second, Rate(3).says) == (3.0, "retry_after")
    assert eval(repr(rate)) == rate
    unavailable = Rate(10, burst=21, says="nothing", status=503)
    assert str(unavailable) == "10/s burst=21 says=nothing status=503"
    assert Rate.read(str(unavailable)) == unavailable != Rate(10, burst=21, says="nothing")
    assert len({rate, Rate.read(str(rate))}) == 1


@pytest.mark.parametrize(
    "arguments", [{"per_second": 0}, {"per_second": math.nan}, {"per_second": 1, "burst": 0}]
)
def test_a_rate_out_of_bounds_is_a_value_error(arguments):
    with pytest.raises(ValueError, match=r"per_second|burst"):
        Rate(**arguments)
    with pytest.raises(ValueError, match="says"):
        Rate(1, says="loudly")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="status must be 429 or 503"):
        Rate(1, status=500)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="text must be a str such as '10/s burst=20', not None"):
        Rate.read(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("says", ["retry_after", "headers"])
def test_client_waits_for_retry_after_of_a_rate_limit(face, mock, says):
    mock.rate = Rate(0.5, burst=2, says=says)
    client = face.client(mock, max_concurrency=1)
    assert len(face.collect(client.users.list(page_size=50))) == 200
    assert mock.calls("users", status=200).count >= 4
    # What came late waited for its token, two seconds each.
    assert sum(mock.clock.slept) >= 2 * (mock.calls("users", status=200).count - 2) - 0.001


def test_headers_come_with_every_answer(mock, by_hand):
    mock.rate = "2/s burst=2 says=headers"
    caller = by_hand(mock)
    answers = [caller("/external/users") for _ in range(3)]
    assert [each.status for each in answers] == [200, 200, 429]
    assert [each.headers["x-ratelimit-remaining"] for each in answers] == ["1", "0", "0"]
    assert {each.headers["x-ratelimit-limit"] for each in answers} == {"2"}
    assert "retry-after" not in answers[-1].headers


def test_a_worker_is_told_when_to_come_back(face, backread_mock):
    m = backread_mock
    m.rate = Rate(0.1)
    client = face.client(m, on_rate_limit="raise")
    face.call(client.users.page)
    with pytest.raises(backread.RateLimitError) as caught:
        face.call(client.users.page)
    assert caught.value.retry_after == 10
    m.rate = None
    face.call(client.users.page)
