"""README.md keeps its word: each fenced block runs, and each table agrees with the code.

A block is one of five kinds, by its language and content, and each kind has its runner; a block of
no kind fails. ``42`` in a block stands for a user, so it becomes the id of one in the mock's world.
"""

import ast
import asyncio
import importlib.util
import inspect
import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import backread.errors
from backread import AsyncClient, Client
from backread.testing import MockServer, World

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
# The wheel check takes the tests and README.md along, and nothing else of the checkout.
IN_CHECKOUT = (ROOT / "Makefile").is_file()
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = 60


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, and the line of README.md it begins on."""

    language: str
    code: str
    line: int

    @property
    def kind(self) -> str:
        """``make``, ``mock``, ``shell``, ``pytest``, ``python``, or ``unknown``."""
        if self.language == "sh":
            commands = self.code.splitlines()
            if all(command.startswith("make ") for command in commands):
                return "make"
            return "mock" if commands[-1].startswith("backread mock") else "shell"
        if self.language == "python":
            return (
                "pytest" if re.search(r"^(async )?def test_", self.code, re.MULTILINE) else "python"
            )
        return "unknown"

    def __str__(self) -> str:
        return f"{self.kind}-line-{self.line}"


def blocks() -> list[Block]:
    return [
        Block(match[1], match[2], TEXT.count("\n", 0, match.start()) + 2)
        for match in FENCE.finditer(TEXT)
    ]


def of_kind(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", [b for b in blocks() if b.kind == kind], ids=str)


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=7, users=12, messages_per_user=(1, 30))) as running:
        yield running


@pytest.fixture
def environment(
    server: MockServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """An empty folder to be in, the mock's settings, and the console script on PATH."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("BACKREAD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("BACKREAD_BASE_URL", server.url)
    monkeypatch.setenv("BACKREAD_API_SECRET", server.secret)
    monkeypatch.setenv("BACKREAD_VENDOR", server.vendor)
    scripts = sysconfig.get_path("scripts")
    monkeypatch.setenv("PATH", f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}")
    monkeypatch.setenv("PYTHONUTF8", "1")
    return dict(os.environ)


def for_world(block: Block, world: World) -> str:
    return re.sub(r"\b42\b", str(world.user_ids()[0]), block.code)


def require_imports(block: Block) -> None:
    """In the checkout all packages must be there; the wheel check skips what it lacks."""
    wanted = set(re.findall(r"^(?:import|from) (\w+)", block.code, re.MULTILINE))
    if ".to_pandas()" in block.code:
        wanted |= {"pandas", "pyarrow"}
    missing = sorted(name for name in wanted if importlib.util.find_spec(name) is None)
    if missing and IN_CHECKOUT:
        pytest.fail(f"not installed: {', '.join(missing)}")
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def requests(server: MockServer) -> int:
    return sum(server.counts().values())


def test_every_block_has_a_runner() -> None:
    unknown = [
        f"line {block.line}: {block.language!r}" for block in blocks() if block.kind == "unknown"
    ]
    assert not unknown
    # A fence that FENCE does not see (indented, or never closed) would run nowhere.
    assert len(re.findall(r"^\s*(?:```|~~~)", TEXT, re.MULTILINE)) == 2 * len(blocks())
    assert {block.kind for block in blocks()} == {"make", "mock", "shell", "pytest", "python"}


@of_kind("python")
def test_python(block: Block, server: MockServer, environment: dict[str, str]) -> None:
    require_imports(block)
    before = requests(server)
    # Empty lines in front, so that a traceback shows the line of README.md.
    source = "\n" * (block.line - 1) + for_world(block, server.world)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(source, str(ROOT / "README.md"), "exec", flags=flags, dont_inherit=True)
    names: dict[str, object] = {"__name__": "__main__"}
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, names))
    else:
        exec(code, names)
    if isinstance(client := names.get("client"), Client):
        client.close()
    if "MockServer" not in block.code:
        assert requests(server) > before


@of_kind("pytest")
def test_pytest(block: Block, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "test_snippet.py").write_text(block.code, encoding="utf-8")
    tests = len(re.findall(r"^(?:async )?def test_", block.code, re.MULTILINE))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_snippet.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{tests} passed" in done.stdout


@of_kind("shell")
def test_shell(
    block: Block, server: MockServer, environment: dict[str, str], tmp_path: Path
) -> None:
    before = requests(server)
    for command in for_world(block, server.world).splitlines():
        done = subprocess.run(
            ["sh", "-euc", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        assert server.secret not in done.stdout + done.stderr
    assert requests(server) > before


@of_kind("mock")
def test_mock(block: Block, environment: dict[str, str], tmp_path: Path) -> None:
    users = re.search(r"--users (\d+)", block.code)
    assert users is not None
    with subprocess.Popen(
        block.code.split(),
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            settings: dict[str, str] = {}
            assert process.stdout is not None
            for line in process.stdout:
                if match := re.search(r"BACKREAD_(\w+)=['\"]?([^'\"\s]+)", line):
                    settings[match[1].lower()] = match[2]
                if settings.keys() == {"base_url", "api_secret", "vendor"}:
                    break
            with Client(settings["base_url"], settings["api_secret"], settings["vendor"]) as client:
                assert client.users.page(limit=1).total == int(users[1])
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=SECONDS) in (0, 130)
        finally:
            process.kill()


@pytest.mark.skipif(not IN_CHECKOUT, reason="the Makefile is not here")
@of_kind("make")
def test_make(block: Block) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert {command.split()[1] for command in block.code.splitlines()} <= targets


def table(heading: str) -> dict[str, list[str]]:
    """The first table whose header begins with heading: cells by the first cell, without ticks."""
    lines = iter(TEXT.splitlines())
    for line in lines:
        if line.startswith(f"| {heading} |"):
            break
    else:
        pytest.fail(f"README.md has no table that begins with {heading!r}")
    next(lines)
    rows: dict[str, list[str]] = {}
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]
        rows[cells[0]] = cells[1:]
    return rows


def test_the_table_of_arguments_is_the_signature() -> None:
    documented = {name: ast.literal_eval(cells[0]) for name, cells in table("argument").items()}
    for client in (Client, AsyncClient):
        parameters = inspect.signature(client).parameters.values()
        assert documented == {parameter.name: parameter.default for parameter in parameters}


def test_the_table_of_errors_names_every_error() -> None:
    documented = set(table("error")) | {"BackreadError", "TransportError"}
    public = set(backread.errors.__all__) - {"Attempt"}
    assert documented == public


def test_the_table_of_errors_gives_the_exit_codes() -> None:
    exits = pytest.importorskip("backread.cli.exits")
    for name, cells in table("error").items():
        kind = getattr(backread.errors, name)
        assert exits.exit_code(kind.__new__(kind)) == int(cells[-1].rstrip(" |")), name


def test_the_table_of_certificates_is_what_this_release_earns() -> None:
    assert list(table("certificate")) == ["snapshot", "uncertified"]


def test_the_tables_of_the_mirror_are_its_tables(server: MockServer, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    from backread import Mirror

    mirror = Mirror(tmp_path / "chats")
    with server.client() as client:
        mirror.sync(client)
    for name in table("table"):
        assert mirror.sql(f"select count(*) from {name}").fetchall()
    assert list(table("column")) == mirror.sql("select * from conversations").columns
