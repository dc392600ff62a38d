"""Pages of documentation: their fenced blocks, what runs these, and their tables."""

import ast
import asyncio
import contextlib
import inspect
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import urllib.request
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest

from backread.testing import MockServer

ROOT = Path(__file__).resolve().parents[2]
# The wheel check takes the tests and README.md along, and nothing else of the checkout.
IN_CHECKOUT = (ROOT / "Makefile").is_file()
# ```python {data-run=spark} is run by the tests in tests/integrations/spark, where Spark is.
FENCE = re.compile(r"^```(\S*)(?: \{data-run=(\S+)\})?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"airflow", "spark", "warehouses"}
"""The folders of tests/integrations that run blocks."""
TEST = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
SECONDS = 120
"""What a block may take, on a machine that has much else to do."""
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+\S*")
SETTING = re.compile(r"(BACKREAD_\w+)=['\"]?([^'\"\s]+)")
PLAIN = re.compile(r"backread [^|<>;&$`*~\\]+")
"""A command that a shell would only split into words."""
COLUMNS = 100
"""How wide the terminal is."""


@dataclass(frozen=True)
class Block:
    """One fenced block: its page, its language, its text, and the line it begins on."""

    page: Path
    language: str
    code: str
    line: int
    place: str | None = None

    @property
    def kind(self) -> str:
        """``mock``, ``shell``, ``pytest``, ``python``, ``output``, and so on.

        Or where it is run, for one that says so.
        """
        if self.place is not None:
            return self.place
        if self.language == "sh":
            last = self.code.splitlines()[-1]
            return "mock" if last.startswith("backread mock") else "shell"
        if self.language == "python":
            return "pytest" if self.tests else "python"
        plain = {"text": "output", "sql": "sql", "toml": "toml"}
        return plain.get(self.language, "none")

    @property
    def tests(self) -> list[str]:
        """The names of the tests in it."""
        return TEST.findall(self.code)

    @property
    def module(self) -> str:
        """What its file is called among other blocks; two folders may have pages of one name."""
        folder = self.page.parent.name.replace("-", "_")
        return f"test_{folder}_{self.page.stem}_{self.line}"

    def execute(self, code: str) -> dict[str, object]:
        """Runs Python as a script, or as a notebook's cell that awaits; gives the names in it."""
        # Empty lines in front, so that a traceback shows the line of the page.
        source = "\n" * (self.line - 1) + code
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        compiled = compile(source, str(self.page), "exec", flags=flags, dont_inherit=True)
        names: dict[str, object] = {"__name__": "__main__"}
        if compiled.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(compiled, names))
        else:
            exec(compiled, names)
        return names

    def __str__(self) -> str:
        page = self.page.relative_to(ROOT).with_suffix("").as_posix()
        return f"{page}-{self.kind}-line-{self.line}"


class Document:
    """One page of Markdown."""

    def __init__(self, page: Path) -> None:
        self.page = page
        self.text = page.read_text(encoding="utf-8")

    def __str__(self) -> str:
        return self.page.relative_to(ROOT).as_posix()

    @property
    def blocks(self) -> list[Block]:
        """Its fenced blocks, in order."""
        return [
            Block(
                self.page, match[1], match[3], self.text.count("\n", 0, match.start()) + 2, match[2]
            )
            for match in FENCE.finditer(self.text)
        ]

    def check(self, kinds: set[str]) -> None:
        """Fails for a block that has no runner: of another kind, indented, or never closed."""
        strange = [str(block) for block in self.blocks if block.kind not in kinds]
        assert not strange
        fences = re.findall(r"^\s*(?:```|~~~)", self.text, re.MULTILINE)
        assert len(fences) == 2 * len(self.blocks)

    def table(self, heading: str) -> dict[str, list[str]]:
        """The first table whose header begins with heading: cells by the first one, no ticks."""
        lines = iter(self.text.splitlines())
        for line in lines:
            if line.startswith(f"| {heading} |"):
                break
        else:
            pytest.fail(f"{self.page.name} has no table that begins with {heading!r}")
        next(lines)
        rows: dict[str, list[str]] = {}
        for line in lines:
            if not line.startswith("|"):
                break
            cells = [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]
            rows[cells[0]] = cells[1:]
        return rows


