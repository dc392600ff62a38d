"""The command as a shell sees it: what is on stdout, what on stderr, and the exit code."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backread.testing import MockServer, World
from scripted_server import answer

pytest.importorskip("typer")
pytest.importorskip("rich")

from backread.cli.app import run

SECONDS = 60
COMMAND = [sys.executable, "-m", "backread"]

posix_only = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals and pipes")


@dataclass(frozen=True)
class Done:
    """How one command line ended."""

    code: int
    out: str
    error: str

    @property
    def line(self) -> str:
        """The one line on stderr."""
        assert self.error.count("\n") == 1, self.error
        assert self.error.startswith("backread: ")
        return self.error.strip()


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=11, users=120, messages_per_user=(1, 30))) as running:
        yield running


@pytest.fixture
def settings(server: MockServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name in [name for name in os.environ if name.startswith("BACKREAD_")]:
        monkeypatch.delenv(name)
    values = {
        "BACKREAD_BASE_URL": server.url,
        "BACKREAD_API_SECRET": server.secret,
        "BACKREAD_VENDOR": server.vendor,
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return values


@pytest.fixture
def backread(
    settings: dict[str, str], server: MockServer, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Runs one command line in this process; the secret is never in what it writes."""

    def call(*arguments: object) -> Done:
        code = run([str(each) for each in arguments])
        written = capfd.readouterr()
        assert server.secret not in written.out + written.err
        assert "Traceback" not in written.err
        return Done(code, written.out, written.err)

    return call


def first_user(server: MockServer) -> int:
    return server.world.user_ids()[0]


# --- the four reads ---------------------------------------------------------------------------


def test_users_are_json_lines_as_sent(backread: Callable[..., Done], server: MockServer) -> None:
    done = backread("users")
    assert (done.code, done.error) == (0, "")
    sent = [json.loads(line) for line in done.out.splitlines()]
    assert sent == [server.world.user(each) for each in server.world.user_ids()]
    # In their own scripts, not as escapes.
    assert "\\u" not in done.out


def test_single_items_are_one_object(backread: Callable[..., Done], server: MockServer) -> None:
    user_id = first_user(server)
    message_id = server.world.message_ids(user_id)[0]
    assert json.loads(backread("user", user_id).out) == server.world.user(user_id)
    shown = json.loads(backread("message", user_id, message_id).out)
    assert shown == server.world.message(user_id, message_id)


def test_messages_as_csv_have_the_columns_of_the_mirror(
    backread: Callable[..., Done], server: MockServer
) -> None:
    user_id = first_user(server)
    table = list(csv.DictReader(backread("messages", user_id, "--format", "csv").out.splitlines()))
    for row, message_id in zip(table, server.world.message_ids(user_id), strict=True):
        sent = server.world.message(user_id, message_id)
        assert row["user_id"] == str(user_id)
        assert row["id"] == str(sent["id"])
        assert row["sender_email"] == sent["sender"]["email"]
        assert row["read_by_user"] == ("true" if sent["read_by_user"] else "false")
        assert row["extra"] == row["sender_extra"] == ""


def test_table_cuts_nothing_short_in_a_pipe(
    backread: Callable[..., Done], server: MockServer
) -> None:
    out = backread("users", "--format", "table", "--limit", 5).out
    lines = out.splitlines()
    assert len(lines) == 6
    assert lines[0].split()[:3] == ["id", "name", "email"]
    for user_id, line in zip(server.world.user_ids(), lines[1:], strict=False):
        assert server.world.user(user_id)["last_url"] in line


def test_limit_is_a_number_of_rows(backread: Callable[..., Done]) -> None:
    assert len(backread("users", "--limit", 101).out.splitlines()) == 101


@pytest.mark.parametrize("arguments", [["users"], ["messages", "--all"]])
def test_parquet_goes_to_a_file(
    backread: Callable[..., Done], server: MockServer, tmp_path: Path, arguments: list[str]
) -> None:
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "rows.parquet"
    before = sum(server.counts().values())
    assert backread(*arguments, "--format", "parquet", "--output", file).code == 0
    sent = sum(server.counts().values()) - before
    with duckdb.connect() as connection:
        held = connection.execute(f"SELECT count(*) FROM '{file}'").fetchall()[0][0]
    world = server.world
    if arguments == ["users"]:
        assert held == world.total_users
        assert sent <= 3  # two pages, read once
    else:
        assert held == world.total_messages
    assert [entry.name for entry in tmp_path.iterdir()] == ["rows.parquet"]


