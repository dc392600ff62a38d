"""A mirror holds one service: another is refused, unless it is the same one at a new address."""

import json
import re

import pytest

from backread import Client, ConnectError, MirrorError, ServiceProfile
from backread.mirror import Mirror
from backread.testing import MockServer
from helpers.mirrors import BatchSource, batch, rows

HERE = "https://chat.example.com/api"
THERE = "https://chat.example.org"


def users(*identifiers: int, base_url: str = HERE, **service: str) -> BatchSource:
    shown = batch([{"id": each} for each in identifiers], swept="snapshot")
    return BatchSource(shown, base_url=base_url, **service)


def held(mirror: Mirror) -> list[int]:
    return [each for (each,) in rows(mirror, "SELECT id FROM users ORDER BY id")]


def test_another_service_is_refused_before_anything_is_read(mirror):
    users(1, 2).sync_into(mirror.folder)
    for other in (users(7, base_url=THERE), users(7, vendor="other")):
        with pytest.raises(MirrorError) as caught:
            other.sync_into(mirror.folder)
        named = (f"{HERE} (vendor example)", f"{other.base_url} (vendor {other.vendor})")
        for text in (*named, "another folder", "moved=True", "--moved"):
            assert text in str(caught.value)
        assert other.done is None
    assert held(mirror) == [1, 2]
    users(1, 2, 3).sync_into(mirror.folder)
    assert held(mirror) == [1, 2, 3]


def test_service_that_moved_is_known_by_its_new_address(mirror):
    users(1).sync_into(mirror.folder)
    users(1, 2, base_url=THERE, vendor="other").sync_into(mirror.folder, moved=True)
    users(1, 2, 3, base_url=THERE, vendor="other").sync_into(mirror.folder)
    assert held(mirror) == [1, 2, 3]
    with pytest.raises(MirrorError, match=r"copy of the service at https://chat\.example\.org "):
        users(1).sync_into(mirror.folder)


def test_address_that_never_answered_is_not_kept(mirror):
    for moved in (False, True):
        mistyped = BatchSource(ConnectError("no such host"), base_url="https://caht.example.com")
        with pytest.raises(ConnectError):
            mistyped.sync_into(mirror.folder, moved=moved)
        users(1, 2).sync_into(mirror.folder)
    assert held(mirror) == [1, 2]


PORTS = ("http://127.0.0.1:7001", "http://localhost:7002")


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"secret_mark": "beef"}, "another secret"),
        ({"vendor": "other"}, "another vendor"),
        ({"base_url": f"{PORTS[1]}/other"}, "another path"),
        ({"base_url": PORTS[1].replace("http", "https")}, "another scheme"),
    ],
)
def test_another_service_behind_a_forwarded_port_is_refused(mirror, other, why):
    users(1, 2, base_url=PORTS[0]).sync_into(mirror.folder)
    users(1, 2, 3, base_url=PORTS[1]).sync_into(mirror.folder)
    with pytest.raises(MirrorError, match="is a copy of the service at http://localhost:7002 "):
        users(7, **{"base_url": PORTS[0]} | other).sync_into(mirror.folder)
    assert held(mirror) == [1, 2, 3], why


def test_another_secret_at_the_same_address_is_said(mirror):
    assert not users(1).sync_into(mirror.folder).has_other_secret
    assert users(1, secret_mark="beef").sync_into(mirror.folder).has_other_secret
    assert not users(1, secret_mark="beef").sync_into(mirror.folder).has_other_secret


def test_the_mark_of_a_secret_tells_little_of_it():
    def mark(secret: str) -> str:
        return Client("http://127.0.0.1:1", secret, "example")._secret_mark(bytes(16))

    marks = {mark(f"secret-{each}") for each in range(40)}
    assert len(marks) > 30
    assert all(re.fullmatch("[0-9a-f]{4}", each) for each in marks)
    assert mark("mock_secret") == "mock"


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


def test_profile_that_a_newer_backread_made_is_refused_by_name(mirror, profile):
    document = json.loads(profile.to_json()) | {"profile_version": 99}
    BatchSource(batch([{"id": 1}], swept="snapshot")).sync_into(
        mirror.folder, profile=json.dumps(document)
    )
    with pytest.raises(ValueError, match="99"):
        _ = mirror.profile
    # Its rows can be read all the same.
    assert rows(mirror, "SELECT id FROM users") == [(1,)]


def test_command_keeps_what_probe_wrote(backread, mirror, profile, tmp_path):
    found = tmp_path / "profile.json"
    found.write_text(profile.to_json(), encoding="utf-8")
    command = ("sync", mirror.folder, "--max-requests", 1, "--profile")
    assert backread(*command, found).code == 0
    assert mirror.profile == profile
    found.write_text("no profile", encoding="utf-8")
    for wrong in (found, tmp_path / "missing.json"):
        done = backread(*command, wrong)
        assert (done.code, bool(done.line)) == (2, True)