def words(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


def shape(text: str) -> str:
    """A text without its line breaks and numbers."""
    return " ".join(re.sub(r"\d+(?:[.,:-]\d+)*", "0", text).split())


def of_kind(blocks: Iterable[Block], kind: str) -> pytest.MarkDecorator:
    """Parametrizes ``block`` with the blocks of a kind."""
    return pytest.mark.parametrize("block", [b for b in blocks if b.kind == kind], ids=str)


def enter(
    folder: Path, monkeypatch: pytest.MonkeyPatch, server: MockServer | None = None
) -> dict[str, str]:
    """Makes a folder the current one, with the console script on PATH and a server's settings."""
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith("BACKREAD_")]:
        monkeypatch.delenv(name)
    if server is not None:
        monkeypatch.setenv("BACKREAD_BASE_URL", server.url)
        monkeypatch.setenv("BACKREAD_API_SECRET", server.secret)
        monkeypatch.setenv("BACKREAD_VENDOR", server.vendor)
    scripts = sysconfig.get_path("scripts")
    monkeypatch.setenv("PATH", f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}")
    monkeypatch.setenv("PYTHONUTF8", "1")
    return dict(os.environ)


@dataclass
class Outcome:
    """How the tests of one block ended, and what they printed."""

    passed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    printed: str = ""


def run_tests(
    folder: Path, environment: Mapping[str, str], blocks: Iterable[Block]
) -> dict[str, Outcome]:
    """Runs the blocks with pytest, a file each and all at once; gives the outcomes by module."""
    for block in blocks:
        source = "\n" * (block.line - 1) + block.code
        (folder / f"{block.module}.py").write_text(source, encoding="utf-8")
    options = ["-W", "error", "-p", "no:cacheprovider", "-o", "junit_logging=system-out"]
    command = [sys.executable, "-m", "pytest", "-q", *options, "--junitxml=outcome.xml", "."]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    report = folder / "outcome.xml"
    assert report.is_file(), done.stdout + done.stderr
    outcomes: dict[str, Outcome] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        module = str(case.get("classname") or case.get("name")).split(".")[0]
        outcome = outcomes.setdefault(module, Outcome())
        problems = [each for each in case if each.tag in ("failure", "error", "skipped")]
        outcome.problems += [f"{each.get('message')}\n{each.text}" for each in problems]
        if not problems:
            outcome.passed.append(str(case.get("name")).partition("[")[0])
        outcome.printed += case.findtext("system-out", "")
    return outcomes


def run_shell(script: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Runs a shell script to its end; gives what it wrote. What it leaves running is ended."""
    process = subprocess.Popen(
        ["sh", "-euc", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        written, _ = process.communicate(timeout=SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, f"{script}\n{written}"
    return written


@contextlib.contextmanager
def serving(command: str, folder: Path, environment: Mapping[str, str]) -> Iterator[Iterator[str]]:
    """Starts a command that serves until Ctrl-C, which ends it here; gives the lines it prints."""
    with subprocess.Popen(
        shlex.split(command, comments=True),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield iter(process.stdout.readline, "")
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=SECONDS) in (0, 130)
        finally:
            process.kill()


def settings(lines: Iterator[str]) -> dict[str, str]:
    """The three settings that a mock prints."""
    found: dict[str, str] = {}
    while len(found) < 3 and (line := next(lines, "")):
        found |= SETTING.findall(line)
    return found


def run_commands(commands: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Runs commands one after another, as typed into a terminal; gives what they print.

    ``pip install`` is left out. Where a command serves a page, the page is requested.
    """
    return "".join(_run_command(command, folder, environment) for command in commands.splitlines())


def _run_command(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    if command.startswith("pip install "):
        return ""
    if command.startswith("backread browse "):
        command = command.replace("browse", "browse --no-open", 1)
        with serving(command, folder, environment) as lines:
            found = next(filter(None, map(ADDRESS.search, lines)))
            # As a browser does: the address has a token, and leads to the page with a cookie.
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with browser.open(found[0], timeout=SECONDS) as page:
                assert b"<html" in page.read().lower()
        return ""
    environment = {**environment, "COLUMNS": str(COLUMNS)}
    if PLAIN.fullmatch(command):
        return _run_here(shlex.split(command, comments=True)[1:], environment)
    return run_shell(command, folder, environment)


def _run_here(arguments: list[str], environment: Mapping[str, str]) -> str:
    """Runs a command of backread in this process, which is faster than to start another one."""
    from backread.cli.app import run

    written = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with (
        patch.dict(os.environ, environment),
        contextlib.redirect_stdout(written),
        contextlib.redirect_stderr(written),
    ):
        code = run(arguments)
    written.seek(0)
    text = written.read()
    assert code == 0, f"{arguments}\n{text}"
    return text
