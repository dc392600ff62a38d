"""Where `Mirror.export` writes: all or nothing, whatever ends it, and private."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backread import MirrorError
from backread.mirror import ExportProgress, Mirror
from helpers.command_line import COMMAND, posix_only
from helpers.export_rows import fill
from helpers.mirrors import BatchSource, batch
from helpers.waiting import wait_for

pytest.importorskip("duckdb")

FORMATS = {
    "parquet": "out",
    "csv": "out",
    "jsonl": "out",
    "xlsx": "chats.xlsx",
    "sqlite": "chats.db",
    "duckdb": "chats.duckdb",
}
NEEDS = {"xlsx": "xlsxwriter"}

each_format = pytest.mark.parametrize("shape", FORMATS)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    return fill(tmp_path_factory.mktemp("mirror") / "chats")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    """One whose export takes a while, and a few megabytes that do not compress."""
    folder = tmp_path_factory.mktemp("large") / "chats"
    said = [
        {"user_id": n % 50, "id": n, "body": os.urandom(150).hex(), "sender_type": "user"}
        for n in range(40_000)
    ]
    users = [{"id": n} for n in range(50)]
    BatchSource(
        batch(users, said, swept="snapshot", lists=dict.fromkeys(range(50), "snapshot"))
    ).sync_into(folder)
    return Mirror(folder)


def need(shape: str) -> None:
    if shape in NEEDS:
        pytest.importorskip(NEEDS[shape])


@each_format
def test_an_empty_mirror_gives_empty_tables(tmp_path, shape):
    need(shape)
    BatchSource(batch(swept="snapshot")).sync_into(tmp_path / "chats")
    report = Mirror(tmp_path / "chats").export(tmp_path / FORMATS[shape], format=shape)
    assert report.rows == {"users": 0, "messages": 0, "conversations": 0}
    assert report.bytes == sum(file.stat().st_size for file in report.files)
    assert len(report.files) == (3 if FORMATS[shape] == "out" else 1)


@each_format
def test_nothing_published_is_said_and_leaves_nothing(tmp_path, shape):
    need(shape)
    with pytest.raises(MirrorError, match="nothing is published"):
        Mirror(tmp_path / "chats").export(tmp_path / FORMATS[shape], format=shape)
    assert list(tmp_path.iterdir()) == []


def existing(kind: str, path: Path) -> None:
    if kind == "file":
        path.write_text("mine", encoding="utf-8")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path.with_name("elsewhere"))


@each_format
@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_an_existing_target_is_refused_and_kept(mirror, tmp_path, shape, kind):
    need(shape)
    target = tmp_path / FORMATS[shape]
    existing(kind, target)
    before = target.lstat()
    with pytest.raises(MirrorError, match="exists already; remove it"):
        mirror.export(target, format=shape)
    assert target.lstat() == before
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
@pytest.mark.parametrize("name", ["users.csv", "out"])
def test_a_target_that_appears_meanwhile_is_refused_and_kept(mirror, tmp_path, kind, name):
    def appear(now: ExportProgress) -> None:
        if not os.path.lexists(tmp_path / name):
            existing(kind, tmp_path / name)

    if kind == "folder" and name == "out":
        pytest.skip("an empty folder holds nothing to lose")
    from backread.mirror.export import run

    def write(job: Any, *arguments: Any, **options: Any) -> None:
        appear(job.progress())
        written(job, *arguments, **options)

    written = run.write_csv
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "write_csv", write)
        with pytest.raises(MirrorError, match="created by another program meanwhile"):
            mirror.export(tmp_path / name, format="csv", tables=["users"])
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_target_inside_the_mirror_or_nowhere_is_refused(mirror, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(mirror.folder)
    for inside in (mirror.folder / "out", mirror.folder / "published" / "out", link / "out"):
        with pytest.raises(MirrorError, match="inside the mirror"):
            mirror.export(inside, format="csv")
    with pytest.raises(MirrorError, match="does not exist; create it"):
        mirror.export(tmp_path / "no" / "out", format="csv")
    for odd in ("what?", "back\\slash", os.fsdecode(b"\xff")):
        with pytest.raises(MirrorError, match="which DuckDB cannot write"):
            mirror.export(tmp_path / odd, format="csv")
    with pytest.raises(MirrorError, match="not a local path"):
        mirror.export("s3://bucket/out", format="csv")
    (tmp_path / "file").touch()
    with pytest.raises(MirrorError, match="cannot be written"):
        mirror.export(tmp_path / "file" / "out", format="csv")


@each_format
def test_a_folder_of_any_name_will_do(mirror, tmp_path, shape):
    need(shape)
    folder = tmp_path / "it's [a] *{uuid} %20#é=1 日本"
    folder.mkdir()
    # By a link to it, too.
    (tmp_path / "link").symlink_to(folder)
    report = mirror.export(tmp_path / "link" / FORMATS[shape], format=shape)
    assert {file.resolve() for file in report.files} == {
        file for file in folder.rglob("*") if file.is_file()
    }


@posix_only
@each_format
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_files_are_as_private_as_their_folder(mirror, tmp_path, shape, umask):
    need(shape)
    tmp_path.chmod(0o750)
    before = os.umask(umask)
    try:
        report = mirror.export(tmp_path / FORMATS[shape], format=shape)
    finally:
        os.umask(before)
    if report.target.is_dir():
        folders = [report.target, *(each.parent for each in report.files)]
        assert {stat.S_IMODE(each.stat().st_mode) for each in folders} == {0o700}
        expected = 0o600
    else:
        expected = 0o640
    assert {stat.S_IMODE(each.stat().st_mode) for each in report.files} == {expected}


@posix_only
@each_format
def test_a_full_disk_is_one_sentence_and_leaves_nothing(large, tmp_path, shape):
    """A limit on the size of a file fails writes as a full disk does."""
    need(shape)
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
    need(shape)
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
    assert report.rows["messages"] == 40_000
    assert list(tmp_path.iterdir()) == [target]


KILLED_WHEN_PLACED = """
import os, signal, sys
from pathlib import Path
from backread import Mirror

