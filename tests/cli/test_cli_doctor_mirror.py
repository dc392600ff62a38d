"""``backread doctor``: what is wrong with a mirror."""

import errno
import shutil
from datetime import datetime, timedelta, tzinfo
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("duckdb")

import duckdb

from backread import Mirror
from backread.mirror.store.lock import writer_lock
from backread.testing import MockServer
from helpers.command_line import Done
from helpers.doctor_report import findings


@pytest.fixture
def chats(server: MockServer, tmp_path: Path) -> Path:
    with server.client() as client:
        Mirror(tmp_path / "chats").sync(client)
    return tmp_path / "chats"


def said(done: Done, state: str = "problem") -> list[str]:
    return [text for found, text in findings(done, "mirror") if found == state]


def test_a_folder_that_is_no_mirror(doctor, tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        done = doctor("--json", folder)
        assert done.code == 7
        assert str(folder) in said(done)[0]


def test_a_mirror_that_is_being_synced(doctor, chats):
    with writer_lock(chats):
        done = doctor("--json", chats)
    assert any("a sync is going on, by " in text for text in said(done, "ok"))
    assert "a sync is going on" not in doctor("--json", chats).out


def test_what_is_not_proved_is_a_warning(doctor, chats, server):
    with server.client() as client:
        Mirror(chats).sync(client, mode="full", max_requests=5)
    done = doctor("--json", chats)
    assert done.code == 0
    assert any(" -> the next sync continues" in text for text in said(done, "warning"))
    assert "every list is proved" not in done.out


def test_a_full_disk_is_told_beforehand(doctor, chats, monkeypatch):
    usage = shutil.disk_usage(chats)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    [text] = said(doctor("--json", chats), "warning")
    assert "its disk has 1 kB free -> free some space" in text


def test_a_database_that_is_lost(doctor, chats):
    (chats / "mirror.duckdb").unlink()
    done = doctor("--json", chats)
    assert done.code == 7
    assert said(done) == [
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
    [text] = said(done)
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
    [problem] = said(done)
    assert problem.startswith("its mirror.duckdb is damaged -> what was published can be read")


def test_a_log_whose_end_is_lost(doctor, chats):
    pytest.importorskip("pyarrow")
    from helpers.mirrors import leave_torn_log

    leave_torn_log(chats)
    done = doctor("--json", chats)
    assert done.code == 7
    [problem] = said(done)
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
        [problem] = said(done)
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
    def refuse(folder: Path) -> str:
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    monkeypatch.setattr("backread.cli.doctor.mirror.visible_damage", refuse)
    done = doctor("--json", chats)
    assert done.code == 7
    [text] = said(done)
    assert f"the mirror in {chats}: it may not be read or written -> change its perm" in text


@pytest.mark.parametrize("step", ["rows_of", "Mirror.status"])
def test_a_lack_of_memory_is_no_bug(doctor, chats, monkeypatch, step):
    def fail(*_: object) -> NoReturn:
        raise duckdb.OutOfMemoryException("Out of Memory Error: Allocation failure")

    monkeypatch.setattr(f"backread.cli.doctor.mirror.{step}", fail)
    done = doctor("--json", chats)
    assert done.code == 7
    assert "free some memory" in said(done)[0]


def test_a_run_that_ends_in_the_future(doctor, chats, monkeypatch):
    class Earlier(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) - timedelta(days=365)

    monkeypatch.setattr("backread.cli.doctor.mirror.datetime", Earlier)
    done = doctor("--json", chats)
    assert done.code == 7
    [problem] = said(done)
    assert "in the future, so a clock was wrong" in problem
