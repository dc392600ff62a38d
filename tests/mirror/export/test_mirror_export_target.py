"""Where `Mirror.export` writes: all or nothing, whatever ends it, and private."""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from backread import MirrorError
from backread.mirror import ExportProgress, Mirror
from helpers.command_line import COMMAND, posix_only
from helpers.export_rows import fill
from helpers.file_modes import files_below, mode, umask
from helpers.mirrors import BatchSource, batch
from helpers.waiting import wait_for

FORMATS = {
    "parquet": "out",
    "csv": "out",
    "jsonl": "out",
    "xlsx": "chats.xlsx",
    "sqlite": "chats.db",
    "duckdb": "chats.duckdb",
}
each_format = pytest.mark.parametrize("shape", FORMATS)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    return fill(tmp_path_factory.mktemp("mirror") / "chats")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    """One whose export takes a while, and a few megabytes that do not compress."""
    folder = tmp_path_factory.mktemp("large") / "chats"
    said = [{"user_id": 1, "id": n, "body": os.urandom(150).hex()} for n in range(20_000)]
    BatchSource(batch([{"id": 1}], said, swept="snapshot")).sync_into(folder)
    return Mirror(folder)


@each_format
def test_an_empty_mirror_gives_empty_tables_and_an_unpublished_one_nothing(tmp_path, shape):
    mirror, target = Mirror(tmp_path / "chats"), tmp_path / FORMATS[shape]
    with pytest.raises(MirrorError, match="nothing is published"):
        mirror.export(target, format=shape)
    assert list(tmp_path.iterdir()) == []
    BatchSource(batch(swept="snapshot")).sync_into(mirror.folder)
    report = mirror.export(target, format=shape)
    assert report.rows == {"users": 0, "messages": 0, "conversations": 0}
    assert report.bytes == sum(file.stat().st_size for file in report.files)
    assert len(report.files) == (3 if FORMATS[shape] == "out" else 1)


@pytest.mark.parametrize("name", ["users.csv", "out"])
@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_an_existing_target_is_refused_and_kept(mirror, tmp_path, name, kind):
    target = tmp_path / name
    arguments: Any = {"format": "csv", "tables": ["users"]}

    def appear(now: object = None) -> None:
        if os.path.lexists(target):
            return
        if kind == "file":
            target.write_text("mine", encoding="utf-8")
        elif kind == "folder":
            target.mkdir()
            (target / "mine").touch()
        else:
            target.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(MirrorError, match="exists already"):
        mirror.export(target, on_progress=appear, **arguments)
    before = target.lstat()
    with pytest.raises(MirrorError, match=r"exists already; remove it, .*--replace"):
        mirror.export(target, **arguments)
    if name == "out" or kind != "file":
        # It is of no export.
        with pytest.raises(MirrorError, match=r"remove it|move that file|link|directory"):
            mirror.export(target, replace=True, **arguments)
    assert target.lstat() == before
    assert list(tmp_path.iterdir()) == [target]


@each_format
def test_replace_puts_the_finished_export_in_the_place_of_the_earlier_one(mirror, tmp_path, shape):
    target = tmp_path / FORMATS[shape]
    first = mirror.export(target, format=shape, tables=["users", "lists"], replace=True)
    target.chmod(0o750 if target.is_dir() else 0o640)
    (before,) = {file.read_bytes() for file in first.files if file.stem in ("users", "chats")}

    def fail(now: ExportProgress) -> None:
        raise KeyError("stop")

    with pytest.raises(KeyError):
        mirror.export(target, format=shape, replace=True, on_progress=fail)
    assert before in {file.read_bytes() for file in first.files}
    again = mirror.export(target, format=shape, tables=["messages"], replace=True)
    assert again.rows == {"messages": 30}
    assert set(again.files) == ({target} if target.is_file() else set(target.iterdir()))
    assert {file.stem for file in again.files} == {"messages" if target.is_dir() else "chats"}
    assert list(tmp_path.iterdir()) == [target]
    if os.name != "nt":
        assert mode(target) == (0o750 if target.is_dir() else 0o640)


def test_a_mirror_is_never_replaced(mirror, tmp_path):
    fill(other := tmp_path / "other")
    for shape in ("parquet", "duckdb"):
        for target in (other, other / "chats.duckdb", other / "published", mirror.folder):
            with pytest.raises((MirrorError, ValueError)):
                mirror.export(target, replace=True, format=shape)
    assert Mirror(other).table("messages").num_rows == 31


def test_a_target_inside_the_mirror_or_nowhere_is_refused(mirror, tmp_path):
    (tmp_path / "link").symlink_to(mirror.folder)
    (tmp_path / "file").touch()
    refused = {
        mirror.folder / "published" / "out": "inside the mirror",
        tmp_path / "link" / "out": "inside the mirror",
        tmp_path / "no" / "out": "does not exist; create it",
        tmp_path / "what?": "which DuckDB cannot write",
        tmp_path / os.fsdecode(b"\xff"): "which DuckDB cannot write",
        "s3://bucket/out": "not a local path",
        tmp_path / "file" / "out": "cannot be written",
    }
    for target, message in refused.items():
        with pytest.raises(MirrorError, match=message):
            mirror.export(target, format="csv")


@posix_only
@each_format
def test_files_are_as_private_as_their_folder(mirror, tmp_path, shape):
    # Of any name, and by a link to it.
    folder = tmp_path / "it's [a] *{uuid} %20#é=1 日本"
    folder.mkdir()
    folder.chmod(0o750)
    (tmp_path / "link").symlink_to(folder)
    with umask(0):
        report = mirror.export(tmp_path / "link" / FORMATS[shape], format=shape)
    assert {file.resolve() for file in report.files} == {*files_below(folder)}
    if report.target.is_dir():
        assert mode(report.target) == 0o700
    expected = 0o600 if report.target.is_dir() else 0o640
    assert {mode(each) for each in report.files} == {expected}


@posix_only
@pytest.mark.parametrize("shape", ["parquet", "xlsx", "sqlite"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(large, tmp_path, shape):
    """A limit on the size of a file fails writes as a full disk does."""
    code = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
from backread.cli.app import run
sys.exit(run(sys.argv[1:]))
"""
    target = tmp_path / FORMATS[shape]
    done = subprocess.run(
        [sys.executable, "-c", code, "export", large.folder, target, "--format", shape],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    [line] = [each for each in done.stderr.splitlines() if each.startswith("backread: ")]
    assert line == done.stderr.splitlines()[-1]
    assert f"the export to {target}: the disk is full, and nothing was written" in line
    assert list(tmp_path.iterdir()) == []


@posix_only
@each_format
@pytest.mark.long
def test_a_killed_export_leaves_what_the_next_one_removes(large, tmp_path, shape):
    target = tmp_path / FORMATS[shape]
    command = [*COMMAND, "export", str(large.folder), str(target), "--format", shape]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_for(
            lambda: (
                process.poll() is not None
                or any(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
            )
        )
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not target.exists()
    [left] = tmp_path.iterdir()
    assert left.suffix == ".unfinished"
    report = large.export(target, format=shape)
    assert report.rows["messages"] == 20_000
    assert list(tmp_path.iterdir()) == [target]


@each_format
def test_what_stops_an_export_leaves_nothing(large, tmp_path, shape):

    def stop(now: ExportProgress) -> None:
        if now.rows or now.bytes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        large.export(tmp_path / FORMATS[shape], format=shape, on_progress=stop)
    assert list(tmp_path.iterdir()) == []
    # The mirror can be read as before.
    assert large.table("messages").num_rows == 20_000
