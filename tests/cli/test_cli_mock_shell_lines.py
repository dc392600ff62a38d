"""``backread mock`` prints its settings as lines for the user's shell."""

import os
import shutil
import subprocess

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from backread.cli.exits import UnusableArgumentError
from backread.cli.shells import Shell, assignments, other_shell
from helpers.command_line import COMMAND, SECONDS, posix_only, wait_for

NASTY = "mock_$(touch made)`touch made`;touch made'\u2019\"\\ %PATH% $HOME !x"


@posix_only
@pytest.mark.parametrize("shell", [Shell.SH, Shell.FISH])
def test_pasted_lines_set_the_variables(tmp_path, shell):
    program = shutil.which(shell.value)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    lines = assignments(shell, {"BACKREAD_API_SECRET": NASTY, "BACKREAD_VENDOR": "shop"})
    script = lines + 'printf "%s|%s" "$BACKREAD_API_SECRET" "$BACKREAD_VENDOR"'
    done = subprocess.run(
        [program, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
    )
    assert (done.stdout, done.stderr) == (f"{NASTY}|shop", "")
    assert not (tmp_path / "made").exists()


def test_lines_for_powershell_double_each_quote():
    line = assignments(Shell.POWERSHELL, {"NAME": NASTY})
    inside = NASTY.replace("'", "''").replace("\u2019", "\u2019\u2019")
    assert line == f"$env:NAME = '{inside}'\n"


def test_lines_for_cmd_are_quoted_or_refused():
    assert assignments(Shell.CMD, {"NAME": "a&b|c"}) == 'set "NAME=a&b|c"\n'
    for value in ("%PATH%", 'a"b', "a!b"):
        with pytest.raises(UnusableArgumentError, match="which cmd"):
            assignments(Shell.CMD, {"NAME": value})


@posix_only
def test_lines_are_for_sh_unless_another_shell_is_named(monkeypatch):
    assert assignments(None, {"NAME": "x"}) == "export NAME=x\n"
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert assignments(None, {"NAME": "x"}) == "export NAME=x\n"
    assert other_shell() == "for fish: --shell fish"
    monkeypatch.setenv("SHELL", "/bin/bash")
    assert other_shell() is None


@posix_only
def test_the_mock_writes_them(tmp_path):
    ready = tmp_path / "port"
    options = ["--users", "3", "--until", "2026-11-23", "--shell", "fish", "--port-file", ready]
    with subprocess.Popen(
        [*COMMAND, "mock", *map(str, options)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_for(ready.exists, process)
        finally:
            process.terminate()
        written, _ = process.communicate(timeout=SECONDS)
    assert written.startswith("set -gx BACKREAD_BASE_URL 'http://127.0.0.1:")
    assert [line.split()[2] for line in written.splitlines()] == [
        "BACKREAD_BASE_URL",
        "BACKREAD_API_SECRET",
        "BACKREAD_VENDOR",
    ]
