"""Progress is shown where somebody looks, while it happens, and changes nothing of what is read."""

import io
import pickle
import re
import subprocess
import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import backread
from backread import Mirror, ServerError, progress
from backread._progress.output import State, find_output
from helpers.api_rows import paged, users
from helpers.scripted_server import answer

SECONDS = 120


class Terminal(io.StringIO):
    """What looks like one, and says when something was written."""

    encoding = "utf-8"

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Condition()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self.written:
            self.written.notify_all()
            return super().write(text)

    def wait_for(self, wanted: str) -> bool:
        with self.written:
            return self.written.wait_for(lambda: wanted in self.getvalue(), SECONDS)

    @property
    def lines(self) -> list[str]:
        """What stands there in the end: each line as it was written last."""
        return [re.split(r"\r", line)[-1].rstrip() for line in self.getvalue().split("\n")][:-1]


def put_in_place(stderr: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest puts its own stderr back between a fixture and the test, so not in sys itself."""
    seen = SimpleNamespace(stderr=stderr, modules=sys.modules)
    monkeypatch.setattr("backread._progress.output.sys", seen)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    terminal = Terminal()
    put_in_place(terminal, monkeypatch)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    return terminal


class Cell:
    """A notebook's cell: the outputs that it has, by their order, each as it was shown last."""

    def __init__(self) -> None:
        self.outputs: list[dict[str, str]] = []
        self.shown: list[str] = []

    def display(self, bundle: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        place = len(self.outputs)
        self.outputs.append(bundle)

        def update(bundle: dict[str, str], *, raw: bool) -> None:
            assert raw
            self.outputs[place] = bundle
            self.shown.append(bundle["text/html"])

        self.shown.append(bundle["text/html"])
        return SimpleNamespace(update=update)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    cell = Cell()
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display.display = cell.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return cell


def test_a_line_of_the_command_goes_above_the_line_of_progress(terminal, monkeypatch):
    pytest.importorskip("typer")
    from backread.cli.stderr import say

    monkeypatch.setattr("backread.cli.stderr.sys", SimpleNamespace(stderr=terminal))
    output = find_output()
    assert output is not None
    output.show(State("users", ("a line that is longer than what is said", "x" * 30)))
    say("the next attempt is in 1 h")
    line = f"users  a line that is longer than what is said · {'x' * 30}"
    assert terminal.getvalue().endswith(f"\n{line}")
    output.end(State("users", ("9 rows",)))
    say("the end")
    # Nothing of a longer line is left beside a shorter one.
    assert terminal.lines == [
        "backread: the next attempt is in 1 h", "users  9 rows", "backread: the end",
    ]  # fmt: skip


def test_a_listing_is_read_as_without_it(face, backread_mock, terminal):
    client = face.client(backread_mock)
    plain = face.collect(client.users.list())
    requests = backread_mock.calls().count
    listing = progress(client.users.list())
    assert type(listing) is type(client.users.list())
    assert backread_mock.calls().count == requests
    assert terminal.getvalue() == ""
    assert face.collect(listing) == plain
    assert listing.report.certificate == "linked"
    assert backread_mock.calls().count == 2 * requests
    [line] = terminal.lines
    assert re.fullmatch(r"users  200 rows · 3 requests · [\d.]+ m?s · linked", line)
    assert len(face.pages(progress(listing))) == 3
    assert len(terminal.lines) == 2
    # The original's report is that of the same walk, and it is read in silence as before.
    original = client.users.list(max_items=5)
    assert len(face.collect(progress(original))) == original.report.distinct == 5
    assert terminal.lines[-1].endswith(" · stopped at the limit")
    assert len(face.collect(original)) == 5
    assert len(terminal.lines) == 3


def read_by_duckdb(listing: Any, end: str = "") -> int:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        return len(connection.sql(f"SELECT id FROM listing {end}").fetchall())


def test_progress_ends_before_an_arrow_reader_has_all_rows(each_face, backread_mock, terminal):
    client = each_face.client(backread_mock)
    rows = read_by_duckdb(progress(client.messages.all()))
    # Otherwise the caller's next print would share the line.
    assert terminal.getvalue().endswith("\n")
    [line] = terminal.lines
    assert rows == backread_mock.world.total_messages
    assert line.startswith(f"messages of every user  {rows:,} rows · 200 lists · ")
    assert line.endswith(" · linked")


@pytest.mark.backread(world={"users": 2_000, "messages_per_user": (20, 40)})
def test_progress_ends_when_a_query_has_enough_rows(face, backread_mock, terminal):
    listing = progress(face.client(backread_mock).messages.all())
    assert read_by_duckdb(listing, "LIMIT 5") == 5
    assert terminal.wait_for("not read to its end")


def test_breaking_off_and_errors_are_said(scripted, terminal):
    service = paged(users(150))
    server = scripted(
        lambda asked: service(asked) if "offset=0" in asked.target else server.stall()
    )
    with backread.Client(server.url, server.secret, server.vendor) as client:
        for _ in progress(client.users.list()):
            assert terminal.wait_for("99/150 rows")
            break
    shown = [line for line in terminal.getvalue().split("\r") if "99/150" in line]
    assert shown[0].startswith("users ████████████████░░░░░░░░ 66%  99/150 rows · ")
    assert "not read to its end" in terminal.lines[-1]
    server = scripted(lambda _: answer(500))
    with (
        backread.Client(server.url, server.secret, server.vendor, max_retries=0) as client,
        pytest.raises(ServerError),
    ):
        progress(client.users.list()).to_list()
    assert terminal.lines[-1].startswith("users  0 rows · 1 request · ")
    assert terminal.lines[-1].endswith(" · uncertified")


@pytest.mark.backread(world={"users": 20})
def test_nothing_is_shown_where_nobody_looks(backread_mock, monkeypatch, terminal, tmp_path):
    pytest.importorskip("duckdb")
    for stderr, word in ((io.StringIO(), "xterm"), (None, "xterm"), (terminal, "dumb")):
        put_in_place(stderr, monkeypatch)
        monkeypatch.setenv("TERM", word)
        client = backread_mock.client()
        assert len(progress(client.users.list()).to_list()) == 20
        Mirror(tmp_path / "chats").sync(client, progress=True)
        assert stderr is None or stderr.getvalue() == ""


@pytest.mark.backread(world={"users": 20})
def test_a_notebook_has_one_output_that_changes_and_a_sync_is_told_too(
    backread_mock, cell, tmp_path
):
    pytest.importorskip("duckdb")
    progress(backread_mock.client().users.list()).to_list()
    assert "<progress" in cell.shown[0]
    [output] = cell.outputs
    assert "<progress" not in output["text/html"]
    assert output["text/plain"].startswith("users: 20 rows, 1 request, ")
    told: list[Any] = []
    report = Mirror(tmp_path / "chats").sync(
        backread_mock.client(), progress=True, on_progress=told.append
    )
    assert told[-1].phase == "finished"
    assert report.users == 20
    [_, output] = cell.outputs
    assert output["text/plain"].startswith(f"synced: 20/20 lists, {report.messages:,} msgs, ")
    assert '<progress max="1" value="1.0000" aria-label="reading">' in "".join(cell.shown)


def test_a_sync_that_fails_says_so_and_what_never_began_says_nothing(
    backread_mock, terminal, tmp_path
):
    pytest.importorskip("duckdb")
    mirror = Mirror(tmp_path / "chats")
    with pytest.raises(ValueError, match="no known format"):
        mirror.export(tmp_path / "out.pdf", progress=True)
    assert "stopped" not in terminal.getvalue()
    with pytest.raises(TypeError, match="takes a Listing or an AsyncListing, not list"):
        progress([1, 2])  # type: ignore[call-overload]
    backread_mock.fault("messages: status(500)")
    with pytest.raises(ServerError):
        mirror.sync(backread_mock.client(max_retries=0), progress=True)
    assert terminal.lines[-1].startswith("sync stopped")
    assert "ServerError" in terminal.lines[-1]


def test_a_narrow_terminal_and_one_of_ascii(backread_mock, terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    progress(backread_mock.client().messages.all()).to_list()
    assert all(len(each) < 30 for each in re.split(r"[\r\n]", terminal.getvalue()))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(terminal, "encoding", "ascii", raising=False)
    start = len(terminal.getvalue())
    progress(backread_mock.client().users.list()).to_list()
    assert terminal.getvalue()[start:].isascii()


def test_it_pickles(backread_server, monkeypatch):
    monkeypatch.setenv("BACKREAD_BASE_URL", backread_server.url)
    monkeypatch.setenv("BACKREAD_API_SECRET", backread_server.secret)
    monkeypatch.setenv("BACKREAD_VENDOR", backread_server.vendor)
    with backread.Client() as client:
        listing = pickle.loads(pickle.dumps(progress(client.users.list())))
        assert len(listing.to_list()) == backread_server.world.total_users


LEFT = """
import sys
from backread import progress
from backread.testing import MockServer, World
sys.stderr.isatty = lambda: True
server = MockServer(World(seed=7, users=500))
items = iter(progress(server.client().users.list()))
next(items)
"""


def test_a_program_that_leaves_a_walk_exits_quietly():
    done = subprocess.run(
        [sys.executable, "-c", LEFT],
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith("\n")
    assert "Traceback" not in done.stderr
