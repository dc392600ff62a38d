"""``mock record``, ``mock learn``, ``mock --record``, ``probe --against``, as a shell has them."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from backread import Client, ServiceProfile
from backread.testing import Dialect, MockServer, Record
from command_line import COMMAND, SECONDS, Done, posix_only, wait_for
from modes import largest_file
from probing import branded
from test_cli_mock import client, served

pytest.importorskip("typer")
pytest.importorskip("rich")

Command = Callable[..., Done]


def sent(server: MockServer) -> int:
    return sum(server.counts().values())


@pytest.fixture
def profile(server: MockServer, tmp_path: Path) -> Path:
    file = tmp_path / "profile.json"
    with Client(server.url, server.secret, server.vendor) as reader:
        file.write_text(reader.probe().to_json(), encoding="utf-8")
    return file


# --- record ---------------------------------------------------------------------------------------


def test_a_record_says_what_it_holds_and_shows_nothing(backread, server, tmp_path, monkeypatch):
    monkeypatch.setenv("BACKREAD_RECORD_KEY", "a key of sixteen bytes")
    done = backread("mock", "record", tmp_path / "record", "--users", 9)
    assert (done.code, done.out) == (0, "")
    made = Record(tmp_path / "record")
    assert f"9 users and {made.about.messages:,} messages in {tmp_path}" in done.error
    assert "at most 120 GET requests" in done.error
    assert made.about.kept_names
    assert done.error.endswith(f"one is personal data: {', '.join(made.about.kept_names)}\n")
    assert made.profile is not None
    for file in made.folder.iterdir():
        text = file.read_text(encoding="utf-8")
        for private in (server.secret, server.url, "a key of sixteen bytes"):
            assert private not in text + done.error.replace(str(tmp_path), "")


def test_its_options_are_heeded(backread, tmp_path):
    key = tmp_path / "key"
    key.write_text("a key of sixteen bytes\n", encoding="utf-8")
    options = ("--no-probe", "--first", "--messages-per-user", 2, "--users", 4, "--key-file", key)
    texts = []
    for name in ("one", "two"):
        assert backread("mock", "record", tmp_path / name, *options).code == 0
        texts.append((tmp_path / name / "world.jsonl").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    rows = [json.loads(line) for line in texts[0].splitlines()]
    assert len(rows) == 4
    assert max(len(row["messages"]) for row in rows) == 2
    assert Record(tmp_path / "one").profile is None
    again = backread("mock", "record", tmp_path / "one", *options)
    assert (again.code, "--replace" in again.line) == (2, True)
    every = backread("mock", "record", tmp_path / "one", "--no-probe", "--all", "--replace")
    assert every.code == 0
    assert Record(tmp_path / "one").about.users == 120


@posix_only
def test_ctrl_c_ends_it_at_once_and_leaves_nothing(settings, server, tmp_path):
    before = server.calls("messages").count
    server.fault(f"messages: latency({20 * SECONDS * 1000})")
    command = [*COMMAND, "mock", "record", str(tmp_path / "record"), "--no-probe"]
    try:
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            wait_for(lambda: server.calls("messages").count > before, process)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=SECONDS)
    finally:
        server.clear_faults()
    assert (process.returncode, error) == (130, "backread: stopped by Ctrl-C\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "folder"),
        (["record", "--users", "0"], "--users"),
        (["record", "--users", "3", "--all"], "--all keeps every user, but --users 3 at most 3"),
        (["record", "--key-file", "nowhere"], "--key-file nowhere cannot be read"),
        (["record", "--key-file", "short"], "--key-file short has 5 bytes"),
        (["other"], "other contains other files"),
        (["short"], "short is a file"),
    ],
)
def test_wrong_usage_is_one_line_and_sends_nothing(
    backread, server, tmp_path, monkeypatch, arguments, problem
):
    monkeypatch.chdir(tmp_path)
    Path("short").write_text("short", encoding="utf-8")
    Path("other").mkdir()
    Path("other/thesis.txt").touch()
    before = sent(server)
    done = backread("mock", "record", "--no-probe", *arguments)
    assert done.code == 2
    assert problem in done.line.lower()
    assert sent(server) == before


@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        ("file", "file is a file; name a folder"),
        ("file/record", "file is a file; name a folder"),
        ("held", "held contains other files; name an empty folder"),
        # Too long for the folder that it is written in.
        ("n" * 240, f"{'n' * 240} cannot be created: "),
    ],
)
def test_a_folder_that_will_not_do_costs_no_probe(
    backread, server, tmp_path, monkeypatch, folder, problem
):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("held").mkdir()
    Path("held/thesis.txt").touch()
    before = sent(server)
    done = backread("mock", "record", folder)
    assert (done.code, problem in done.line) == (2, True), done.line
    assert sent(server) == before
    assert {each.name for each in tmp_path.iterdir()} == {"file", "held"}


@posix_only
def test_a_full_disk_is_told_with_the_folder(backread, tmp_path):
    folder = tmp_path / "record"
    with largest_file(1_000):
        done = backread("mock", "record", folder, "--no-probe")
    assert done.code == 2
    assert f"{folder} cannot be written: File too large; free some space" in done.line


def test_what_stands_before_the_name_is_refused(backread, tmp_path):
    done = backread("mock", "--users", 3, "record", tmp_path / "record")
    assert done.code == 2
    assert "backread mock record takes no --users before its name" in done.line
    assert not (tmp_path / "record").exists()


# --- serving and learning -------------------------------------------------------------------------


@posix_only
def test_the_mock_serves_a_record(backread, server, tmp_path):
    server.dialect = "max_limit=40 over_limit=clamp"
    try:
        backread("mock", "record", tmp_path / "record")
    finally:
        server.dialect = "documented"
    made = Record(tmp_path / "record")
    with served("--record", made.folder) as said, client(said) as reader:
        users = reader.users.list().to_list()
        assert [each.id for each in users] == made.world().user_ids()
        assert reader.users.page(limit=99).limit == 40
    with served("--record", made.folder, "--dialect", "documented") as said, client(said) as reader:
        assert reader.users.page(limit=99).limit == 99


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--record", "nowhere"], "nowhere is not a record"),
        (["--record", "nowhere", "--users", "3", "--world", "x"], "leave out --world, --users"),
    ],
)
def test_a_record_that_is_none(backread, tmp_path, monkeypatch, arguments, problem):
    monkeypatch.chdir(tmp_path)
    done = backread("mock", *arguments)
    assert (done.code, problem in done.line) == (2, True), done.line


def test_learning_prints_what_the_mock_takes(backread, server, tmp_path):
    file = tmp_path / "profile.json"
    with server.lane(dialect="lenient max_limit=40") as lane, lane.client() as reader:
        file.write_text(reader.probe().to_json(), encoding="utf-8")
    done = backread("mock", "learn", file)
    assert (done.code, done.out) == (0, "lenient max_limit=40\n")
    assert Dialect(done.out.strip()) == Dialect("lenient max_limit=40")
    assert done.error.startswith("no switch for refusals.wrong_secret: ")


def test_learning_from_a_record(backread, tmp_path):
    backread("mock", "record", tmp_path / "record", "--users", 3)
    done = backread("mock", "learn", tmp_path / "record")
    assert (done.code, done.out, done.error) == (0, "documented\n", "")


@pytest.mark.parametrize("command", [["mock", "learn"], ["probe", "--against"]])
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nowhere.json", "cannot be read"),
        ("odd.json", "not a service profile"),
        (".", "is not a record"),
    ],
)
def test_a_profile_that_is_none(backread, server, tmp_path, monkeypatch, command, name, problem):
    monkeypatch.chdir(tmp_path)
    Path("odd.json").write_text("{}", encoding="utf-8")
    before = sent(server)
    done = backread(*command, name)
    assert (done.code, problem in done.line) == (2, True), done.line
    assert sent(server) == before


# --- against --------------------------------------------------------------------------------------


def test_a_service_as_it_was_is_exit_0(backread, profile):
    done = backread("probe", "--against", profile)
    assert (done.code, done.out) == (0, "")
    assert f"the service matches {profile}" in done.error


def test_a_service_that_moved_is_exit_8_with_each_finding(backread, server, profile, tmp_path):
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


def test_a_record_is_held_against_too(backread, server, tmp_path):
    backread("mock", "record", tmp_path / "record", "--users", 3)
    done = backread("probe", "--against", tmp_path / "record")
    # The time in a record is moved: it is not when the service was measured.
    assert (done.code, "measured on" in done.error) == (0, False)
    backread("mock", "record", tmp_path / "bare", "--users", 3, "--no-probe")
    done = backread("probe", "--against", tmp_path / "bare")
    assert (done.code, "made with --no-probe" in done.line) == (2, True)


def test_the_vendor_word_that_a_record_lacks_is_no_difference(
    backread, scripted, monkeypatch, tmp_path
):
    service = scripted(branded("acmechat"))
    monkeypatch.setenv("BACKREAD_BASE_URL", service.url)
    monkeypatch.setenv("BACKREAD_API_SECRET", service.secret)
    monkeypatch.setenv("BACKREAD_VENDOR", "acmechat")
    assert backread("mock", "record", tmp_path / "record").code == 0
    done = backread("probe", "--against", tmp_path / "record")
    assert (done.code, done.out) == (0, "")


def test_a_profile_that_cannot_be_saved(backread, tmp_path):
    done = backread("probe", "--save", tmp_path / "nowhere" / "now.json")
    assert done.code == 2
    assert "cannot be written" in done.error
