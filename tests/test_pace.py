"""The pace that all requests of a client share, as the service sees it."""

import threading
import time
from typing import Any

import pytest

from backread.testing import Fault, Rate, World
from canned import envelope, message, paged, user, users
from scripted_server import answer


# Where nothing is said of the wait, the search may take most of these 400 requests.
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("says", "share"), [("retry_after", 0.6), ("headers", 0.6), ("nothing", 0.4)]
)
def test_what_a_service_allows_is_found_and_kept_to(face, backread_server, says, share, status):
    world = World(seed=3, users=380, messages_per_user=(1, 2))
    with backread_server.lane(world=world) as m:
        m.clock.virtual()
        m.rate = Rate(20, burst=10, says=says, status=status)
        start = m.clock.now
        client = face.client(m, max_retries=20)
        rows = face.collect(client.messages.all())
        seconds = (m.clock.now - start).total_seconds()
        statuses = m.statuses()
    assert len({row.user_id for row in rows}) == 380
    assert statuses[200] >= share * (10 + 20 * seconds)
    assert statuses[status] <= 0.15 * statuses[200]


def test_default_clients_read_everything_through_a_limit_signalled_by_503(face, backread_server):
    world = World(seed=3, users=150, messages_per_user=(1, 2))
    rate = Rate(20, burst=6, says="nothing", status=503)
    with backread_server.lane(world=world) as m:
        m.clock.virtual()
        m.rate = rate
        rows = face.collect(face.client(m).messages.all())
        statuses = m.statuses()
    assert len({row.user_id for row in rows}) == 150
    # Most of them before the rate is known; retries and the pace get past them.
    assert 0 < statuses[503] < 0.8 * statuses[200]


def test_a_dead_backend_of_three_slows_nobody_down(face, mock):
    mock.on("messages").fail("status(503)", every=3)
    start = mock.clock.now
    face.collect(face.client(mock, max_retries=20).messages.all())
    down = mock.calls("messages", status=503).count
    assert down > 50
    # The retries' own short backoffs, and a trial of a lower pace.
    assert (mock.clock.now - start).total_seconds() < 20


def test_no_herd_comes_back_when_a_wait_is_over(face, mock):
    mock.rate = Rate(1, burst=5)
    client = face.client(mock, max_concurrency=16)
    asked = mock.world.user_ids()[:40]
    assert len(face.collect(client.messages.all(users=asked))) > 0
    # Each that was refused is asked for again, and the sixteen do not come at once each time.
    assert mock.statuses()[429] < 40


def test_a_503_that_asks_for_a_wait_holds_all(face, mock):
    asked = mock.world.user_ids()[:5]
    mock.on("messages", user=asked[0]).fail(Fault.status(503, retry_after=30), times=1)
    start = mock.clock.now
    client = face.client(mock, max_concurrency=1)
    face.collect(client.messages.all(users=asked))
    assert (mock.clock.now - start).total_seconds() >= 30
    assert mock.clock.slept[0] == 30
    assert mock.calls("messages", status=503).count == 1


def test_a_service_that_is_down_now_and_then_is_not_taken_for_one_with_a_rate(face, mock):
    mock.on("messages").fail(Fault.status(503, retry_after=1), p=0.1)
    start = mock.clock.now
    face.collect(face.client(mock, max_retries=20).messages.all())
    down = mock.calls("messages", status=503).count
    assert down > 5
    # No longer than the waits that were asked for, one after another.
    assert (mock.clock.now - start).total_seconds() <= down + 1


def test_it_begins_modestly_and_grows(scripted):
    lock = threading.Lock()
    under_way: list[int] = []
    now = 0

    def service(request: Any) -> bytes:
        nonlocal now
        if request.path == "/external/users":
            return paged(users(300))(request)
        with lock:
            now += 1
            under_way.append(now)
        time.sleep(0.02)
        with lock:
            now -= 1
        return answer(200, envelope([message(1)], key="messages"))

    server = scripted(service)
    with server.client(max_concurrency=24) as client:
        assert len(client.messages.all().to_list()) == 300
    assert max(under_way[:4]) <= 8
    assert 8 < max(under_way) <= 24


def test_a_service_that_is_overloaded_is_asked_less_at_once(scripted):
    lock = threading.Lock()
    now = most = 0
    busy = threading.Event()

    def service(request: Any) -> bytes:
        nonlocal now, most
        if request.path == "/external/users":
            return paged(users(200))(request)
        with lock:
            now += 1
            over = now > 8
            most = max(most, now if busy.is_set() else 0)
            if over:
                busy.set()
        # A refusal takes less time than an answer, also where threads wait for each other.
        time.sleep(0.01 if over else 0.04)
        with lock:
            now -= 1
        return answer(503) if over else answer(200, envelope([message(1)], key="messages"))

    server = scripted(service)
    with server.client(max_concurrency=32, max_retries=50) as client:
        assert len(client.messages.all().to_list()) == 200
    assert busy.is_set()
    assert most < 24


def test_a_call_that_is_given_up_gives_its_place_back(scripted):
    server = scripted(
        lambda request: answer(200, user(42)) if request.path.endswith("42") else server.stall()
    )
    with server.client(max_concurrency=1, timeout=0.4, max_retries=0) as client:
        for _ in range(5):
            with pytest.raises(TimeoutError):
                client.users.get(1)
        assert client.users.get(42).id == 42
