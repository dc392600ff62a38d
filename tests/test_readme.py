"""README.md keeps its word: each fenced block runs and prints what stands below it.

The blocks that read ``chats/`` do so after ``backread demo``; all others run in an empty folder,
with the settings of a mock like that of the block with ``backread mock``. Outputs are compared
without their line breaks; those of the demo without numbers too, since its dates move with the day.
"""

import importlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from backread import Client
from backread.testing import MockServer, World
from documents import (
    IN_CHECKOUT,
    ROOT,
    SECONDS,
    Block,
    Document,
    enter,
    of_kind,
    run_shell,
    run_tests,
    shape,
    words,
)
from newcomer import serving, settings, typed

README = Document(ROOT / "README.md")
MOST_LINES = 170


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=7, users=200, messages_per_user=(0, 120))) as running:
        yield running


@pytest.fixture
def environment(
    server: MockServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """An empty folder to be in, the mock's settings, and the console script on PATH."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    return enter(tmp_path, monkeypatch, server)


@pytest.fixture(scope="module")
def after_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `backread demo` was run."""
    pytest.importorskip("duckdb")
    pytest.importorskip("typer")
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as monkeypatch:
        run_shell("backread demo", folder, enter(folder, monkeypatch))
    return folder


@pytest.fixture
def folder(
    block: Block, request: pytest.FixtureRequest, environment: dict[str, str], tmp_path: Path
) -> Path:
    """Where a block runs."""
    if "chats/" not in block.code:
        return tmp_path
    there: Path = request.getfixturevalue("after_demo")
    request.getfixturevalue("monkeypatch").chdir(there)
    return there


def output_below(block: Block) -> str:
    """What the page says that a block prints; empty if it says nothing."""
    following = [each for each in README.blocks if each.line > block.line][:1]
    return next((each.code for each in following if each.kind == "output"), "")


def agrees(block: Block, printed: str) -> bool:
    """Whether a block printed what the page says."""
    comparable = shape if "chats/" in block.code else words
    return comparable(output_below(block)) in comparable(printed)


def requests(server: MockServer) -> int:
    return sum(server.counts().values())


def test_every_block_has_a_runner():
    kinds = {"mock", "shell", "pytest", "python", "output"}
    README.check(kinds)
    assert {block.kind for block in README.blocks} == kinds


def test_it_is_short():
    assert len(README.text.splitlines()) <= MOST_LINES


def test_output_stands_below_what_prints():
    kinds = [block.kind for block in README.blocks]
    before = [kinds[at - 1] for at, kind in enumerate(kinds) if kind == "output"]
    assert set(before) == {"python", "shell", "pytest"}


@of_kind(README.blocks, "python")
def test_python(block, server, folder, capsys):
    block.require_imports()
    before = requests(server)
    block.execute(block.code)
    assert agrees(block, capsys.readouterr().out)
    if "Client" in block.code:
        assert requests(server) > before


@of_kind(README.blocks, "pytest")
def test_pytest(block, environment, tmp_path):
    outcome = run_tests(tmp_path, environment, [block])[block.module]
    assert not outcome.problems
    assert set(outcome.passed) == set(block.tests)
    assert output_below(block).strip() == f"{len(block.tests)} passed"


@of_kind(README.blocks, "shell")
def test_shell(block, server, environment, folder):
    pytest.importorskip("typer")
    commands = block.code.replace("backread demo\n", "")
    printed = typed(commands, folder, environment)
    assert server.secret not in printed
    assert agrees(block, printed)


def test_the_mirror_of_the_shell_goes_on_in_python(server, environment, tmp_path, capsys):
    """As for a reader who types all that the page has, in one folder."""
    pytest.importorskip("duckdb")
    pytest.importorskip("typer")
    shell, script = [
        each for each in README.blocks if "mirror/" in each.code and each.kind != "output"
    ]
    typed(shell.code, tmp_path, environment)
    script.execute(script.code)
    assert agrees(script, capsys.readouterr().out)


@pytest.mark.skipif(not IN_CHECKOUT, reason="pyproject.toml may be another")
def test_the_extras_are_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = set(re.findall(r"\[(\w+)\]['\"]", README.text))
    assert named <= set(project["optional-dependencies"])
    assert named


@of_kind(README.blocks, "mock")
def test_mock(block, server, environment, tmp_path):
    users = re.search(r"--users (\d+)", block.code)
    assert users is not None
    with serving(block.code, tmp_path, environment) as lines:
        found = settings(lines)
        with Client(*found.values()) as client:
            assert client.users.page(limit=1).total == int(users[1])
            [first] = client.users.list(max_items=1)
            assert first.name == server.world.user(42)["name"]


@pytest.mark.skipif(not IN_CHECKOUT, reason="the Makefile is not here")
def test_what_it_makes_is_there():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert {"demo", "test"} <= set(re.findall(r"`make ([a-z-]+)`", README.text)) <= targets


@pytest.mark.skipif(not IN_CHECKOUT, reason="the pages are not here")
def test_the_comparison_is_that_of_the_benches():
    command = [sys.executable, str(ROOT / "tools/readme_table.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not IN_CHECKOUT, reason="the script is not here")
def test_no_link_is_dead_on_pypi(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "tools")
    pypi_readme = importlib.import_module("pypi_readme")
    copy = tmp_path / "README.md"
    copy.write_text(README.text, encoding="utf-8")
    monkeypatch.setattr(pypi_readme, "README", copy)
    pypi_readme.main(["https://forge.example/us/backread", "v0.1.0"])
    text = copy.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)]*)\)", text)
    assert len(targets) == len(re.findall(r"\]\(", README.text))
    assert "https://forge.example/us/backread/blob/v0.1.0/docs/how-to/mirror.md" in targets
    assert "https://forge.example/us/backread/raw/v0.1.0/docs/images/demo.svg" in targets
    assert [each for each in targets if not each.startswith("https://")] == []


@pytest.mark.slow
@pytest.mark.skipif(not IN_CHECKOUT, reason="the pictures are not here")
@pytest.mark.parametrize("name", ["demo", "paging"])
def test_a_picture_is_what_its_script_draws(name, tmp_path):
    command = [sys.executable, str(ROOT / f"tools/draw_{name}.py"), str(tmp_path / "drawn.svg")]
    subprocess.run(command, check=True, timeout=SECONDS)
    drawn = (tmp_path / "drawn.svg").read_bytes()
    assert drawn == (ROOT / f"docs/images/{name}.svg").read_bytes(), f"run tools/draw_{name}.py"
    # What a page that shows it as an image would leave out.
    assert not re.search(rb"<script|<foreignObject|href=|url\(", drawn)
    assert b"<title>" in drawn


@pytest.mark.skipif(not IN_CHECKOUT, reason="the pages are not here")
def test_every_page_can_be_reached():
    seen, waiting = set(), [README.page]
    while waiting:
        page = waiting.pop()
        seen.add(page)
        for target in re.findall(r"\]\(([^)#:]+\.md)", page.read_text(encoding="utf-8")):
            other = (page.parent / target).resolve()
            if other.exists() and other not in seen:
                waiting.append(other)
    assert set((ROOT / "docs").glob("**/*.md")) <= seen
