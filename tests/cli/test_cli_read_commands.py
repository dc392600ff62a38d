"""What reads the service: single rows, failures, named services, the probe, and the version."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import backread as package
from backread import ServiceProfile
from backread.cli.connection import complete_service
from backread.testing import MockServer, World
from helpers.api_rows import message, paged, user
from helpers.command_line import COMMAND, SECONDS
from helpers.scripted_server import Request, ScriptedServer, answer


def test_secret_may_come_from_a_file(backread, server, tmp_path, monkeypatch):
    monkeypatch.delenv("BACKREAD_API_SECRET")
    file = tmp_path / "secret"
    file.write_text(f"{server.secret}\n", encoding="utf-8")
    done = backread("user", server.world.user_ids()[0], "--secret-file", file)
    assert done.code == 0
    # It is never an argument.
    options = re.findall(r"--[a-z-]+", backread("users", "--help").out)
    assert {each for each in options if "secret" in each} == {"--secret-file"}


# --- failures -------------------------------------------------------------------------------------


def test_missing_settings_are_named_at_once(backread, monkeypatch):
    names = ("API_SECRET", "VENDOR")
    for name in names:
        monkeypatch.delenv(f"BACKREAD_{name}")
    done = backread("users")
    assert done.code == 2
    for name in ("BASE_URL", "API_SECRET", "VENDOR"):
        option = "--secret-file" if name == "API_SECRET" else f"--{name.lower().replace('_', '-')}"
        assert (f"BACKREAD_{name} or {option} (" in done.line) == (name in names)
    assert "backread demo" in done.line
    assert "base_url" not in done.line


def test_what_is_not_there_is_exit_3_and_the_url_is_named(backread, server):
    done = backread("user", 999_999_999)
    assert (done.code, done.out) == (3, "")
    assert f"GET {server.url}/external/users/999999999: the service answered 404" in done.line
    assert 'it says "there is no user 999999999"' in done.line


def test_wrong_secret_is_exit_4_and_wrong_vendor_word_exit_2(backread, monkeypatch):
    with monkeypatch.context() as wrong:
        wrong.setenv("BACKREAD_API_SECRET", "mock_wrong")
        done = backread("users")
    assert done.code == 4
    assert done.line.count("BACKREAD_API_SECRET") == 1
    assert "check --secret-file or BACKREAD_API_SECRET" in done.line
    done = backread("users", "--vendor", "wrong")
    assert (done.code, "check --vendor or BACKREAD_VENDOR" in done.line) == (2, True)


def test_quiet_prints_only_errors_and_verbose_every_request(backread, server, tmp_path):
    folder = tmp_path / "chats"
    done = backread("sync", folder, "-q")
    assert (done.code, done.out, done.error) == (0, "", "")
    assert backread("-q", "user", 1).line.startswith("backread: GET ")
    user_id = server.world.user_ids()[0]
    quiet = backread("user", user_id, "--quiet")
    assert (json.loads(quiet.out)["id"], quiet.error) == (user_id, "")
    for arguments in (["-v", "user", user_id], ["user", user_id, "--verbose"]):
        [line] = backread(*arguments).error.splitlines()
        assert re.match(rf"\d\d:\d\d:\d\d\.\d\d\d GET /external/users/{user_id}: 200 in ", line)


def test_one_object_is_a_row_in_every_format(backread, server, tmp_path):
    user_id = server.world.user_ids()[0]
    sent = server.world.user(user_id)
    assert json.loads(backread("user", user_id).out) == sent
    assert json.loads(backread("user", user_id, "--json").out) == sent
    message_id = server.world.message_ids(user_id)[0]
    shown = json.loads(backread("message", user_id, message_id).out)
    assert shown == server.world.message(user_id, message_id)
    table = backread("user", user_id, "--format", "table").out
    assert re.search(rf"^email +{re.escape(sent['email'])}$", table, re.MULTILINE)
    header, _ = backread("user", user_id, "--format", "csv").out.splitlines()
    assert header.startswith("id,name,email,")
    assert backread("user", user_id, "-o", tmp_path / "user.parquet").code == 0
    assert (tmp_path / "user.parquet").read_bytes().startswith(b"PAR1")


@pytest.mark.parametrize(
    ("command", "answered", "code", "says"),
    [
        (["users"], answer(500, "no"), 5, "500"),
        (["users"], answer(200, '{"users": 7}'), 6, "users"),
        # Another object than the one asked for is not shown as it.
        (["user", "42"], answer(200, {"id": 7, "name": "B"}), 6, "id 42"),
        (["message", "1", "42"], answer(200, {"id": 7, "name": "B"}), 6, "id 42"),
    ],
)
def test_failing_service_is_exit_5_and_unreadable_answer_exit_6(
    backread, scripted, command, answered, code, says, monkeypatch
):
    monkeypatch.setenv("BACKREAD_BASE_URL", scripted(answered).url)
    done = backread(*command, "--max-retries", 0)
    assert (done.code, done.out) == (code, "")
    assert says in done.line


def test_users_without_a_usable_id_are_exit_6(backread, scripted, monkeypatch, tmp_path):
    # As from a driver that gives 64-bit integers as text.
    sent = [user(1), user(2) | {"id": "2"}, user(3) | {"id": "3"}]

    def service(request: Request) -> bytes:
        if request.path.endswith("/users"):
            return paged(sent)(request)
        return paged([message(10)], key="messages")(request)

    monkeypatch.setenv("BACKREAD_BASE_URL", scripted(service).url)
    says = "the messages of 2 users without a usable id were not requested"
    done = backread("messages", "--all")
    assert (done.code, done.out.count("\n")) == (6, 1)
    assert says in done.error
    for _ in range(2):
        done = backread("sync", tmp_path / "chats")
        assert done.code == 6
        assert done.error.splitlines()[-1] == (
            f"backread: {says}; the table rejects of {tmp_path / 'chats'} says why, and the next "
            "sync tries again"
        )
        assert "1 user and 1 message read" in done.out
    del sent[1:]
    assert backread("sync", tmp_path / "chats").code == 0


def test_folder_that_is_no_mirror_is_exit_7(backread, tmp_path):
    assert "sync" in backread("runs", tmp_path).line
    (tmp_path / "beach.jpg").write_bytes(b"jpeg")
    for command in ("runs", "report", "sync"):
        done = backread(command, tmp_path)
        assert (done.code, done.out) == (7, "")
        assert str(tmp_path) in done.line


def test_fault_of_our_own_is_one_line_too(backread, monkeypatch):
    def fail(self: object) -> None:
        raise RuntimeError("a bug\nin two lines")

    monkeypatch.setattr("backread.cli.connection.Connection.client", fail)
    done = backread("users")
    assert done.code == 1
    assert "RuntimeError: a bug in two lines" in done.line


def run_without(folder: Path, arguments: list[str], *modules: str) -> Any:
    """Runs the command where these modules cannot be imported."""
    for name in modules:
        (folder / f"{name}.py").write_text(
            f"raise ModuleNotFoundError('No module named {name}', name='{name}')\n",
            encoding="utf-8",
        )
    paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [*COMMAND, *arguments],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [("typer", [], "cli"), ("mcp", ["mcp", "chats"], "mcp")],
)
def test_a_missing_package_says_what_to_install(tmp_path, module, arguments, extra):
    done = run_without(tmp_path, arguments, module)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f'pip install "backread[{extra}]"' in done.stderr


def test_version_needs_no_extras(backread, tmp_path):
    done = run_without(tmp_path, ["--version"], "typer", "rich")
    assert (done.returncode, done.stderr) == (0, "")
    named = re.escape(package.__version__)
    assert re.fullmatch(rf"backread {named} \(Python 3\.\S+, DuckDB \S+\)\n", done.stdout)
    assert backread("--version").out == done.stdout


# --- a service of the config file -----------------------------------------------------------------


USERS = 3


@pytest.fixture
def other() -> Iterator[MockServer]:
    """A second service, which the environment does not name."""
    with MockServer(World(seed=2, users=USERS), vendor="shop") as running:
        yield running


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes the config file with mode 0600, and a secret beside it."""

    def write(url: str, secret: str, more: str = "") -> Path:
        file = tmp_path / "config.toml"
        monkeypatch.setenv("BACKREAD_CONFIG", str(file))
        file.write_text(
            f'[services.shop]\nbase_url = "{url}"\nvendor = "shop"\nsecret_file = "secret"\n{more}'
        )
        (tmp_path / "secret").write_text(f"{secret}\n")
        for each in (file, tmp_path / "secret"):
            each.chmod(0o600)
        return file

    return write


