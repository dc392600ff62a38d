"""README.md keeps its word: each fenced block runs, and each table agrees with the code.

A block is one of five kinds, by its language and content, and each kind has its runner; a block of
no kind fails. ``42`` in a block stands for a user, so it becomes the id of one in the mock's world.
"""

import logging
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import backread.errors
from backread import Client
from backread.models import Certificate
from backread.testing import MockServer, World
from documents import (
    ELSEWHERE,
    IN_CHECKOUT,
    ROOT,
    SECONDS,
    Block,
    Document,
    enter,
    of_kind,
    run_shell,
    run_tests,
)

README = Document(ROOT / "README.md")


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=7, users=12, messages_per_user=(1, 30))) as running:
        yield running


@pytest.fixture
def environment(
    server: MockServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """An empty folder to be in, the mock's settings, and the console script on PATH."""
    return enter(tmp_path, monkeypatch, server)


def for_world(block: Block, world: World) -> str:
    return re.sub(r"\b42\b", str(world.user_ids()[0]), block.code)


def requests(server: MockServer) -> int:
    return sum(server.counts().values())


def test_every_block_has_a_runner():
    kinds = {"make", "mock", "shell", "pytest", "python"}
    README.check(kinds | ELSEWHERE)
    assert {block.kind for block in README.blocks} >= kinds


@of_kind(README.blocks, "python")
def test_python(block, server, environment):
    block.require_imports()
    before = requests(server)
    try:
        names = block.execute(for_world(block, server.world))
    finally:
        logging.getLogger("backread").setLevel(logging.NOTSET)
    if isinstance(client := names.get("client"), Client):
        client.close()
    if "MockServer" not in block.code:
        assert requests(server) > before


@of_kind(README.blocks, "pytest")
def test_pytest(block, environment, tmp_path):
    outcome = run_tests(tmp_path, environment, [block])[block.module]
    assert not outcome.problems
    assert set(outcome.passed) == set(block.tests)


@of_kind(README.blocks, "shell")
def test_shell(block, server, environment, tmp_path):
    before = requests(server)
    for command in for_world(block, server.world).splitlines():
        assert server.secret not in run_shell(command, tmp_path, environment)
    assert requests(server) > before


@of_kind(README.blocks, "mock")
def test_mock(block, environment, tmp_path):
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
@of_kind(README.blocks, "make")
def test_make(block):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert {command.split()[1] for command in block.code.splitlines()} <= targets


def test_the_table_of_errors_names_every_error():
    documented = set(README.table("error")) | {"BackreadError", "TransportError"}
    public = set(backread.errors.__all__) - {"Attempt", "IncompleteWarning"}
    assert documented == public


def test_the_table_of_errors_gives_the_exit_codes():
    exits = pytest.importorskip("backread.cli.exits")
    for name, cells in README.table("error").items():
        kind = getattr(backread.errors, name)
        assert exits.exit_code(kind.__new__(kind)) == int(cells[-1].rstrip(" |")), name


def test_the_table_of_certificates_is_what_this_release_earns():
    assert tuple(README.table("certificate")) == get_args(Certificate)


def test_the_tables_of_the_mirror_are_its_tables(server, tmp_path):
    pytest.importorskip("duckdb")
    from backread import Mirror

    mirror = Mirror(tmp_path / "chats")
    with server.client() as client:
        mirror.sync(client)
    for name in README.table("table"):
        assert mirror.sql(f"select count(*) from {name}").fetchall()
    assert list(README.table("column")) == mirror.sql("select * from conversations").columns
