"""What a newcomer types into a terminal, and what it prints; some commands serve until Ctrl-C."""

import re
import shlex
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from documents import SECONDS, run_shell

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+\S*")
SETTING = re.compile(r"(BACKREAD_\w+)=['\"]?([^'\"\s]+)")
COLUMNS = 100
"""How wide the terminal is."""


@contextmanager
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


def typed(commands: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Types commands one after another; gives what they print.

    ``pip install`` is left out. Where a command serves a page, the page is requested.
    """
    return "".join(_typed(command, folder, environment) for command in commands.splitlines())


def _typed(command: str, folder: Path, environment: Mapping[str, str]) -> str:
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
    return run_shell(command, folder, {**environment, "COLUMNS": str(COLUMNS)})
