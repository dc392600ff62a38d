"""The command as a shell sees it: its commands, their failures, exit codes and help."""

import json
import os
import re
import subprocess

import pytest

from backread.testing import MockServer
from helpers.api_rows import message, paged, user
from helpers.command_line import COMMAND, SECONDS
from helpers.scripted_server import Request, answer

pytest.importorskip("typer")
pytest.importorskip("rich")


def first_user(server: MockServer) -> int:
    return server.world.user_ids()[0]


# --- the four reads ---------------------------------------------------------------------------


def test_single_items_are_one_object(backread, server):
    user_id = first_user(server)
    message_id = server.world.message_ids(user_id)[0]
    assert json.loads(backread("user", user_id).out) == server.world.user(user_id)
    shown = json.loads(backread("message", user_id, message_id).out)
    assert shown == server.world.message(user_id, message_id)


def test_secret_may_come_from_a_file(backread, server, tmp_path, monkeypatch):
    monkeypatch.delenv("BACKREAD_API_SECRET")
    file = tmp_path / "secret"
    file.write_text(f"{server.secret}\n", encoding="utf-8")
    done = backread("user", first_user(server), "--secret-file", file)
    assert done.code == 0
    # It is never an argument.
    options = re.findall(r"--[a-z-]+", backread("users", "--help").out)
    assert {each for each in options if "secret" in each} == {"--secret-file"}


# --- failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [["BASE_URL"], ["API_SECRET"], ["VENDOR"], ["BASE_URL", "API_SECRET", "VENDOR"]],
    ids=" ".join,
)
def test_missing_settings_are_named_at_once(backread, names, monkeypatch):
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


def test_base_url_that_ends_in_external_users_is_refused(backread, server):
    done = backread("users", "--base-url", f"{server.url}/external/users")
    assert (done.code, done.out) == (2, "")
    assert f"ends in /external/users, which requests add; pass {server.url}" in done.line


def test_wrong_secret_is_exit_4(backread, monkeypatch):
    monkeypatch.setenv("BACKREAD_API_SECRET", "mock_wrong")
    done = backread("users")
    assert done.code == 4
    assert done.line.count("BACKREAD_API_SECRET") == 1
    assert "check --secret-file or BACKREAD_API_SECRET" in done.line


def test_wrong_vendor_word_names_the_option(backread):
    done = backread("users", "--vendor", "wrong")
    assert done.code == 2
    assert "check --vendor or BACKREAD_VENDOR" in done.line


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
    assert json.loads(backread("user", user_id, "--json").out) == sent
    table = backread("user", user_id, "--format", "table").out
    assert re.search(rf"^email +{re.escape(sent['email'])}$", table, re.MULTILINE)
    header, _ = backread("user", user_id, "--format", "csv").out.splitlines()
    assert header.startswith("id,name,email,")
    pytest.importorskip("duckdb")
    assert backread("user", user_id, "-o", tmp_path / "user.parquet").code == 0
    assert (tmp_path / "user.parquet").read_bytes().startswith(b"PAR1")


@pytest.mark.parametrize(
    ("answered", "code", "says"),
    [
        (answer(422, "no"), 5, "422"),
        (answer(500, "no"), 5, "500"),
        (answer(200, '{"users": 7}'), 6, "users"),
    ],
)
def test_failing_service_is_exit_5_and_unreadable_answer_exit_6(
    backread, scripted, answered, code, says, monkeypatch
):
    monkeypatch.setenv("BACKREAD_BASE_URL", scripted(answered).url)
    done = backread("users", "--max-retries", 0)
    assert done.code == code
    assert says in done.line


@pytest.mark.parametrize("sent", [{"error": "invalid key"}, {}, {"id": 7, "name": "B"}])
@pytest.mark.parametrize("command", [("user", "42"), ("message", "1", "42")])
def test_another_object_than_the_one_asked_for_is_not_shown_as_it(
    backread, scripted, monkeypatch, sent, command
):
    monkeypatch.setenv("BACKREAD_BASE_URL", scripted(answer(200, sent)).url)
    done = backread(*command)
    assert (done.code, done.out) == (6, "")
    assert "id 42" in done.line


def test_users_without_a_usable_id_are_exit_6(backread, scripted, monkeypatch, tmp_path):
    pytest.importorskip("duckdb")
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
    pytest.importorskip("duckdb")
    assert "sync" in backread("runs", tmp_path).line
    (tmp_path / "beach.jpg").write_bytes(b"jpeg")
    for command in ("runs", "report", "sync"):
        done = backread(command, tmp_path)
        assert (done.code, done.out) == (7, "")
        assert str(tmp_path) in done.line


def test_fault_of_our_own_is_one_line_too(backread, monkeypatch):
    from backread.cli import connection

    def fail(self: object) -> None:
        raise RuntimeError("a bug\nin two lines")

    monkeypatch.setattr(connection.Connection, "client", fail)
    done = backread("users")
    assert done.code == 1
    assert "RuntimeError: a bug in two lines" in done.line


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [("typer", [], "cli"), ("anyio", ["mcp", "chats"], "mcp"), ("mcp", ["mcp", "chats"], "mcp")],
)
def test_a_missing_package_says_what_to_install(tmp_path, module, arguments, extra):
    (tmp_path / f"{module}.py").write_text(
        f"raise ModuleNotFoundError('No module named {module}', name='{module}')\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [*COMMAND, *arguments],
        env=os.environ
        | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f'pip install "backread[{extra}]"' in done.stderr


# --- version ----------------------------------------------------------------------------


def test_version(backread):
    import backread as package

    line = backread("--version").out
    assert re.fullmatch(
        rf"backread {re.escape(package.__version__)} \(Python 3\.\S+, (DuckDB \S+|no DuckDB)\)\n",
        line,
    )


def test_version_needs_no_extras(tmp_path):
    for name in ("typer", "rich"):
        (tmp_path / f"{name}.py").write_text(
            f"raise ModuleNotFoundError('No module named {name}', name='{name}')\n",
            encoding="utf-8",
        )
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    done = subprocess.run(
        [*COMMAND, "--version"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("backread ")
