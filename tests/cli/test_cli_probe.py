"""``probe`` as a shell sees it."""

import json
from pathlib import Path

import pytest

from backread import ServiceProfile
from backread.testing import MockServer

pytest.importorskip("typer")
pytest.importorskip("rich")


def sent(server: MockServer) -> int:
    return sum(server.counts().values())


def test_the_table_comes_after_what_it_costs(backread, server):
    done = backread("probe")
    assert done.code == 0
    assert done.error.startswith("at most 120 requests will be sent, all of them GET")
    assert done.error.count("\n") == 1
    assert "users: order" in done.out
    assert "by id, ascending" in done.out
    for private in (server.url, server.world.user(42)["name"], server.world.user(42)["email"]):
        assert private not in done.out + done.error


def test_json_is_a_profile(backread):
    done = backread("probe", "--format", "json", "--sample", "4")
    profile = ServiceProfile.from_json(done.out)
    assert profile.default_page == 25
    assert json.loads(done.out)["profile_version"] == 2


def test_the_bound_is_kept(backread, server):
    before = sent(server)
    done = backread("probe", "--max-requests", 5)
    assert "at most 5 requests" in done.error
    assert sent(server) - before == 5
    assert "the limit of 5 requests was reached" in done.out
    assert "at most 1 request will be sent" in backread("probe", "--max-requests", 1).error


def test_a_file_that_cannot_be_written_is_found_before_anything_is_sent(backread, server, tmp_path):
    before = sent(server)
    done = backread("probe", "--save", tmp_path / "none" / "profile.json")
    assert (done.code, done.out) == (2, "")
    assert "--save" in done.line
    assert sent(server) == before


def test_a_profile_that_cannot_be_saved_is_shown(backread, tmp_path, monkeypatch):
    monkeypatch.setattr("backread.cli.probe._check", lambda file: None, raising=False)
    file = tmp_path / "none" / "profile.json"
    done = backread("probe", "--max-requests", 5, "--format", "json", "--save", file)
    assert done.code == 2
    assert ServiceProfile.from_json(done.out).users.order is not None
    assert f"--save {file} cannot be written" in done.error


# --- against --------------------------------------------------------------------------------------


@pytest.fixture
def profile(server: MockServer, tmp_path: Path) -> Path:
    file = tmp_path / "profile.json"
    with server.client() as reader:
        file.write_text(reader.probe().to_json(), encoding="utf-8")
    return file


def test_against_an_equal_profile_is_exit_0(backread, profile):
    done = backread("probe", "--against", profile)
    assert (done.code, done.out) == (0, "")
    assert f"the service matches {profile}, measured on 20" in done.error


def test_against_another_profile_is_exit_8_with_each_finding(backread, server, profile, tmp_path):
    server.dialect = "max_limit=40 total=null"
    try:
        done = backread("probe", "--against", profile, "--save", tmp_path / "now.json")
        as_json = backread("probe", "--against", profile, "--format", "json")
    finally:
        server.dialect = "documented"
    assert done.code == as_json.code == 8
    assert "largest_page: was 99, is 40\n" in done.out
    assert "users.total_exact: was yes, is no\n" in done.out
    last = done.error.splitlines()[-1]
    assert f"differs from {profile}" in last
    assert f": {len(done.out.splitlines())} findings above" in last
    found = json.loads(as_json.out)
    assert {"path": "largest_page", "text": "largest_page: was 99, is 40"} in found
    now = ServiceProfile.from_json((tmp_path / "now.json").read_text(encoding="utf-8"))
    assert now.largest_page == 40


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nowhere.json", "cannot be read"),
        ("odd.json", "not a service profile"),
        (".", "cannot be read"),
    ],
)
def test_against_what_is_no_profile_sends_nothing(
    backread, server, tmp_path, monkeypatch, name, problem
):
    monkeypatch.chdir(tmp_path)
    Path("odd.json").write_text("{}", encoding="utf-8")
    before = sent(server)
    done = backread("probe", "--against", name)
    assert (done.code, problem in done.line) == (2, True), done.line
    assert sent(server) == before
