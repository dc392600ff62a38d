"""`backread browse` as a command: the address it prints, how it ends, and what it refuses."""

import errno
import http.client
import os
import re
import signal
import socket
import subprocess
import threading

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from backread._browse import BrowseServer
from backread.errors import MirrorError
from helpers import browse_client
from helpers.command_line import COMMAND, posix_only
from helpers.waiting import PATIENCE, wait_for

own = browse_client.own


def begin(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "browse", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )


def address_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/\?token=\S+)\n", line)
    assert found, line
    return int(found[1]), found[2]


def entered(port: int, target: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", target)
    return connection.getresponse().status


@posix_only
@pytest.mark.parametrize("number", [1, signal.SIGINT, signal.SIGTERM])
def test_the_command_prints_the_address_and_ends_quietly(own, number):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("below nohup a child ignores the signal, too")
    before = {str(path) for path in own.rglob("*")}
    with begin(own, "--no-open") as process:
        port, target = address_of(process)
        # A browser keeps connections ready that ask for nothing.
        with socket.create_connection(("127.0.0.1", port)):
            assert entered(port, target) == 303
            process.send_signal(number)
            out, error = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "")
    assert error == "Ctrl-C ends it\n"
    assert {str(path) for path in own.rglob("*")} == before


@posix_only
def test_a_kill_leaves_nothing_behind(own):
    before = {str(path) for path in own.rglob("*")}
    with begin(own, "--no-open") as process:
        port, target = address_of(process)
        process.kill()
        process.communicate(timeout=PATIENCE)
    assert {str(path) for path in own.rglob("*")} == before
    with begin(own, "--no-open", "--port", port) as process:
        again, other = address_of(process)
        assert again == port
        assert other != target
        assert entered(port, other) == 303
        assert entered(port, target) == 403
        process.terminate()
        process.communicate(timeout=PATIENCE)


@posix_only
def test_a_browser_is_opened_with_an_address_that_works_once(own, tmp_path):
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}.part && mv {seen}.part {seen}\n')
    browser.chmod(0o700)
    with begin(own, BROWSER=str(browser)) as process:
        port, target = address_of(process)
        wait_for(seen.exists)
        opened = seen.read_text().strip()
        assert opened.startswith(f"http://127.0.0.1:{port}/?token=")
        once = opened.removeprefix(f"http://127.0.0.1:{port}")
        assert once != target
        assert [entered(port, once), entered(port, once)] == [303, 403]
        process.terminate()
        process.communicate(timeout=PATIENCE)


def run(*arguments: object) -> tuple[int, str]:
    done = subprocess.run(
        [*COMMAND, "browse", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.returncode, done.stderr


def test_a_port_in_use_is_one_sentence(own):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, said = run(own, "--no-open", "--port", port)
    assert code == 2
    assert f"port {port} is in use; choose another with --port" in said


def test_without_a_loopback_address_no_other_port_is_advised(own, backread, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    done = backread("browse", own, "--no-open")
    assert done.code == 2
    assert "no IPv4 loopback address 127.0.0.1; add it: ip addr add" in done.line
    assert "--port" not in done.line


def test_a_folder_that_is_no_mirror_is_one_sentence(tmp_path):
    before = set(threading.enumerate())
    with pytest.raises(MirrorError, match="nothing is published"):
        BrowseServer(tmp_path)
    assert set(threading.enumerate()) <= before
    code, said = run(tmp_path, "--no-open")
    assert code == 7
    assert "nothing is published in" in said
    code, said = run(tmp_path / "nothing", "--no-open")
    assert code == 7
    assert "does not exist" in said
