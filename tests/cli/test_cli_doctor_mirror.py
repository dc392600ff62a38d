"""``backread doctor``: what is wrong with a mirror."""

import errno
import shutil
from datetime import datetime, timedelta, tzinfo
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("duckdb")

import duckdb

from backread import Mirror
from backread.mirror.store import engine
from backread.mirror.store.lock import writer_lock
from backread.testing import MockServer
from helpers.doctor_report import findings


@pytest.fixture
def chats(server: MockServer, tmp_path: Path) -> Path:
    with server.client() as client:
        Mirror(tmp_path / "chats").sync(client)
    return tmp_path / "chats"


def test_a_folder_that_is_no_mirror(doctor, tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        done = doctor("--json", folder)
        assert done.code == 7
        [(state, text)] = findings(done, "mirror")
        assert state == "problem"
        assert str(folder) in text


def test_a_mirror_that_is_being_synced(doctor, chats):
    with writer_lock(chats):
        done = doctor("--json", chats)
    assert any("a sync is going on, by " in text for _, text in findings(done, "mirror"))
    assert ("ok", "no sync is going on, and none is unfinished -> ") in findings(
        doctor("--json", chats), "mirror"
    )


def test_a_mirror_whose_last_run_was_partial(doctor, chats, server):
    with server.client() as client:
        Mirror(chats).sync(client, mode="full", max_requests=5)
    done = doctor("--json", chats)
    assert done.code == 0
    warnings = [text for state, text in findings(done, "mirror") if state == "warning"]
    assert "the last run was partial -> the next sync continues it" in warnings


def test_a_full_disk_is_told_beforehand(doctor, chats, monkeypatch):
    usage = shutil.disk_usage(chats)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    warnings = [
        text for state, text in findings(doctor("--json", chats), "mirror") if state != "ok"
    ]
    assert len(warnings) == 1
    assert "its disk has 1 kB free -> free some space" in warnings[0]


def test_files_that_snapshots_share_are_counted_once(doctor, chats, server):
    def used() -> str:
        texts = [text for _, text in findings(doctor("--json", chats), "mirror")]
        return next(text for text in texts if "its disk has" in text).split(",")[0]

    with server.client() as client:
        Mirror(chats).sync(client)
    # Links as those of the files that a sync does not write again.
    before = used()
    for number in range(20):
        for file in (chats / "published" / "current").glob("*/*.parquet"):
            file.with_name(f"{file.name}.{number}").hardlink_to(file)
    assert used() == before


def test_a_sync_of_given_users_says_nothing_of_the_list_of_users(doctor, chats, server):
    with server.client() as client:
        Mirror(chats).sync(client, users=server.world.user_ids()[:1])
    states = [state for state, _ in findings(doctor("--json", chats), "mirror")]
    assert states
    assert {*states} == {"ok"}


def test_a_database_that_is_lost(doctor, chats):
    (chats / "mirror.duckdb").unlink()
    done = doctor("--json", chats)
    assert done.code == 7
    problems = [text for state, text in findings(done, "mirror") if state == "problem"]
    assert problems == [
        "its mirror.duckdb is missing: it can be read, and not synced -> sync into a new folder"
    ]


def test_a_published_file_that_is_damaged_within(doctor, chats, server):
    """A sync looks at its length and its ends only, and links it into the next snapshot."""
    [file] = chats.glob("published/0*/messages/*.parquet")
    content = file.read_bytes()
    middle = len(content) // 3
    file.write_bytes(content[:middle] + bytes(200) + content[middle + 200 :])
    done = doctor("--json", chats)
    assert done.code == 7
    [text] = [text for state, text in findings(done, "mirror") if state == "problem"]
    assert f"{file} is damaged -> delete it, and sync again" in text
    file.unlink()
    with server.client() as client:
        Mirror(chats).sync(client)
    assert {state for state, _ in findings(doctor("--json", chats), "mirror")} == {"ok"}


@pytest.mark.parametrize("damaged", [b"", b"no database" * 1000])
def test_a_database_that_is_damaged(doctor, chats, damaged):
    (chats / "mirror.duckdb").write_bytes(damaged)
    done = doctor("--json", chats)
    assert done.code == 7
    [problem] = [text for state, text in findings(done, "mirror") if state == "problem"]
    assert problem.startswith("its mirror.duckdb is damaged -> what was published can be read")


def test_a_log_whose_end_is_lost(doctor, chats):
    pytest.importorskip("pyarrow")
    from helpers.mirrors import leave_torn_log

    leave_torn_log(chats)
    done = doctor("--json", chats)
    assert done.code == 7
    [problem] = [text for state, text in findings(done, "mirror") if state == "problem"]
    assert problem.startswith("the end of its mirror.duckdb.wal is damaged, as by a power cut -> ")


class KilledError(BaseException):
    """Raised in place of a kill."""


def killed(*arguments: object) -> None:
    raise KilledError


@pytest.mark.parametrize("cause", ["forget", "retention"])
def test_a_removal_that_is_not_complete(doctor, backread, chats, server, monkeypatch, cause):
    mirror, gone = Mirror(chats, retention=0), server.world.user_ids()[3]
    before = server.world.snapshot()
    incomplete = "a removal is not complete"
    with server.client() as client:
        if cause == "retention":
            server.world.remove_user(gone)
            Mirror(chats).sync(client, mode="full")
        remove = partial(mirror.forget, gone) if cause == "forget" else partial(mirror.sync, client)
        with monkeypatch.context() as patched:
            patched.setattr("backread.mirror.rights.purge._publish_what_remains", killed)
            with pytest.raises(KilledError):
                remove()
        server.world.restore(before)
        assert mirror.sql("SELECT count(*) FROM users WHERE id = ?", [gone]).fetchall() == [(1,)]
        done = doctor("--json", chats)
        assert done.code == 7
        [problem] = [text for state, text in findings(done, "mirror") if state == "problem"]
        assert problem.startswith(f"{incomplete}: ")
        assert problem.endswith(" -> run `backread sync` or `backread forget` again")
        assert incomplete in backread("runs", chats).error
        with writer_lock(chats):
            # What goes on is not incomplete.
            assert incomplete not in backread("runs", chats).error
            assert incomplete not in doctor("--json", chats).out
        Mirror(chats).sync(client)
    assert doctor("--json", chats).code == 0
    assert incomplete not in backread("runs", chats).error


def test_a_removal_that_was_killed_before_it_began_is_forgotten_by_the_next_sync(
    doctor, chats, server
):
    (chats / "removal.pending").touch()
    assert doctor("--json", chats).code == 7
    with server.client() as client:
        Mirror(chats).sync(client)
    assert doctor("--json", chats).code == 0


def test_a_folder_that_may_not_be_read(doctor, chats, monkeypatch):
    def refuse(folder: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "is_dir", refuse)
    done = doctor("--json", chats)
    assert done.code == 7
    [(state, text)] = findings(done, "mirror")
    assert (state, f"{chats} cannot be read: Permission denied" in text) == ("problem", True)


def out_of_memory(*_: object) -> NoReturn:
    raise duckdb.OutOfMemoryException("Out of Memory Error: Allocation failure")


@pytest.mark.parametrize("step", ["the files", "the last run"])
def test_a_lack_of_memory_is_no_bug(doctor, chats, monkeypatch, step):
    if step == "the files":
        monkeypatch.setattr(engine, "connect", out_of_memory)
        assert doctor("--json", chats).code == 0
    else:
        monkeypatch.setattr(Mirror, "sql", lambda *_: SimpleNamespace(fetchall=out_of_memory))
        done = doctor("--json", chats)
        assert done.code == 7
        [text] = [text for state, text in findings(done, "mirror") if state == "problem"]
        assert "free some memory" in text


def test_a_run_that_ends_in_the_future(doctor, chats, monkeypatch):
    class Earlier(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) - timedelta(days=365)

    monkeypatch.setattr("backread.cli.doctor.mirror.datetime", Earlier)
    done = doctor("--json", chats)
    assert done.code == 7
    [problem] = [text for state, text in findings(done, "mirror") if state == "problem"]
    assert "in the future" in problem
    assert "a clock was wrong" in problem
