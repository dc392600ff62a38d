"""Paths as people write them: they work wherever one is given, or give one clear error."""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from backread import ConfigurationError, LandingError, Mirror, MirrorError, landing, plan
from backread.testing import MockServer
from helpers.command_line import posix_only
from helpers.mirrors import rows, sync
from helpers.shards import land

NOT_UTF8 = os.fsdecode(b"n\xffme")
WILD = ["a?b", "a\\b", NOT_UTF8]
"""Names that DuckDB takes for other ones, or not at all."""
NAMES = ["it's a\"b a*b [1] {a,b} a;b $HOME a%20b a#b Ünïcødé 多", "-x", "line\nbreak", *WILD]


def check_landing(folder: Any, server: MockServer) -> None:
    run = land(folder, server)
    assert landing.runs(folder) == [run]
    assert landing.dataset(folder, run).count_rows() == run.rows > 0


def one_line(error: BaseException) -> str:
    """The message, which is one line that any terminal can show."""
    text = str(error)
    assert text.isprintable(), text
    text.encode()
    return text


# --- names ----------------------------------------------------------------------------------------


@posix_only
@pytest.mark.parametrize("name", WILD, ids=ascii)
def test_a_mirror_below_a_name_that_duckdb_reads_otherwise_is_refused(server, tmp_path, name):
    before = sum(server.counts().values())
    with pytest.raises(MirrorError, match=r"DuckDB cannot use a path .*; rename") as caught:
        sync(Mirror(tmp_path / name / "chats"), server)
    one_line(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert sum(server.counts().values()) == before


@posix_only
def test_a_landing_needs_a_name_that_is_utf_8(server, tmp_path):
    for name in WILD[:2]:
        check_landing(tmp_path / name, server)
    with pytest.raises(LandingError, match=r"n\\xffme: pyarrow only supports UTF-8 names") as e:
        landing.runs(tmp_path / NOT_UTF8)
    one_line(e.value)


@posix_only
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_files_may_have_any_name(backread, server, tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    for shape in ("json", "csv", "parquet"):
        output = folder / f"{name}.{shape}"
        assert backread("users", "--format", shape, f"--output={output}").code == 0
        assert output.stat().st_size
    profile, secret = folder / f"{name}.profile", folder / f"{name}.secret"
    assert backread("probe", "--max-requests", 3, f"--save={profile}").code == 0
    assert backread("probe", "--max-requests", 3, f"--against={profile}").code in (0, 8)
    secret.write_text(server.secret)
    assert backread("user", 42, f"--secret-file={secret}").code in (0, 3)
    done = backread("users", f"--output={folder / name / 'missing'}")
    assert (done.code, done.line.isprintable()) == (2, True)
    assert "cannot be written: No such file" in done.line


# --- home, and the working directory --------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder, and another one that is the working directory."""
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def test_a_tilde_is_the_home_folder(backread, server, home):
    mirror = Mirror("~/chats")
    assert mirror.folder == home / "chats"
    sync(mirror, server)
    check_landing("~/landing", server)
    (home / "secret").write_text(server.secret)
    for command in (
        ("runs", "~/chats"),
        ("users", "--output=~/users.json"),
        ("probe", "--max-requests", 3, "--save=~/profile.json"),
        ("users", "--limit", 1, "--secret-file=~/secret"),
    ):
        assert backread(*command).code == 0
    with server.client() as client:
        [shard] = plan(client, shards=1)
    assert shard.read(secret_file="~/secret").to_list()
    missing = str(home / "ca.pem").replace("\\", ".")
    with pytest.raises(ConfigurationError, match=missing):
        server.client(ca_bundle="~/ca.pem")
    found = {"chats", "landing", "users.json", "profile.json", "secret"}
    assert {each.name for each in home.iterdir()} == found
    assert list(Path.cwd().iterdir()) == []


def test_a_relative_mirror_stays_where_it_was(server, tmp_path, home, monkeypatch):
    mirror = Mirror("chats")
    assert mirror == Mirror(tmp_path / "work" / "chats")
    monkeypatch.chdir(home)
    sync(mirror, server, on_progress=lambda _: os.chdir(tmp_path))
    assert rows(mirror, "SELECT count(*) FROM users") == [(120,)]
    assert rows(pickle.loads(pickle.dumps(mirror)), "SELECT 1") == [(1,)]
    assert [each.name for each in (tmp_path / "work").iterdir()] == ["chats"]
    assert list(home.iterdir()) == []


# --- what is no path here -------------------------------------------------------------------------


@pytest.mark.parametrize("uri", ["s3://bucket/chats", "S3:/bucket/chats"])
def test_a_uri_says_what_is_not_supported_and_what_to_do(backread, server, home, uri):
    with pytest.raises(MirrorError, match=r"not a local path.*backread\.landing") as caught:
        Mirror(uri)
    assert uri in one_line(caught.value)
    with server.client() as client:
        planned = plan(client, shards=1)
    with pytest.raises(LandingError, match="pass the URI as a str: a Path drops"):
        landing.begin(Path(uri), planned)
    before = sum(server.counts().values())
    with pytest.raises(ConfigurationError, match=r"ca_bundle: .*copy it to this machine"):
        server.client(ca_bundle=uri)
    for arguments, advice in (
        (("sync", uri), "name a folder here, and copy it there afterwards"),
        (("users", "--output", uri), "write to stdout and pipe it there"),
        (("users", "--secret-file", uri), "copy it to this machine"),
        (("sync", "chats", "--profile", uri), "copy it to this machine"),
        (("mock", "--world", uri), "copy it to this machine"),
    ):
        done = backread(*arguments)
        assert (done.code, f"{uri} is not a local path; {advice}" in done.line) == (2, True)
    assert sum(server.counts().values()) == before
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(("path", "problem"), [("", "empty"), ("a\0b", r"a\\x00b: .*NUL")])
def test_an_empty_path_and_nul_are_errors(server, home, path, problem):
    with pytest.raises(MirrorError, match=problem) as caught:
        Mirror(path)
    one_line(caught.value)
    with pytest.raises(ConfigurationError, match=problem):
        server.client(ca_bundle=path)
    with server.client() as client:
        [shard] = plan(client, shards=1)
    with pytest.raises(ConfigurationError, match=problem):
        shard.read(secret_file=path)
