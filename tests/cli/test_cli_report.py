"""``backread report``: the figures in a terminal, as JSON and in a file."""

import json
import os
import stat
from pathlib import Path

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("typer")
pytest.importorskip("rich")

from backread import Mirror
from backread._report import is_report
from backread.testing import MockServer, World
from helpers.command_line import posix_only
from helpers.hostile_mirror import hostile_mirror
from helpers.mirrors import sync


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mirror = Mirror(tmp_path_factory.mktemp("report") / "chats")
    with MockServer(World(seed=3, users=120, messages_per_user=(0, 40))) as server:
        sync(mirror, server)
    return mirror.folder


def test_without_a_file_the_main_figures_fit_a_narrow_terminal(backread, chats):
    done = backread(
        "report", chats, "--timezone", "europe/berlin", "--opening-hours", "mon-fri 9-17"
    )
    assert (done.code, done.error) == (0, "")
    assert done.out.startswith("Conversations of chats, times in Europe/Berlin\n")
    figures = Mirror(chats).figures()
    assert f"{figures['totals']['messages']:,}" in done.out
    assert str(figures["operators"][0]["name"]) in done.out
    hours = Mirror(chats).figures(timezone="Europe/Berlin", opening_hours="mon-fri 9-17")
    outside = hours["responses"]["answered_outside_hours"]
    assert f" {outside}  answered outside opening hours\n" in done.out
    from rich.cells import cell_len

    assert max(map(cell_len, done.out.splitlines())) <= 80
    assert "times in UTC\n" in backread("report", chats).out


def test_hostile_names_cannot_affect_the_terminal(backread, tmp_path):
    hostile_mirror(tmp_path / "chats")
    done = backread("report", tmp_path / "chats")
    assert done.code == 0
    assert not {*done.out} & {*"\x00\x07\x08\x1b\x7f\x9b\u202e\u2066\u2028\r"}


def test_json_has_all_figures(backread, chats):
    done = backread("report", chats, "--format", "json", "--since", "2019-03-01")
    document = json.loads(done.out)
    assert document["since"] == "2019-03-01T00:00:00+00:00"
    expected = Mirror(chats).figures(since="2019-03-01")
    volatile = ("computed_at", "coverage")
    assert document | dict.fromkeys(volatile) == {**expected, **dict.fromkeys(volatile)}


@posix_only
def test_file_is_complete_private_and_replaced_by_the_next_report(backread, chats, tmp_path):
    tmp_path.chmod(0o700)
    path = tmp_path / "report.html"
    done = backread("report", chats, "-o", path)
    assert (done.code, done.error) == (0, "")
    assert str(path) in done.out
    assert is_report(path.read_bytes())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    first = path.read_bytes()
    assert backread("report", chats, "-o", path, "--since", "2019-04-01").code == 0
    assert path.read_bytes() != first
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_no_other_file_is_replaced(backread, chats, tmp_path):
    path = tmp_path / "thesis.html"
    path.write_text("<p>years of work", encoding="utf-8")
    done = backread("report", chats, "-o", path)
    assert (done.code, done.out) == (2, "")
    assert "is no report of backread, so it is not replaced" in done.line
    assert path.read_text(encoding="utf-8") == "<p>years of work"
    path.write_bytes(b"")
    assert backread("report", chats, "-o", path).code == 0


def test_places_where_no_report_can_be(backread, chats, tmp_path):
    done = backread("report", chats, "-o", tmp_path)
    assert done.code == 2
    assert f"is a folder; name a file in it: -o {tmp_path / 'report.html'}" in done.line
    done = backread("report", chats, "-o", tmp_path / "none" / "report.html")
    assert done.code == 2
    assert "does not exist; create it" in done.line
    done = backread("report", chats, "-o", chats / "report.html")
    assert done.code == 2
    assert "is inside the mirror" in done.line
    assert backread("report", chats, "-o", "s3://bucket/report.html").code == 2


@posix_only
def test_failed_write_leaves_the_old_report(backread, chats, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    assert backread("report", chats, "-o", path).code == 0
    before = path.read_bytes()

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    done = backread("report", chats, "-o", path)
    assert done.code == 2
    assert "free some space" in done.line
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_wrong_options_are_one_line_and_exit_2(backread, chats, tmp_path):
    for arguments, words in (
        (("--timezone", "Berlin"), "--timezone: 'Berlin' is unknown; did you mean Europe/Berlin?"),
        (("--opening-hours", "nine to five"), "--opening-hours: 'nine' in 'nine to five'"),
        (("--since", "soon"), "--since must be a date or time"),
        (
            ("--since", "2024-02-01", "--until", "2024-01-01"),
            "--since must be earlier than until",
        ),
        (("--open",), "add -o report.html"),
        (("-o", "report.pdf"), "the report is HTML"),
        (("-o", "report.7z"), "the report is HTML"),
        (("-o", tmp_path / "r.html", "--format", "json"), "leave out -o"),
    ):
        done = backread("report", chats, *arguments)
        assert (done.code, done.out) == (2, "")
        assert words in done.line
    assert list(tmp_path.iterdir()) == []


def test_open_shows_the_file_in_the_browser(backread, chats, tmp_path, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or False)
    done = backread("report", chats, "-o", tmp_path / "report.html", "--open")
    assert opened == [(tmp_path / "report.html").as_uri()]
    assert done.code == 0
    assert "open " in done.error