def kill(event, arguments):
    if event == "shutil.rmtree" and Path(sys.argv[2]).exists():
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(kill)
Mirror(sys.argv[1]).export(sys.argv[2])
"""


@posix_only
@pytest.mark.parametrize("shape", ["sqlite", "duckdb"])
def test_a_kill_just_after_the_file_was_placed_leaves_no_second_name_of_it(mirror, tmp_path, shape):
    target = tmp_path / FORMATS[shape]
    command = [sys.executable, "-c", KILLED_WHEN_PLACED, str(mirror.folder), str(target)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert target.stat().st_nlink == 2
    with pytest.raises(MirrorError, match="exists already"):
        mirror.export(target)
    assert list(tmp_path.iterdir()) == [target]
    assert target.stat().st_nlink == 1


@each_format
def test_what_stops_an_export_leaves_nothing(large, tmp_path, shape):
    need(shape)

    def stop(now: ExportProgress) -> None:
        if now.rows or now.bytes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        large.export(tmp_path / FORMATS[shape], format=shape, on_progress=stop)
    assert list(tmp_path.iterdir()) == []
    # The mirror can be read as before.
    assert large.table("messages").num_rows == 40_000


def test_an_error_of_the_callback_is_passed_on(large, tmp_path):
    def fail(now: ExportProgress) -> None:
        raise OSError("mine")

    with pytest.raises(OSError, match=r"^mine$"):
        large.export(tmp_path / "chats.db", on_progress=fail)
    with pytest.raises(TypeError, match="on_progress must be a function"):
        large.export(tmp_path / "chats.db", on_progress=1)
    assert list(tmp_path.iterdir()) == []


def test_progress_counts_rows_up_to_all_of_them(large, tmp_path):
    seen: list[ExportProgress] = []
    large.export(tmp_path / "chats.db", on_progress=seen.append)
    rows = [now.rows for now in seen]
    assert rows == sorted(rows)
    assert rows[-1] > 0
    assert {now.rows_total for now in seen} == {40_100}
    assert seen[-1].bytes > 0


def test_a_sync_meanwhile_changes_nothing(large, tmp_path):
    published = []

    def sync(now: ExportProgress) -> None:
        if not published:
            changed = [{"user_id": 0, "id": 0, "body": "changed", "sender_type": "user"}]
            source = BatchSource(batch(messages=changed, swept="uncertified"))
            published.append(source.sync_into(large.folder))

    large.export(tmp_path / "chats.duckdb", tables=["messages"], on_progress=sync)
    import duckdb

    with duckdb.connect(tmp_path / "chats.duckdb") as connection:
        query = "SELECT count(*), count(*) FILTER (body = 'changed') FROM messages"
        assert connection.sql(query).fetchall() == [(40_000, 0)]
    assert published