@pytest.mark.parametrize("command", ["users", "doctor"])
def test_a_named_service_is_read_in_place_of_the_environments(
    backread, configure, other, monkeypatch, command
):
    # Not even read.
    monkeypatch.setenv("BACKREAD_TIMEOUT", "abc")
    monkeypatch.setenv("BACKREAD_SECRET_FILE", "s3://elsewhere/secret")
    monkeypatch.setenv("BACKREAD_CA_BUNDLE", "-")
    configure(other.url, other.secret)
    done = backread(command, "--service", "shop")
    assert done.code == 0
    assert command == "doctor" or done.out.count("\n") == USERS
    refused = backread(command)
    assert refused.code == 2
    assert "or BACKREAD_SECRET_FILE: s3://elsewhere/secret is not a local path" in refused.line


def test_what_a_named_service_does_not_go_with_is_refused(backread, configure, other):
    configure(other.url, other.secret)
    for option in ("--base-url", "--secret-file"):
        done = backread("users", "--service", "shop", option, "https://elsewhere.example.com")
        assert done.code == 2
        assert done.line.endswith(f"its own address and secret: leave out {option}")
    assert not any(other.counts().values())
    file = configure("https://chat.example.com", "x", "max_retries = -1\n")
    # Its settings are named, and no options.
    done = backread("users", "--service", "shop")
    assert done.line.startswith(f"backread: the service shop of {file}: max_retries ")
    done = backread("users", "--service", "lab")
    assert done.line == f"backread: {file} has no service lab; it has: shop"
    assert (complete_service("s"), complete_service("x")) == (["shop"], [])
    file.write_text("[", encoding="utf-8")
    assert complete_service("s") == []


