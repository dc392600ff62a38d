"""The command ``backread``: the four reads, the mirror, the probe, the mock and a demonstration.

Needs ``pip install "backread[cli]"``. The exit codes are in `backread.cli.exits`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

from backread._interruptible import run_to_its_end

__all__ = ["main", "version_line"]


def main() -> None:
    """The console script; it ends the process with the exit code."""
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        # During imports; after them, `run` handles it.
        from backread.cli.stderr import say

        say("stopped by Ctrl-C")
        sys.exit(130)


def _run() -> int:
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        # Without the extras, too: the first thing that a report of a bug needs. If it cannot be
        # written, `run` says so.
        with suppress(OSError):
            sys.stdout.write(f"{version_line()}\n")
            sys.stdout.flush()
            return 0
    try:
        # What Ctrl-C raises in an import may be lost.
        run = run_to_its_end(_load)
    except ModuleNotFoundError as error:
        if error.name not in ("rich", "typer"):
            raise
        from backread.cli.stderr import say

        say(
            f"the command needs {error.name}, which is not installed; "
            'run: pip install "backread[cli]"'
        )
        return 1
    return run()


def _load() -> Callable[[], int]:
    """The commands, with all that they import."""
    import rich  # noqa: F401
    import typer  # noqa: F401

    from backread.cli.app import run

    return run


def version_line() -> str:
    """The versions that a report of a bug needs, on one line."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from backread import __version__

    try:
        duckdb = f"DuckDB {version('duckdb')}"
    except PackageNotFoundError:
        duckdb = "no DuckDB"
    return f"backread {__version__} (Python {platform.python_version()}, {duckdb})"
