"""``backread mock``: the service, faked, on a port until it is stopped."""

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import backread
from backread import Client
from backread.cli.mock import _assignment
from backread.testing import World
from helpers.command_line import COMMAND, SECONDS, posix_only, wait_for


@contextmanager
def served(
    *arguments: object, number: int = signal.SIGTERM, ready: Path | None = None
) -> Iterator[dict[str, str]]:
    """The variables that the command prints, while it serves; its last words when it has ended."""
    with subprocess.Popen(
        [*COMMAND, "mock", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            if ready is not None:
                wait_for(ready.exists, process)
            assert process.stdout is not None
            lines = [process.stdout.readline().removeprefix("export ").strip() for _ in range(3)]
            said = dict(line.split("=", 1) for line in lines if line)
            assert said.keys() == {"BACKREAD_BASE_URL", "BACKREAD_API_SECRET", "BACKREAD_VENDOR"}
            yield said
        finally:
            process.send_signal(number)
            _, error = process.communicate(timeout=SECONDS)
        said["stderr"] = error
        assert process.returncode == 0


def client(said: dict[str, str], **options: Any) -> Client:
    return Client(*list(said.values())[:3], **options)


@posix_only
@pytest.mark.parametrize("number", [1, signal.SIGINT, signal.SIGTERM])
def test_mock_serves_until_it_is_stopped(tmp_path, number):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("below nohup a child ignores the signal, too")
    file = tmp_path / "port"
    arguments = ("--users", 7, "--messages", "2:2", "--port-file", file)
    with served(*arguments, number=number, ready=file) as said:
        assert said["BACKREAD_BASE_URL"].endswith(":" + file.read_text(encoding="utf-8").strip())
        with client(said) as reader:
            users = reader.users.list().to_list()
            assert len(users) == 7
            assert len(reader.messages.list(users[0].id).to_list()) == 2
    assert not file.exists()
    page = re.escape(f"{said['BACKREAD_BASE_URL']}/__mock/#")
    assert re.fullmatch(rf"backread: the inspector is at {page}\S+\n", said["stderr"])
    assert said["BACKREAD_API_SECRET"] not in said["stderr"]


@posix_only
def test_mock_serves_given_faults_and_dialect():
    with (
        served(
            *("--users", 120, "--seed", 9, "--dialect", "hostile order=id"),
            *("--fault", "users offset=0: status(429, retry_after=0) x1"),
            *("--fault", "user: status(418)", "--rate", "1000/s burst=500"),
        ) as said,
        client(said) as reader,
    ):
        users = reader.users.list()
        assert len({user.id for user in users}) == 120
        # Three full pages would do; with this seed some are short, and one is refused at first.
        assert (users.report.pages, users.report.requests) == (8, 9)
        with pytest.raises(backread.StatusError, match="418"):
            reader.users.get(42)


@posix_only
def test_mock_serves_the_world_of_a_file_or_one_that_ends_at_a_time(tmp_path):
    world = World(seed=3, users=4, messages_per_user=(1, 5))
    file = tmp_path / "world.jsonl"
    world.to_jsonl(file)
    with served("--world", file) as said, client(said) as reader:
        assert [user.id for user in reader.users.list()] == world.user_ids()
    with served("--users", "20", "--until", "2026-11-23") as said, client(said) as reader:
        times = [each.online_at for each in reader.users.list() if each.online_at]
    end = datetime(2026, 11, 23, tzinfo=UTC)
    assert end - timedelta(days=3) < max(times) <= end


def test_a_taken_port_is_exit_2(backread, server):
    done = backread("mock", "--port", server.port)
    assert done.code == 2
    assert str(server.port) in done.line


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--dialect", "nice"], 'there is no dialect "nice"; choose one of documented, lenient'),
        (["--fault", "users: reset()", "--fault", "usres: reset()"], 'fault "usres: reset()"'),
        (["--rate", "fast"], "--rate: a rate begins with requests per second, such as 10/s"),
        (["--world", "odd.jsonl"], "line 2"),
        (["--world", "odd.jsonl", "--seed", "0", "--users", "3"], "leave out --users, --seed"),
    ],
)
def test_what_makes_no_sense_is_one_line(backread, tmp_path, monkeypatch, arguments, problem):
    monkeypatch.chdir(tmp_path)
    Path("odd.jsonl").write_text('{"id": 1}\n{"id": 1}\n', encoding="utf-8")
    done = backread("mock", *arguments)
    assert done.code == 2
    assert problem in done.line


NASTY = "mock_$(touch made)`touch made`;touch made'\u2019\"\\ %PATH% $HOME !x"


@posix_only
def test_pasted_lines_set_the_variables(tmp_path):
    line = _assignment("BACKREAD_API_SECRET", NASTY)
    done = subprocess.run(
        ["sh", "-c", line + '\nprintf "%s" "$BACKREAD_API_SECRET"'],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
    )
    assert (done.stdout, done.stderr) == (NASTY, "")
    assert not (tmp_path / "made").exists()
