"""Each fenced block of README.md and of the pages in docs/ runs, and prints what the page shows.

A ``text`` block is what the block before it prints, or what its tests print; how its lines are
broken, and what else is printed, does not matter. Outputs of the demo are compared without their
numbers, because its dates move with the day.
"""

import importlib
import re
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import backread
from backread.testing import MockServer, World
from helpers.doc_pages import (
    ELSEWHERE,
    IN_CHECKOUT,
    ROOT,
    Block,
    Document,
    Outcome,
    enter,
    of_kind,
    run_commands,
    run_shell,
    run_tests,
    serving,
    settings,
    shape,
    words,
)

if not IN_CHECKOUT:
    pytest.skip("the pages are in the checkout only", allow_module_level=True)

README = Document(ROOT / "README.md")
TUTORIAL = Document(ROOT / "docs/tutorial.md")
PAGES = [README, *map(Document, sorted((ROOT / "docs").glob("**/*.md")))]
# The tutorial's blocks build on each other, so they run in one test.
BLOCKS = [block for page in PAGES if page.page != TUTORIAL.page for block in page.blocks]
KINDS = {"mock", "output", "pytest", "python", "shell", "sql", "toml"}
# README.md reads what its own `backread mock` serves.
README_WORLD = World(seed=7, users=200, messages_per_user=(0, 120))
PAGES_WORLD = World(seed=7, users=60, messages_per_user=(1, 30))
SAVED_AS = re.compile(r"ave this as `([\w.]+)`")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_block_has_a_runner(page):
    page.check(KINDS | ELSEWHERE)


# --- where a block runs ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def readme_server() -> Iterator[MockServer]:
    with MockServer(README_WORLD) as server:
        yield server


@pytest.fixture(scope="module")
def pages_server() -> Iterator[MockServer]:
    with MockServer(PAGES_WORLD) as server:
        yield server


@pytest.fixture(scope="module")
def after_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `backread demo` was run."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as monkeypatch:
        run_shell("backread demo", folder, enter(folder, monkeypatch))
    return folder


def reads_the_demo(block: Block) -> bool:
    return "backread demo" in block.code or (block.page == README.page and "chats/" in block.code)


@pytest.fixture
def folder(block: Block, request: pytest.FixtureRequest) -> Path:
    there: Path = request.getfixturevalue("after_demo" if reads_the_demo(block) else "tmp_path")
    return there