def test_output_is_whole_or_not_there(
    backread: Callable[..., Done],
    scripted: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = {"limit": 2, "offset": 0, "total": 4, "users": [{"id": 1}, {"id": 2}]}
    monkeypatch.setenv("BACKREAD_BASE_URL", scripted(answer(200, page), answer(404)).url)
    file = tmp_path / "users.jsonl"
    assert backread("users", "--output", file).code == 3
    assert list(tmp_path.iterdir()) == []


def test_secret_may_come_from_a_file(
    backread: Callable[..., Done],
    server: MockServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    ("arguments", "says"),
    [
        (["users", "--limit", "0"], "--limit"),
        (["users", "--limit", "many"], "--limit"),
        (["users", "--format", "xml"], "--format"),
        (["users", "--colour"], "--colour"),
        (["user"], "USER_ID"),
        (["user", "forty-two"], "USER_ID"),
        (["user", "--", "-1"], "USER_ID"),
        (["messages"], "--all"),
        (["messages", "1", "--all"], "--all"),
        (["fetch"], "fetch"),
        (["users", "--timeout", "soon"], "--timeout"),
        (["users", "--base-url", "not a url"], "base_url"),
        (["users", "--base-url", "http://chat.example.com"], "allow_http"),
        (["users", "--secret-file", "nowhere"], "nowhere"),
        (["users", "--output", "no/such/folder/users"], "--output"),
        (["mock", "--messages", "9"], "MIN:MAX"),
        (["mock", "--messages", "9:1"], "MIN:MAX"),
        (["mock", "--port", "70000"], "--port"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line_and_exit_2(
    backread: Callable[..., Done],
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = backread(*arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.line


@pytest.mark.parametrize("name", ["BASE_URL", "API_SECRET", "VENDOR"])
def test_missing_setting_is_named(
    backread: Callable[..., Done], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(f"BACKREAD_{name}")
    done = backread("users")
    assert done.code == 2
    assert f"BACKREAD_{name}" in done.line


def test_what_is_not_there_is_exit_3(backread: Callable[..., Done]) -> None:
    done = backread("user", 999_999_999)
    assert (done.code, done.out) == (3, "")
    assert "404" in done.line


def test_wrong_secret_is_exit_4(
    backread: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKREAD_API_SECRET", "mock_wrong")
    done = backread("users")
    assert done.code == 4
    assert "--secret-file" in done.line


@pytest.mark.parametrize("status", [422, 500])
def test_failing_service_is_exit_5(
    backread: Callable[..., Done], scripted: Any, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKREAD_BASE_URL", scripted(answer(status, "no")).url)
    done = backread("users", "--max-retries", 0)
    assert done.code == 5
    assert str(status) in done.line


def test_unreachable_service_is_exit_5(
    backread: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    with MockServer() as gone:
        monkeypatch.setenv("BACKREAD_BASE_URL", gone.url)
    done = backread("users", "--max-retries", 0)
    assert done.code == 5
    assert done.line


def test_unreadable_answer_is_exit_6(
    backread: Callable[..., Done], scripted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKREAD_BASE_URL", scripted(answer(200, '{"users": 7}')).url)
    done = backread("users", "--max-retries", 0)
    assert done.code == 6
    assert "users" in done.line


def test_folder_that_is_no_mirror_is_exit_7(backread: Callable[..., Done], tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    assert "sync" in backread("report", tmp_path).line
    (tmp_path / "beach.jpg").write_bytes(b"jpeg")
    for command in ("report", "sync"):
        done = backread(command, tmp_path)
        assert (done.code, done.out) == (7, "")
        assert str(tmp_path) in done.line


def test_fault_of_our_own_is_one_line_too(
    backread: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    from backread.cli import connection

    def fail(self: object) -> None:
        raise RuntimeError("a bug\nin two lines")

    monkeypatch.setattr(connection.Connection, "client", fail)
    done = backread("users")
    assert done.code == 1
    assert "RuntimeError: a bug in two lines" in done.line


def test_missing_typer_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(
        "raise ModuleNotFoundError('No module named typer', name='typer')\n", encoding="utf-8"
    )
    done = subprocess.run(
        COMMAND,
        env=os.environ
        | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert 'pip install "backread[cli]"' in done.stderr


# --- help, version ----------------------------------------------------------------------------


def test_help_names_every_command(backread: Callable[..., Done]) -> None:
    for arguments in ([], ["--help"]):
        done = backread(*arguments)
        assert done.code == 0
        for command in ("users", "user", "messages", "message", "sync", "report", "mock", "demo"):
            assert command in done.out
            assert backread(command, "--help").code == 0


def test_version(backread: Callable[..., Done]) -> None:
    import backread as package

    assert backread("--version").out == f"backread {package.__version__}\n"


# --- the mirror -------------------------------------------------------------------------------


def test_sync_says_how_it_goes_and_what_it_did(
    backread: Callable[..., Done], server: MockServer, tmp_path: Path
) -> None:
    pytest.importorskip("duckdb")
    folder = tmp_path / "chats"
    done = backread("sync", folder)
    assert done.code == 0
    assert done.error.splitlines()[0].startswith("reading: 0 users")
    assert done.error.splitlines()[-1].startswith("finished: 120 of 120 users")
    assert f"{server.world.total_messages:,} messages added" in done.out
    assert "120 users" in backread("sync", folder, "--full").out
    lines = backread("report", folder).out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["run", "mode"],
        ["2", "full"],
        ["1", "incremental"],
    ]
    assert len(backread("report", folder, "--limit", 1).out.splitlines()) == 2


def test_sync_keeps_off_the_folder_of_the_demo(
    backread: Callable[..., Done], tmp_path: Path
) -> None:
    (tmp_path / ".backread-demo").touch()
    done = backread("sync", tmp_path)
    assert done.code == 2
    assert "demo" in done.line


# --- in a process of its own ------------------------------------------------------------------


@posix_only
def test_closed_pipe_ends_it_quietly(settings: dict[str, str]) -> None:
    with subprocess.Popen(
        [*COMMAND, "users"],
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        # Closed before anything is written: it must fail at its first page.
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(SECONDS) == 141


@posix_only
def test_ctrl_c_is_one_line_and_exit_130(scripted: Any) -> None:
    server = scripted(lambda request: server.stall())
    settings = {
        "BACKREAD_BASE_URL": server.url,
        "BACKREAD_API_SECRET": server.secret,
        "BACKREAD_VENDOR": server.vendor,
    }
    with subprocess.Popen(
        [*COMMAND, "users"], env=os.environ | settings, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: server.requests, process)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert error == "backread: stopped by Ctrl-C\n"


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    import time

    deadline = time.monotonic() + SECONDS
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


@posix_only
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_mock_serves_until_it_is_stopped(
    tmp_path: Path, number: signal.Signals, settings: dict[str, str]
) -> None:
    from backread import Client

    file = tmp_path / "port"
    with subprocess.Popen(
        [*COMMAND, "mock", "--users", "7", "--messages", "2:2", "--port-file", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().removeprefix("export ").strip() for _ in range(3)]
        said = dict(line.split("=", 1) for line in lines)
        assert said.keys() == settings.keys()
        wait_for(file.exists, process)
        assert said["BACKREAD_BASE_URL"].endswith(":" + file.read_text(encoding="utf-8").strip())
        with Client(*said.values()) as client:
            users = client.users.list().to_list()
            assert len(users) == 7
            assert len(client.messages.list(users[0].id).to_list()) == 2
        process.send_signal(number)
        _, error = process.communicate(timeout=SECONDS)
    assert (process.returncode, error) == (0, "")
    assert not file.exists()


def test_mock_on_a_taken_port_is_exit_2(backread: Callable[..., Done], server: MockServer) -> None:
    done = backread("mock", "--port", server.port)
    assert done.code == 2
    assert str(server.port) in done.line


@posix_only
@pytest.mark.slow
def test_ctrl_c_during_a_sync_says_that_it_can_go_on(
    backread: Callable[..., Done], tmp_path: Path
) -> None:
    pytest.importorskip("duckdb")
    folder = tmp_path / "chats"
    world = World(seed=1, users=2_000, messages_per_user=(100, 300))
    with MockServer(world) as server:
        settings = {
            "BACKREAD_BASE_URL": server.url,
            "BACKREAD_API_SECRET": server.secret,
            "BACKREAD_VENDOR": server.vendor,
        }
        with subprocess.Popen(
            [*COMMAND, "sync", str(folder)],
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            wait_for(lambda: server.counts()["messages"] > 200, process)
            process.send_signal(signal.SIGINT)
            out, error = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (130, "")
    assert error.splitlines()[-1].startswith("backread: stopped; what was committed is kept")
    assert "Traceback" not in error


@pytest.mark.slow
def test_demo_shows_two_runs_and_three_answers(
    backread: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        # Once more over what the first one left.
        done = backread("demo")
        assert done.code == 0
        assert "2,000 users" in done.out
        assert "run 1: 2,000 users" in done.out
        assert "run 2: 2,005 users" in done.out
        assert done.out.count("?\n") == 3
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    refused = backread("demo", "mine")
    assert refused.code == 2
    assert "mine" in refused.line
    assert (tmp_path / "mine" / "notes.txt").exists()
