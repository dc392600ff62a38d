"""What rows leave out: on the executors, and in what they land."""

import base64
from pathlib import Path

import pytest

from backread import ConfigurationError, LandingError, landing
from backread.integrations.spark import land, register

KEY = bytes(range(7, 39))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A private key file, which driver and executors share."""
    path = tmp_path / "key"
    path.write_bytes(base64.b64encode(KEY))
    path.chmod(0o600)
    return path


def users(spark):
    frame = spark.read.format("backread").option("resource", "users").load()
    return {row["id"]: row for row in frame.collect()}


def test_a_frame_has_pseudonyms_and_no_bodies(spark, service, key, monkeypatch):
    monkeypatch.chdir(key.parent)
    register(spark, pseudonymise="key", drop_bodies=True, check=False)
    try:
        found = users(spark)
        messages = spark.read.format("backread").option("resource", "messages").load().collect()
    finally:
        register(spark, check=False)
    named = users(spark)
    assert named.keys() == found.keys()
    for user_id, user in found.items():
        assert user["name"] in (None, "") or user["name"].startswith("name-")
        assert (user["name"] is None) == (named[user_id]["name"] is None)
    assert any(user["email"] for user in found.values())
    assert len(messages) == service.world.total_messages
    assert {row["body"] for row in messages} == {None}


def test_land_stores_the_choice(spark, service, key, tmp_path):
    folder = tmp_path / "landed"
    chosen = {"pseudonymise": key, "redact": True}
    first = land(spark, folder, resource="users", check=False, **chosen)
    table = landing.dataset(folder, first).to_table()
    emails = [email for email in table["email"].to_pylist() if email]
    assert emails
    assert all(email.startswith("email-") for email in emails)
    with pytest.raises(LandingError, match="none of these"):
        land(spark, folder, resource="users", check=False)
    assert len(landing.runs(folder)) == 1


def test_without_the_key_nothing_is_read(spark, service, key, tmp_path):
    asked = sum(service.counts().values())
    key.chmod(0o644)
    with pytest.raises(ConfigurationError, match="every user may access"):
        land(spark, tmp_path / "landed", check=False, pseudonymise=key)
    assert sum(service.counts().values()) == asked
