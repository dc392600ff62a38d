"""``export`` and ``tables`` as a shell sees them."""

import csv
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from helpers.command_line import COMMAND, posix_only
from helpers.waiting import wait_for

pytest.importorskip("duckdb")
pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")

from helpers.export_rows import ALICE, BOB, GUARDED, TEXTS, fill
from helpers.mirrors import BatchSource, batch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("mirror") / "chats").folder


def test_export_says_what_it_wrote_and_what_it_guarded(backread, folder, tmp_path):
    out = tmp_path / "out"
    done = backread("export", folder, out, "--format", "csv")
    assert done.code == 0
    rows, _, written = done.out.partition(": ")
    assert rows == f"3 users, {len(TEXTS) + 2} messages, 3 conversations"
    assert written.endswith(f" of csv in 3 files, {out}\n")
    guards = len(GUARDED) + 2
    assert done.line.startswith(f"backread: {guards} cells begin with an apostrophe")
    assert "--raw-csv" in done.line
    raw = backread("export", folder, tmp_path / "raw", "--format", "csv", "--raw-csv", "--deleted")
    assert (raw.code, raw.error) == (0, "")
    assert raw.out.startswith("4 users, ")


def test_export_of_one_table_is_a_file_of_its_suffix(backread, folder, tmp_path):
    path = tmp_path / "c.jsonl"
    assert backread("export", folder, path, "--conversations").code == 0
    read = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert {row["user_id"]: row["messages"] for row in read}[ALICE] == len(TEXTS)
    path = tmp_path / "m.csv"
    arguments = ("--table", "messages", "--user", BOB, "--until", "2024-02-02", "--excel")
    assert backread("export", folder, path, *arguments).code == 0
    with path.open(encoding="utf-8-sig", newline="") as file:
        assert [row["body"] for row in csv.DictReader(file)] == ["hello"]


def test_xlsx_says_what_it_changed(backread, tmp_path):
    pytest.importorskip("xlsxwriter")
    said = [{"user_id": 1, "id": 1, "body": "x" * 40_000}, {"user_id": 1, "id": 2, "body": "\x1b"}]
    BatchSource(batch([{"id": 1}], said, swept="snapshot", lists={1: "snapshot"})).sync_into(
        tmp_path / "chats"
    )
    done = backread("export", tmp_path / "chats", tmp_path / "chats.xlsx")
    assert done.code == 0
    cut, replaced = done.error.splitlines()
    assert cut == "backread: 1 cell cut to the 32,767 characters that XLSX allows"
    assert replaced.startswith("backread: 1 cell with U+FFFD in place of control characters")


def test_everything_about_one_user(backread, folder, tmp_path):
    done = backread("export", folder, tmp_path / "alice", "--user", ALICE, "--everything")
    assert done.code == 0
    assert {each.name for each in (tmp_path / "alice").iterdir()} == {
        "everything.json",
        "conversation.txt",
    }


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("out",), 2, "out does not end in a format: end the name in one of .parquet, "),
        (("out.xls",), 2, ".xls is no known format"),
        (("out.csv",), 2, "holds one table"),
        (("out.xlsx", "--format", "csv"), 2, "do not agree"),
        (("out", "--format", "ods"), 2, "'ods'"),
        (("out", "--format", "csv", "--table", "users", "--conversations"), 2, "either"),
        (("out", "--format", "csv", "--since", "noon"), 2, "must be a date or time"),
        (("out", "--format", "csv", "--user", "99"), 7, "has no user 99"),
        (("out", "--format", "csv", "--user", "3"), 7, "--deleted"),
        (("out", "--user", "99", "--everything"), 7, "holds nothing about"),
        (("out", "--everything"), 2, "exactly one user"),
        (("here", "--format", "csv"), 2, "exists already"),
        (("no/out", "--format", "csv"), 2, "does not exist"),
        (("s3://bucket/out", "--format", "csv"), 2, "not a local path"),
        (("out.delta",), 2, 'write_deltalake(uri, mirror.table("messages"))'),
        (("delta://bucket/out",), 2, 'write_deltalake(uri, mirror.table("messages"))'),
    ],
)
def test_what_is_refused_leaves_nothing(
    backread, folder, tmp_path, monkeypatch, arguments, code, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").touch()
    done = backread("export", folder, *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.line
    assert [each.name for each in tmp_path.iterdir()] == ["here"]


@posix_only
def test_ctrl_c_ends_an_export_at_once_and_leaves_nothing(tmp_path):
    said = [
        {"user_id": 1, "id": n, "body": os.urandom(200).hex(), "sender_type": "user"}
        for n in range(100_000)
    ]
    BatchSource(batch([{"id": 1}], said, swept="snapshot", lists={1: "snapshot"})).sync_into(
        tmp_path / "chats"
    )
    out = tmp_path / "out"
    out.mkdir()
    command = [*COMMAND, "export", str(tmp_path / "chats"), str(out / "chats.db")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: process.poll() is not None or list(out.rglob("chats.db")))
        process.send_signal(signal.SIGINT)
        written, error = process.communicate(timeout=60)
    assert (process.returncode, written) == (130, "")
    assert error == "backread: stopped; nothing was written\n"
    assert list(out.iterdir()) == []
