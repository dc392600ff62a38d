"""What a killed process leaves unfinished is removed by the next; what others write is not."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from backread import Client, Mirror, landing, plan
from backread.testing import MockServer
from helpers.command_line import COMMAND, posix_only
from helpers.mirrors import rows, sync
from helpers.python_process import environment
from helpers.waiting import wait_for

pytestmark = posix_only


@contextmanager
def silent(server: MockServer, what: str) -> Iterator[None]:
    """The service does not answer."""
    server.fault(f"{what}: stall")
    try:
        yield
    finally:
        server.clear_faults()


@contextmanager
def started(arguments: list[str], server: Any, **variables: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        arguments, env=environment(server) | variables, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def killed(arguments: list[str], server: Any, condition: Callable[[], object], **env: str) -> None:
    """Starts a process, and ends it with SIGKILL once the condition holds."""
    with started(arguments, server, **env) as process:
        wait_for(lambda: condition() or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGKILL)


def unfinished(folder: Path) -> list[Path]:
    return [each for each in folder.rglob(".*") if each.suffix in (".unfinished", ".former")]


def test_command_removes_output_of_a_killed_one(server, tmp_path):
    command = [*COMMAND, "users", "--output", str(tmp_path / "users.json")]
    with silent(server, "users"):
        killed(command, server, lambda: unfinished(tmp_path))
        assert len(unfinished(tmp_path)) == 1
        with started(command, server):
            wait_for(lambda: len(list(tmp_path.iterdir())) == 1 and not stale(tmp_path))
            # What is being written is left alone.
            [written] = unfinished(tmp_path)
            assert subprocess.run(
                [*command, "--timeout", "0.1"], env=environment(server)
            ).returncode
            assert unfinished(tmp_path) == [written]
    assert subprocess.run(command, env=environment(server)).returncode == 0
    assert [each.name for each in tmp_path.iterdir()] == ["users.json"]


def stale(folder: Path) -> list[Path]:
    """The unfinished files that no process has locked."""
    import fcntl

    found = []
    for each in unfinished(folder):
        with suppress(BlockingIOError, FileNotFoundError), each.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found.append(each)
    return found


def test_sync_removes_what_a_killed_sync_left(server, tmp_path):
    mirror = Mirror(tmp_path / "chats")
    with silent(server, "messages"):
        spill = mirror.folder / "mirror.duckdb.tmp"
        killed([*COMMAND, "sync", str(mirror.folder)], server, spill.is_dir)
    (spill / "duckdb_temp_storage-0.tmp").write_bytes(b"messages of others")
    # Where a kill came before the first rename of all.
    aside = mirror.folder / ".mirror.duckdb.0123456789abcdef.unfinished"
    aside.mkdir()
    (aside / "mirror.duckdb").touch()
    (mirror.folder / "published").mkdir(exist_ok=True)
    half = mirror.folder / "published" / ".snapshot.json.0123456789abcdef.unfinished"
    half.touch()
    sync(mirror, server)
    assert rows(mirror, "SELECT count(*) FROM users") == [(120,)]
    assert not spill.exists()
    assert unfinished(mirror.folder) == []
    names = {"mirror.duckdb", "chats.duckdb", "published", "sync.lock"}
    assert {each.name for each in mirror.folder.iterdir()} == names


def test_landing_removes_what_a_killed_landing_left(server, tmp_path):
    with Client(server.url, server.secret, server.vendor) as client:
        planned = plan(client, shards=2)
    landing.begin(tmp_path, planned)
    code = """
import sys
from backread import landing
landing.land(sys.argv[1], landing.load_shard(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""
    with silent(server, "messages"):
        for shard in planned:
            command = [sys.executable, "-c", code, str(tmp_path), planned.plan_id]
            count = len(unfinished(tmp_path))
            killed(
                [*command, str(shard.index)],
                server,
                lambda count=count: len(unfinished(tmp_path)) > count,
            )
    assert len(unfinished(tmp_path)) == 2
    with Client(server.url, server.secret, server.vendor) as client:
        first = landing.land(tmp_path, planned[0], client=client)
        assert len(unfinished(tmp_path)) == 1
        # Another folder stands in for the machine that landed the second one.
        landing.begin(tmp_path / "other", planned)
        second = landing.land(tmp_path / "other", planned[1], client=client)
    (tmp_path / "other" / second.file).rename(tmp_path / second.file)
    landing.commit(tmp_path, planned.plan_id, [first, second])
    assert unfinished(tmp_path) == []


def test_files_of_others_are_not_removed(server, tmp_path):
    for name in (".users.json.unfinished", ".other.json.0123456789abcdef.unfinished", "x.tmp"):
        (tmp_path / name).touch()
    (tmp_path / ".users.json.0123456789abcdef.unfinished").symlink_to(tmp_path / "x.tmp")
    command = [*COMMAND, "users", "--output", str(tmp_path / "users.json")]
    before = {each.name for each in tmp_path.iterdir()}
    assert subprocess.run(command, env=environment(server)).returncode == 0
    assert {each.name for each in tmp_path.iterdir()} == before | {"users.json"}
