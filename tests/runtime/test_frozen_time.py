"""Tests freeze the time with freezegun or time-machine.

freezegun replaces ``datetime`` in every loaded module. To find it, it reads all attributes of these
modules, which imports whatever ``backread`` imports on first use.
"""

import pytest

from backread.testing import MockServer, World
from helpers.python_process import check_silent, run

pytest.importorskip("duckdb")

# Modules that are replaced or imported under freezegun stay so: each case is a process.
STEPS = """
import asyncio, pickle, sys
from pathlib import Path

def frozen():
    if sys.argv[1] == "freezegun":
        from freezegun import freeze_time
        return freeze_time("2026-01-01")
    import time_machine
    return time_machine.travel("2026-01-01", tick=False)

def use(real):
    from backread import AsyncClient, Client, Mirror, ServiceProfile
    mirror = Mirror(Path(sys.argv[2]) / "chats")
    with Client() as client:
        user = client.users.list().to_list()[-1]
        mirror.sync(client, mode="full")
        profile = client.probe()
    assert ServiceProfile.from_json(profile.to_json()) == profile
    conversation = mirror.conversation(user.id)
    assert conversation.user == user
    # A class that was looked up while time was frozen is freezegun's, and pickles would name it.
    assert not real or type(conversation.user.created_at) is type(user.created_at)
    assert pickle.loads(pickle.dumps((profile, conversation))) == (profile, conversation)
    assert mirror.search("a") and mirror.figures() and mirror.changes(since=1)
    mirror.export(mirror.folder.parent / "users.csv", tables=["users"], replace=True)

    async def main():
        async with AsyncClient() as client:
            assert await client.users.get(user.id) == user

    asyncio.run(main())

import backread
if sys.argv[3] == "used before":
    use(real=True)
with frozen():
    use(real=False)
use(real=True)
"""


@pytest.mark.parametrize(
    ("library", "before"),
    [("freezegun", "used before"), ("freezegun", "imported"), ("time_machine", "used before")],
)
def test_mirror_sync_and_probe_work_before_during_and_after_frozen_time(tmp_path, library, before):
    pytest.importorskip(library)
    code = f"import sys; sys.argv[1:] = {[library, str(tmp_path), before]}\n{STEPS}"
    with MockServer(World(seed=3, users=15, messages_per_user=(0, 9))) as server:
        check_silent(run(code, server))