@pytest.fixture
def environment(
    block: Block, request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """A mock's settings, with the console script on PATH; the block's folder is the current one."""
    name = "readme_server" if block.page == README.page else "pages_server"
    monkeypatch.setenv("MPLBACKEND", "agg")
    return enter(folder, monkeypatch, request.getfixturevalue(name))


def agrees(block: Block, printed: str) -> bool:
    """Whether a block printed what stands below it."""
    below = [each for each in BLOCKS if each.page == block.page and each.line > block.line][:1]
    comparable = shape if reads_the_demo(block) else words
    return all(
        comparable(each.code) in comparable(printed) for each in below if each.kind == "output"
    )


# --- blocks ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """The outcomes of all blocks with tests, by module: one run of pytest for all."""
    folder = tmp_path_factory.mktemp("blocks")
    with pytest.MonkeyPatch.context() as monkeypatch:
        environment = enter(folder, monkeypatch)
        return run_tests(folder, environment, [each for each in BLOCKS if each.kind == "pytest"])


@of_kind(BLOCKS, "pytest")
def test_tests_pass(block, outcomes):
    outcome = outcomes[block.module]
    assert not outcome.problems, "\n".join(outcome.problems)
    assert set(outcome.passed) == set(block.tests)
    assert agrees(block, f"{outcome.printed}\n{len(block.tests)} passed")


@of_kind(BLOCKS, "python")
def test_python_runs(block, environment, capsys):
    block.execute(block.code)
    assert agrees(block, capsys.readouterr().out)


@of_kind(BLOCKS, "shell")
def test_shell_runs(block, environment, folder):
    if "curl" in block.code and shutil.which("curl") is None:
        pytest.skip("not installed: curl")
    lines = [each for each in block.code.splitlines() if not each.startswith("backread demo")]
    if reads_the_demo(block) or all(each.startswith("backread ") for each in lines):
        printed = run_commands("\n".join(lines), folder, environment)
    else:
        printed = run_shell(block.code, folder, environment)
    assert agrees(block, printed)


@of_kind(BLOCKS, "mock")
def test_a_mock_is_served(block, environment, folder):
    with (
        serving(block.code, folder, environment) as lines,
        backread.Client(*settings(lines).values()) as client,
    ):
        assert client.users.page(limit=1).total == README_WORLD.total_users


@of_kind(BLOCKS, "toml")
def test_toml_is_a_config_file(block, tmp_path, monkeypatch):
    from backread._client.services import read_services

    file = tmp_path / "config.toml"
    file.write_text(block.code, encoding="utf-8")
    file.chmod(0o600)
    monkeypatch.setenv("BACKREAD_CONFIG", str(file))
    assert list(read_services()) == list(tomllib.loads(block.code)["services"])


@pytest.fixture(scope="module")
def mirror(pages_server: MockServer, tmp_path_factory: pytest.TempPathFactory) -> backread.Mirror:
    mirror = backread.Mirror(tmp_path_factory.mktemp("queries") / "chats")
    with pages_server.client() as client:
        mirror.sync(client)
    return mirror


@of_kind(BLOCKS, "sql")
def test_a_query_gives_rows(block, mirror):
    assert mirror.sql(block.code).fetchall()


def test_each_step_of_the_tutorial_leads_to_the_next(after_demo, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    environment = enter(tmp_path, monkeypatch)
    kinds, printed, end = [], "", 0
    with ExitStack() as running:
        for block in TUTORIAL.blocks:
            start = TUTORIAL.text.index(block.code, end)
            before, end = TUTORIAL.text[end:start], start + len(block.code)
            kinds.append(block.kind)
            if block.language == "python":
                (tmp_path / SAVED_AS.findall(before)[-1]).write_text(block.code, encoding="utf-8")
            elif block.kind == "mock":
                lines = running.enter_context(serving(block.code, tmp_path, environment))
                environment |= settings(lines)
            elif block.kind == "output":
                comparable = words if "mock" in kinds else shape
                assert comparable(block.code) in comparable(printed)
            elif block.code == "backread demo\n":
                shutil.copytree(after_demo / "chats", tmp_path / "chats", symlinks=True)
            else:
                printed = run_commands(block.code, tmp_path, environment)
    made = {path.name for path in tmp_path.iterdir()}
    assert {"chats", "mine", "hours.png", "report.html", "chats.xlsx"} <= made


def test_links_of_the_readme_lead_somewhere_here_and_on_pypi(monkeypatch, tmp_path):
    targets = re.findall(r"\]\(([^)#]*)", README.text)
    assert [each for each in targets if not (ROOT / each).exists()] == []
    monkeypatch.syspath_prepend(ROOT / "tools")
    pypi_readme = importlib.import_module("pypi_readme")
    copy = tmp_path / "README.md"
    copy.write_text(README.text, encoding="utf-8")
    monkeypatch.setattr(pypi_readme, "README", copy)
    pypi_readme.main(["https://forge.example/us/backread", "v0.1.0"])
    rewritten = re.findall(r"\]\(([^)]*)\)", copy.read_text(encoding="utf-8"))
    assert len(rewritten) == len(targets)
    assert "https://forge.example/us/backread/blob/v0.1.0/docs/how-to/mirror.md" in rewritten
    assert "https://forge.example/us/backread/raw/v0.1.0/docs/images/browse.png" in rewritten
    assert [each for each in rewritten if not each.startswith("https://")] == []
