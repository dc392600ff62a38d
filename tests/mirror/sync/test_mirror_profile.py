"""The service's profile: kept by the mirror, published with its rows, handed to every later run."""

import json
from collections.abc import Iterator

import pytest

from backread import ConnectError, ServiceProfile
from backread.testing import MockServer, World
from helpers.mirrors import BatchSource, batch, rows

pytest.importorskip("duckdb")

from backread.mirror import Mirror


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=3, users=120, messages_per_user=(0, 150))) as running:
        yield running


@pytest.fixture(scope="module")
def profile(server: MockServer) -> ServiceProfile:
    with server.client() as client:
        return client.probe()


def test_mirror_profile_is_kept_published_and_handed_to_every_run(mirror, server, profile):
    assert mirror.profile is None
    text = profile.to_json()
    first = BatchSource(batch([{"id": 1}]), ConnectError("the connection broke"))
    with pytest.raises(ConnectError):
        first.sync_into(mirror.folder, profile=text, max_staleness=60.0)
    second = BatchSource(batch(swept="snapshot"))
    second.sync_into(mirror.folder, "full")
    assert first.profile == second.profile == profile.to_dict()
    assert (first.mode, first.max_staleness) == ("incremental", 60.0)
    assert (second.mode, second.max_staleness) == ("full", None)
    assert Mirror(mirror.folder).profile == profile
    with server.client() as client:
        other = client.probe()
    assert other != profile
    BatchSource().sync_into(mirror.folder, profile=other.to_json())
    assert mirror.profile == other
    [(text,)] = rows(mirror, "SELECT profile FROM profile")
    assert ServiceProfile.from_json(text) == other


def test_profile_that_a_newer_backread_made_is_refused_by_name(mirror, profile):
    document = json.loads(profile.to_json()) | {"profile_version": 99}
    BatchSource(batch([{"id": 1}], swept="snapshot")).sync_into(
        mirror.folder, profile=json.dumps(document)
    )
    with pytest.raises(ValueError, match="99"):
        _ = mirror.profile
    # Its rows can be read all the same.
    assert rows(mirror, "SELECT id FROM users") == [(1,)]


def test_command_keeps_what_probe_wrote(mirror, server, profile, tmp_path, capfd):
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    from backread.cli.app import run

    found = tmp_path / "profile.json"
    found.write_text(profile.to_json(), encoding="utf-8")
    address = ["--base-url", server.url, "--vendor", server.vendor]
    secret = tmp_path / "secret"
    secret.write_text(server.secret, encoding="utf-8")
    command = ["sync", str(mirror.folder), *address, "--secret-file", str(secret), "--profile"]
    assert run([*command, str(found)]) == 0
    assert mirror.profile == profile
    found.write_text("no profile", encoding="utf-8")
    for wrong in (str(found), str(tmp_path / "missing.json")):
        capfd.readouterr()
        assert run([*command, wrong]) == 2
        assert capfd.readouterr().err.count("\n") == 1
