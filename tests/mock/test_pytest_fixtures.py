"""The pytest fixtures of the wheel, as a user's test suite has them."""

import subprocess
import sys

from helpers.pytest_outcome import outcome

pytest_plugins = ["pytester"]


def test_the_server_has_200_users_with_messages(backread_server):
    world = backread_server.world
    assert (world.seed, world.total_users, world.messages_per_user) == (7, 200, (0, 120))
    assert backread_server.url.startswith("http://127.0.0.1:")


def test_fixtures_need_no_setup(pytester):
    outcome(
        pytester,
        """
seen = []

def test_sync(backread_server, backread_client):
    seen.append((backread_server, backread_client))
    users = backread_client.users.list().to_list()
    assert len(users) == backread_server.world.total_users

def test_async(backread_server, backread_async_client):
    async def main():
        return [user async for user in backread_async_client.users.list()]
    assert len(asyncio.run(main())) == backread_server.world.total_users

def test_the_server_is_the_same_and_the_client_was_closed(backread_server, backread_client):
    [(server, client)] = seen
    assert server is backread_server
    assert client is not backread_client
    with pytest.raises(Exception, match="closed"):
        client.users.get(42)
""",
        passed=3,
    )


def test_the_lane_of_a_test_is_freed_at_its_end(pytester):
    outcome(
        pytester,
        """
import gc, weakref
lanes = []

def test_passes(backread_mock):
    lanes.append(weakref.ref(backread_mock))

def test_fails(backread_mock):
    lanes.append(weakref.ref(backread_mock))
    assert False

def test_later():
    sys.last_exc = sys.last_value = sys.last_traceback = None
    gc.collect()
    assert [lane() for lane in lanes] == [None, None]
""",
        passed=2,
        failed=1,
    )


def test_nothing_is_loaded_before_a_fixture_is_used(pytester):
    outcome(
        pytester,
        """
def test_not_loaded():
    assert "backread._backread" not in sys.modules

def test_loaded(backread_client):
    assert "backread._backread" in sys.modules
""",
        passed=2,
    )


# What pytest 6.2.5 has not, and pytest 7.4 with pluggy 1.0 neither: an error at the import of a
# plugin ends every run where it is installed.
OLDER_PYTEST = """
import pytest

def hookimpl(*, hookwrapper=False, optionalhook=False, tryfirst=False, trylast=False):
    return lambda function: function

pytest.hookimpl = hookimpl
del pytest.StashKey
import backread.pytest_plugin
"""


def test_an_older_pytest_can_load_the_plugin():
    subprocess.run([sys.executable, "-c", OLDER_PYTEST], check=True)


def test_code_that_makes_its_own_client_reaches_the_lane(pytester):
    outcome(
        pytester,
        """
import os
from backread import Client

def count():
    with Client() as client:
        return len(list(client.users.list()))

@pytest.mark.backread(world={"users": 3})
def test_lane(backread_environment):
    assert count() == backread_environment.world.total_users == 3

def test_server(backread_environment):
    assert count() == 200

def test_nothing_is_left_behind():
    assert "BACKREAD_API_SECRET" not in os.environ
""",
        passed=3,
    )
