"""Writes what each command shows on a terminal, at 80 and at 120 columns, into a folder.

For looking at: ``python tools/capture_commands.py FOLDER`` makes a demo's mirror and a mock, and
writes a text file for each command line and width. Colours are left out.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

WIDTHS = (80, 120)
ROWS = "40"
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

HELP = (
    "", "users", "user", "messages", "message", "sync", "runs", "report", "browse", "search",
    "show", "sql", "tables", "export", "changes", "forget", "demo", "mock", "mock record",
    "mock learn", "probe", "doctor", "mcp",
)  # fmt: skip

LINES = (
    "--version",
    "--help-connection",
    "users --limit 5",
    "users --limit 5 --format table",
    "users --limit 5 --format csv",
    "user 42",
    "messages 42 --format table",
    "messages --all --limit 20 --format table",
    "messages --all --output {scratch}/messages.csv",
    "message 42 2",
    "sync {scratch}/new",
    "sync {scratch}/new --full",
    "sync {scratch}/new --user 42",
    "runs {mirror}",
    "runs {scratch}/none",
    "report {mirror}",
    "search {mirror} invoice --limit 4",
    "search {mirror} xyzzy",
    "search {mirror} invoice --user 1",
    "search {mirror} a --since 2024-01-01 --until 2023-01-01",
    "show {mirror} 1471 --last 12",
    "show {mirror} 1471 --last 2 --format json",
    "show {mirror} 1",
    "sql {mirror} 'FROM conversations ORDER BY messages DESC LIMIT 5'",
    "sql {mirror} 'SELECT user_id, body, created_at FROM messages ORDER BY id LIMIT 5'",
    "sql {mirror} 'SELECT * FROM usrs'",
    "sql {mirror} 'SELECT nam FROM users'",
    "tables {mirror}",
    "tables {mirror} conversations",
    "export {mirror} {scratch}/out.xlsx",
    "changes {mirror} --output {scratch}/changes.jsonl",
    "forget {scratch}/new 42",
    "probe",
    "usrs",
    "user",
    "user x",
    "users --fromat json",
    "users --format xml",
    "users --limit 0",
)

UNCONFIGURED = ("users", "sync {scratch}/none")


def main() -> int:
    """Writes the captures; returns an exit code."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python tools/capture_commands.py FOLDER\n")
        return 2
    from backread.testing import MockServer, World

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made, MockServer(World(seed=7, users=200)) as server:
        mirror = Path(made) / "chats"
        clean = {name: value for name, value in os.environ.items() if "BACKREAD" not in name}
        configured = clean | {
            "BACKREAD_BASE_URL": server.url,
            "BACKREAD_API_SECRET": server.secret,
            "BACKREAD_VENDOR": server.vendor,
        }
        demo = ("demo", str(mirror))
        for width in WIDTHS:
            scratch = Path(made) / str(width)
            scratch.mkdir()
            if not mirror.exists():
                _write(folder, width, "demo", _shown(demo, width, clean))
            for command in HELP:
                text = _shown((*command.split(), "--help"), width, clean)
                _write(folder, width, f"help {command}", text)
            for lines, environment in ((LINES, configured), (UNCONFIGURED, clean)):
                for line in lines:
                    arguments = _split(line.format(mirror=mirror, scratch=scratch))
                    name = line if environment is configured else f"unconfigured {line}"
                    _write(folder, width, name, _shown(arguments, width, environment))
    sys.stdout.write(f"{len(list(folder.glob('*.txt')))} captures in {folder}\n")
    return 0


def _split(line: str) -> tuple[str, ...]:
    import shlex

    return tuple(shlex.split(line))


def _shown(arguments: tuple[str, ...], width: int, environment: dict[str, str]) -> str:
    """What a terminal of this width shows of the command, with the exit code at the end."""
    terminal, end = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "backread", *arguments],
        env=environment | {"COLUMNS": str(width), "LINES": ROWS, "TERM": "xterm", "PAGER": ""},
        stdin=subprocess.DEVNULL,
        stdout=end,
        stderr=end,
    ) as process:
        os.close(end)
        written = b""
        # Linux reports the end of a terminal as an error.
        with suppress(OSError):
            while read := os.read(terminal, 65_536):
                written += read
        os.close(terminal)
        code = process.wait()
    text = ESCAPES.sub("", written.decode().replace("\r\n", "\n"))
    # Of a line that is overwritten in place, the last state is what stays.
    lines = [line.rpartition("\r")[2].rstrip() for line in text.split("\n")]
    return "\n".join(lines) + f"[exit code {code}]\n"


def _write(folder: Path, width: int, name: str, text: str) -> None:
    stem = re.sub(r"\W+", "-", name.replace("{mirror}", "chats").replace("{scratch}", "")).strip(
        "-"
    )
    heading = f"$ backread {name}  ({width} columns)\n\n"
    (folder / f"{stem[:60]}.{width}.txt").write_text(heading + text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
