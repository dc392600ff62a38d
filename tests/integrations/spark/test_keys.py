"""What tells rows and runs apart, without a session."""

import pytest

from backread import ConfigurationError, LandingError, landing, plan
from backread._client.columns import KEYS
from backread.integrations.spark.columns import spark_schema
from backread.integrations.spark.landed import LandedStreamReader
from backread.integrations.spark.merging import _key
from backread.testing import MockServer, World


def test_rows_are_told_apart_by_their_key_and_refused_without_it():
    for resource in ("users", "messages"):
        columns = spark_schema(resource, landed=True).names
        assert _key(columns) == KEYS[resource]
        upper = [name.upper() for name in columns]
        assert _key(upper) == tuple(name.upper() for name in KEYS[resource])
    for columns in (
        ["id", "body", "run"],
        # Of users or of messages, nobody knows.
        ["id", "run"],
        ["id", "name", "sender_type", "run"],
        ["user_id", "id", "body"],
        ["name", "run"],
    ):
        with pytest.raises(ConfigurationError, match=r"these rows have no (user_id|run|id)"):
            _key(columns)


def test_a_stream_reads_no_manifest_that_is_behind_it(tmp_path):
    with MockServer(World(seed=1, users=3)) as server, server.client() as client:
        for _ in range(3):
            shards = plan(client, resource="users")
            landing.begin(tmp_path, shards)
            landing.commit(
                tmp_path, shards.plan_id, [landing.land(tmp_path, each) for each in shards]
            )
    # Whoever opens these ends in an error.
    for number in (1, 2):
        (tmp_path / "manifests" / f"{number:08}.json").write_text("damaged")
    options = {"landing": str(tmp_path), "resource": "users"}
    reader = LandedStreamReader(options, {}, spark_schema("users", landed=True))
    assert reader.latestOffset({"run": 2}) == {"run": 3}
    assert len(reader.partitions({"run": 2}, {"run": 3})) == 1


def test_a_stream_never_goes_back(tmp_path):
    folder = tmp_path / "landed"
    with MockServer(World(seed=1, users=3)) as server, server.client() as client:
        for _ in range(2):
            shards = plan(client, resource="users")
            landing.begin(folder, shards)
            landing.commit(folder, shards.plan_id, [landing.land(folder, each) for each in shards])
    options = {"landing": str(folder), "resource": "users"}
    reader = LandedStreamReader(options, {}, spark_schema("users", landed=True))
    assert len(reader.partitions({"run": 0}, {"run": 2})) == 2
    folder.rename(tmp_path / "away")
    # As a restarted query finds it; the offset must not be committed.
    with pytest.raises(LandingError, match="read up to number 2; restore the folder"):
        reader._between(2, 0)
    with pytest.raises(LandingError, match="no longer has the runs 2"):
        reader._between(1, 2)
