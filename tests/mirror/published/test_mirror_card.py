"""A mirror at a glance: its repr, its card in a notebook, and the same in a terminal."""

import builtins
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from helpers.hostile_text import check
from helpers.mirrors import BatchSource, batch

pytest.importorskip("duckdb")

from backread.mirror import Mirror
from backread.mirror.sync.report import SyncProgress
from backread.mirror.sync.unfinished_run import UnfinishedRun, write_unfinished_run


class Printer:
    """IPython's, as far as it is used."""

    def __init__(self) -> None:
        self.said = ""

    def text(self, text: str) -> None:
        self.said += text


def pretty(mirror: Mirror) -> str:
    printer = Printer()
    mirror._repr_pretty_(printer, False)
    return printer.said


def fill(mirror: Mirror, **certificates: Any) -> None:
    users = [{"id": each} for each in (1, 2)]
    messages = [{"user_id": 2, "id": each, "body": "x"} for each in range(1_500)]
    given = {"swept": "linked", "lists": {1: "snapshot", 2: "counted"}} | certificates
    BatchSource(batch(users, messages, **given)).sync_into(mirror.folder)


def test_a_card_says_how_old_and_how_complete_it_is(mirror):
    fill(mirror)
    card = check(mirror._repr_html_()).text
    for shown in (card, pretty(mirror)):
        for said in (str(mirror.folder), "just now (run 1, incremental)", "linked",
                     "1 counted, 1 snapshot", "2 rows", "1,500 rows",
                     "mirror.conversation(2)", "mirror.search("):  # fmt: skip
            assert said in shown
        assert "uncertified" not in shown
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert today in card
    assert repr(mirror).startswith(
        f"<Mirror {str(mirror.folder)!r}: 2 users, 1,500 messages, published {today} "
    )


def test_a_card_says_what_is_not_proved(mirror):
    fill(mirror, swept="uncertified", lists={1: "snapshot", 2: "uncertified"})
    card = check(mirror._repr_html_()).text
    assert "! uncertified" in card
    assert "1 snapshot, 1 uncertified" in card


def test_mirror_repr_without_a_folder_says_to_sync(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for name, why in (
        ("missing", "which does not exist"),
        ("empty", "nothing is published in"),
        ("file", "is a file, but a mirror is a folder"),
        ("file/below", "which does not exist"),
        ("<script>\x1b[31m", "which does not exist"),
    ):
        mirror = Mirror(tmp_path / name)
        assert repr(mirror).endswith(": nothing published>")
        assert "\x1b" not in repr(mirror)
        for shown in (check(mirror._repr_html_()).text, pretty(mirror)):
            assert why in shown
            assert "mirror.sync(Client(), progress=True)" in shown
            assert "\x1b" not in shown


def manifest(mirror: Mirror) -> Path:
    return mirror.folder / "published" / "current" / "snapshot.json"


def of_another_format(mirror: Mirror) -> None:
    document = json.loads(manifest(mirror).read_text())
    manifest(mirror).write_text(json.dumps(document | {"format": 99}))


def damaged(mirror: Mirror) -> None:
    manifest(mirror).write_text("{")


def misled(mirror: Mirror) -> None:
    link = mirror.folder / "published" / "current"
    link.unlink()
    link.symlink_to("..")


@pytest.mark.parametrize(
    ("damage", "said"),
    [(of_another_format, "sync into a new folder"), (damaged, "damaged"), (misled, "damaged")],
)
def test_a_mirror_that_cannot_be_read_says_why(mirror, damage, said):
    fill(mirror)
    damage(mirror)
    assert repr(mirror) == f"<Mirror {str(mirror.folder)!r}: cannot be read>"
    for shown in (check(mirror._repr_html_()).text, pretty(mirror)):
        assert said in shown
        assert "try next" not in shown
    assert "cannot be read" in repr(mirror.tables) or said in repr(mirror.tables)


def test_a_snapshot_with_damaged_files_says_so(mirror):
    fill(mirror)
    [runs] = (mirror.folder / "published" / "current" / "runs").iterdir()
    runs.write_bytes(b"PAR1")
    assert "cannot be read" in check(mirror._repr_html_()).text
    runs.unlink()
    shown = check(Mirror(mirror.folder)._repr_html_()).text
    assert "missing, cut off or not a regular file" in shown


def test_mirror_repr_without_duckdb_says_what_to_install(mirror, monkeypatch):
    fill(mirror)
    reader = Mirror(mirror.folder)
    real = builtins.__import__

    def without_duckdb(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "duckdb":
            raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without_duckdb)
    assert 'pip install "backread[mirror]"' in check(reader._repr_html_()).text
    assert "1,500 messages" in repr(reader)


def test_a_sync_that_goes_on_or_was_killed_is_named(mirror):
    now = datetime.now(UTC)
    progress = SyncProgress(9, 9, 100, 5, 1.0, "reading", lists=3, lists_total=1_009)
    mirror.folder.mkdir(parents=True)
    write_unfinished_run(mirror.folder, UnfinishedRun(4, "incremental", now, now, progress))
    card = check(mirror._repr_html_()).text
    assert "run 4 is going on, 3 of 1,009 message lists read" in card
    before = now - timedelta(hours=5)
    write_unfinished_run(mirror.folder, UnfinishedRun(4, "incremental", before, before, progress))
    card = check(mirror._repr_html_()).text
    assert "run 4 stopped 5 hours ago" in card
    assert "the next sync continues it" in card
