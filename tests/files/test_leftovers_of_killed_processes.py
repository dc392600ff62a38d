"""What a killed process leaves unfinished is removed by the next; what others write is not."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backread import landing, plan
from helpers.command_line import COMMAND, posix_only
from helpers.mirrors import rows, sync
from helpers.python_process import environment
from helpers.waiting import wait_for

pytestmark = posix_only


@contextmanager
def started(*arguments: object, server: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that waits for the service, which does not answer; killed at the end."""
    command = [str(each) for each in arguments]
    with subprocess.Popen(command, env=environment(server)) as process:
        try:
            yield process
        finally:
            assert process.poll() is None
            process.kill()


def unfinished(folder: Path) -> list[Path]:
    return [each for each in folder.rglob(".*") if each.suffix in (".unfinished", ".former")]


def test_command_removes_output_of_a_killed_one(server, tmp_path):
    command = [*COMMAND, "users", "--output", str(tmp_path / "users.json")]
    server.fault("users: stall")
    with started(*command, server=server):
        wait_for(lambda: unfinished(tmp_path))
        [left] = unfinished(tmp_path)
    with started(*command, server=server):
        wait_for(lambda: unfinished(tmp_path) not in ([], [left]) and not left.exists())
        # What is being written is left alone.
        [written] = unfinished(tmp_path)
        assert subprocess.run([*command, "--timeout", "0.1"], env=environment(server)).returncode
        assert unfinished(tmp_path) == [written]
    server.clear_faults()
    assert subprocess.run(command, env=environment(server)).returncode == 0
    assert [each.name for each in tmp_path.iterdir()] == ["users.json"]


def test_sync_removes_what_a_killed_sync_left(server, mirror):
    spill = mirror.folder / "mirror.duckdb.tmp"
    server.fault("messages: stall")
    with started(*COMMAND, "sync", mirror.folder, server=server):
        wait_for(spill.is_dir)
    server.clear_faults()
    (spill / "duckdb_temp_storage-0.tmp").write_bytes(b"messages of others")
    # Where a kill came before the first rename of all.
    aside = mirror.folder / ".mirror.duckdb.0123456789abcdef.unfinished"
    aside.mkdir()
    (aside / "mirror.duckdb").touch()
    (mirror.folder / "published").mkdir(exist_ok=True)
    (mirror.folder / "published" / ".snapshot.json.0123456789abcdef.unfinished").touch()
    sync(mirror, server)
    assert rows(mirror, "SELECT count(*) FROM users") == [(120,)]
    assert unfinished(mirror.folder) == []
    names = {"mirror.duckdb", "chats.duckdb", "published", "sync.lock"}
    assert {each.name for each in mirror.folder.iterdir()} == names


def test_landing_removes_what_a_killed_landing_left(server, tmp_path):
    code = """
import sys
from backread import landing
landing.land(sys.argv[1], landing.load_shard(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""
    with server.client() as client:
        planned = plan(client, shards=2)
        landing.begin(tmp_path, planned)
        server.fault("messages: stall")
        for index in (0, 1):
            command = [sys.executable, "-c", code, tmp_path, planned.plan_id, index]
            with started(*command, server=server):
                wait_for(lambda index=index: len(unfinished(tmp_path)) == index + 1)
        server.clear_faults()
        first = landing.land(tmp_path, planned[0], client=client)
        assert len(unfinished(tmp_path)) == 1
        # Another folder stands in for the machine that landed the second one.
        landing.begin(tmp_path / "other", planned)
        second = landing.land(tmp_path / "other", planned[1], client=client)
    (tmp_path / "other" / second.file).rename(tmp_path / second.file)
    run = landing.commit(tmp_path, planned.plan_id, [first, second])
    assert unfinished(tmp_path) == []
    assert landing.dataset(tmp_path, run).count_rows() == server.world.total_messages


def test_files_of_others_are_not_removed(server, tmp_path):
    for name in (".users.json.unfinished", ".other.json.0123456789abcdef.unfinished", "x.tmp"):
        (tmp_path / name).touch()
    (tmp_path / ".users.json.0123456789abcdef.unfinished").symlink_to(tmp_path / "x.tmp")
    command = [*COMMAND, "users", "--output", str(tmp_path / "users.json")]
    before = {each.name for each in tmp_path.iterdir()}
    assert subprocess.run(command, env=environment(server)).returncode == 0
    assert {each.name for each in tmp_path.iterdir()} == before | {"users.json"}