def test_options_of_the_command_line_win_over_the_services(backread, configure, monkeypatch):
    monkeypatch.setenv("BACKREAD_MAX_RETRIES", "9")
    with ScriptedServer(lambda request: answer(503)) as down:
        configure(down.url, down.secret, "max_retries = 0\noutage_patience = 0\n")
        assert backread("user", "7", "--service", "shop").code == 5
        assert len(down.requests) == 1
        assert backread("user", "7", "--service", "shop", "--max-retries", "1").code == 5
        assert len(down.requests) == 3


# --- probe ----------------------------------------------------------------------------------------


def sent(server: MockServer) -> int:
    return sum(server.counts().values())


def test_the_probe_says_what_it_costs_and_shows_no_data(backread, server):
    done = backread("probe")
    assert done.code == 0
    assert done.error.startswith("at most 120 requests will be sent, all of them GET")
    assert done.error.count("\n") == 1
    assert "by id, ascending" in done.out
    for private in (server.url, server.world.user(42)["name"], server.world.user(42)["email"]):
        assert private not in done.out + done.error
    before = sent(server)
    bounded = backread("probe", "--max-requests", 5, "--format", "json")
    assert "at most 5 requests" in bounded.error
    assert sent(server) - before == 5
    assert ServiceProfile.from_json(bounded.out).users.order is not None


def test_a_profile_that_cannot_be_saved_costs_no_request(backread, server, tmp_path):
    file, before = tmp_path / "none" / "profile.json", sent(server)
    done = backread("probe", "--save", file)
    assert (done.code, done.out) == (2, "")
    assert "--save" in done.line
    assert sent(server) == before


def test_against_an_equal_profile_is_exit_0_and_another_8_with_each_finding(
    backread, server, tmp_path
):
    profile = tmp_path / "profile.json"
    assert backread("probe", "--save", profile).code == 0
    done = backread("probe", "--against", profile)
    assert (done.code, done.out) == (0, "")
    assert f"the service matches {profile}, measured on 20" in done.error
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


def test_against_what_is_no_profile_sends_nothing(backread, server, tmp_path):
    (tmp_path / "odd.json").write_text("{}", encoding="utf-8")
    before = sent(server)
    for name, problem in (("nowhere", "cannot be read"), ("odd", "not a service profile")):
        done = backread("probe", "--against", tmp_path / f"{name}.json")
        assert (done.code, problem in done.line) == (2, True), done.line
    assert sent(server) == before
