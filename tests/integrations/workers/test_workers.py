"""examples/many-workers on Dask and on Ray, and shards as a dataframe of Dask."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from backread import landing, plan
from backread.testing import MockServer, World

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[3] / "examples" / "many-workers"


@pytest.mark.parametrize("program", ["with_dask", "with_ray"])
def test_every_message_is_landed_once(program, tmp_path):
    world = World(seed=7, users=300, messages_per_user=(0, 60))
    with MockServer(world) as server:
        server.fault("messages every=50: status(503)")
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / f"{program}.py"), str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=240,
            env={
                **os.environ,
                "BACKREAD_BASE_URL": server.url,
                "BACKREAD_API_SECRET": server.secret,
                "BACKREAD_VENDOR": server.vendor,
                # Ray phones home, unless told.
                "RAY_USAGE_STATS_ENABLED": "0",
            },
        )
    assert done.returncode == 0, done.stderr
    rows = f"{world.total_messages} messages in 8 files"
    assert [rows, "certificate: linked"] == done.stdout.splitlines()[-2:]
    [run] = landing.runs(tmp_path)
    table = landing.dataset(tmp_path, run).to_table(["user_id", "id"])
    expected = [
        (user_id, one) for user_id in world.user_ids() for one in world.message_ids(user_id)
    ]
    assert sorted(map(tuple, (row.values() for row in table.to_pylist()))) == sorted(expected)
    assert server.secret not in done.stdout + done.stderr


def test_dask_makes_a_dataframe_of_shards():
    from dask.base import normalize_token, tokenize
    from dask.dataframe import from_map

    world = World(seed=7, users=60, messages_per_user=(0, 20))
    with MockServer(world) as server, server.client() as client:
        shards = plan(client, shards=3)
        frame = from_map(lambda shard: shard.read().to_pandas(), list(shards))
        assert len(frame) == world.total_messages
        tokens = [tokenize(shard) for shard in shards]
        assert len(set(tokens)) == len(shards)
        assert tokens == [tokenize(pickle.loads(pickle.dumps(shard))) for shard in shards]
        assert server.secret not in repr([normalize_token(shard) for shard in shards])
