"""The command in a process of its own: pipes, signals, streams that are closed or full."""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from helpers.api_rows import paged, users
from helpers.command_line import COMMAND, SECONDS, posix_only, settings_of, wait_for
from helpers.pseudo_terminal import on_terminal
from helpers.scripted_server import answer


@posix_only
@pytest.mark.parametrize("argument", ["users", "--help"])
def test_closed_pipe_ends_it_quietly(settings, argument):
    with subprocess.Popen(
        [*COMMAND, argument],
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


def ended_by(number: int, server: Any, *arguments: str) -> tuple[int, str]:
    """The exit code and the stderr of a command that gets a signal at its first request."""
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("below nohup a child ignores the signal, too")
    with subprocess.Popen(
        [*COMMAND, *arguments],
        env=os.environ | settings_of(server),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for(lambda: server.requests, process)
        process.send_signal(number)
        _, error = process.communicate(timeout=SECONDS)
    return process.returncode, error


STOPPED = "stopped; committed rows are kept, and the next sync resumes from there"


@posix_only
@pytest.mark.parametrize(
    ("arguments", "number", "exit_code", "said"),
    [
        (["users"], signal.SIGINT, 130, "stopped by Ctrl-C"),
        (["users"], signal.SIGTERM, 143, "stopped by SIGTERM"),
        (["users", "--output", "users.parquet"], signal.SIGINT, 130, "stopped by Ctrl-C"),
        (["sync", "chats", "--json"], getattr(signal, "SIGHUP", 1), 129, STOPPED),
    ],
)
def test_a_signal_is_one_line_and_its_exit_code(
    scripted, tmp_path, monkeypatch, arguments, number, exit_code, said
):
    """Also SIGTERM to the first process of a container, which Linux ignores without a handler."""
    monkeypatch.chdir(tmp_path)
    server = scripted(lambda request: server.stall())
    assert ended_by(number, server, *arguments) == (exit_code, f"backread: {said}\n")
    assert not list(tmp_path.glob("*.parquet"))


@posix_only
def test_sighup_that_is_ignored_stays_ignored():
    """As below nohup."""
    code = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from backread.cli import exits\n"
        "with exits.ended_like_ctrl_c() as came: signal.raise_signal(signal.SIGHUP)\n"
        "assert not came\n"
        "assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_outage_is_said_on_stderr_when_it_begins_and_when_it_ends(scripted):
    pages = paged(users(300))
    answers = itertools.count()

    def service(request: Any) -> Any:
        return answer(502) if 1 <= next(answers) < 4 else pages(request)

    server = scripted(service)
    done = subprocess.run(
        [*COMMAND, "users", "--max-concurrency", "1"],
        env=os.environ | settings_of(server),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 300)
    began, ended = done.stderr.splitlines()
    assert began.startswith(f"backread: {server.url} has stopped answering")
    assert ended.startswith(f"backread: {server.url} answers again")


@posix_only
def test_a_long_wait_is_said_on_stderr(scripted, tmp_path):
    pages = paged(users(300))

    def service(request: Any) -> Any:
        is_first = request.query.get("offset") == "0" and request.path == "/external/users"
        return pages(request) if is_first else answer(503, headers={"retry-after": "3587"})

    with subprocess.Popen(
        [*COMMAND, "sync", "chats", "--json"],
        cwd=tmp_path,
        env=os.environ | settings_of(scripted(service)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        # Or nothing would end a command that says nothing.
        end = Timer(SECONDS, process.kill)
        end.start()
        said = process.stderr.readline()
        end.cancel()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
    wait = "the service answered 503: the next attempt is in 59 min 47 s; Ctrl-C ends it"
    assert said == f"backread: {wait}\n"
    assert process.returncode == 130


@posix_only
def test_ctrl_c_while_modules_are_imported_is_one_line(tmp_path):
    # Stands in for the module that is imported when the signal comes.
    (tmp_path / "typer.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [*COMMAND, "users"],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stderr) == (130, "backread: stopped by Ctrl-C\n")


# --- streams that are closed, full, or of another encoding ----------------------------------------


def shell(
    script: str, settings: dict[str, str], *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a script in which ``"$@"`` is the command with these arguments."""
    return subprocess.run(
        ["sh", "-c", script, "sh", *COMMAND, *arguments],
        env=os.environ | settings | variables,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
    )


@posix_only
def test_closed_stdout_is_one_line(settings):
    done = shell('exec "$@" >&-', settings, "users")
    assert done.returncode == 2
    assert done.stderr.startswith("backread: stdout is closed")
    assert done.stderr.count("\n") == 1


@posix_only
def test_closed_stderr_leaves_the_exit_code(settings):
    done = shell('exec "$@" 2>&-', settings, "user", "999999999")
    assert (done.returncode, done.stdout) == (3, "")


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


@FULL
def test_full_disk_behind_stderr_does_not_stop_a_sync(settings, tmp_path):
    done = shell('exec "$@" 2>/dev/full', settings, "sync", str(tmp_path / "chats"))
    assert done.returncode == 0
    assert (tmp_path / "chats" / "published" / "current").exists()


@FULL
def test_full_disk_behind_stdout_says_so(settings):
    done = shell('exec "$@" >/dev/full', settings, "users", "--format", "parquet")
    assert done.returncode == 2
    assert done.stderr.startswith("backread: stdout cannot be written: No space left on device; ")
    assert done.stderr.count("\n") == 1


@posix_only
def test_output_that_finds_no_room_names_the_file(settings, tmp_path):
    file = tmp_path / "users.jsonl"
    done = shell('ulimit -f 1; exec "$@"', settings, "users", "--output", str(file))
    assert done.returncode == 2
    assert done.stderr.startswith(f"backread: --output {file} cannot be written: ")
    assert "free some space" in done.stderr
    assert list(tmp_path.iterdir()) == []


@posix_only
def test_terminal_that_knows_ascii_alone_gets_a_table(settings, server):
    environment = {**settings, "PYTHONIOENCODING": "ascii", "COLUMNS": "40", "TERM": "xterm"}
    shown = on_terminal("users", "--format", "table", **environment)
    assert shown.code == 0
    assert shown.text.count("\n") >= server.world.total_users
    assert shown.text.isascii()
    assert "?" in shown.text
