"""Servers in separate processes, and wrk to load them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

UNITS = {"us": 0.001, "ms": 1.0, "s": 1_000.0}


class Served:
    """A server process that prints its address, and ends with its stdin or when told."""

    def __init__(self, *command: str | Path) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        self.words = self._read().split()
        if not self.words:
            raise SystemExit(f"{command[0]} did not start: exit code {self._process.wait()}")
        self.url = self.words[0]

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def ask(self) -> str:
        """Sends an empty line, and gives the line that comes back."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._read().strip()

    def resident_megabytes(self) -> float:
        """What the process holds in memory now."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        match = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
        assert match is not None
        return int(match[1]) * 1024 / 1e6

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait()


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of wrk saw: answers a second, and milliseconds that they took."""

    per_second: float
    p50: float
    p99: float


def wrk(
    url: str,
    *,
    seconds: int,
    connections: int,
    headers: Mapping[str, str],
    script: Path | None = None,
    arguments: Sequence[str | Path] = (),
) -> Load:
    """Loads a URL from one thread. Ends the program where any answer was not a 200."""
    command: list[str | Path] = ["wrk", "--threads", "1", "--latency"]
    command += ["--connections", str(connections), "--duration", f"{seconds}s"]
    for name, value in headers.items():
        command += ["--header", f"{name}: {value}"]
    if script is not None:
        command += ["--script", script]
    command += [url, "--", *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    printed = done.stdout + done.stderr
    if done.returncode != 0 or "Non-2xx" in printed or "Socket errors" in printed:
        raise SystemExit(f"not every request to {url} was answered with 200:\n{printed}")
    rate = re.search(r"^Requests/sec:\s+([\d.]+)$", printed, re.MULTILINE)
    if rate is None:
        raise SystemExit(f"wrk printed no rate for {url}:\n{printed}")
    return Load(float(rate[1]), percentile(printed, 50), percentile(printed, 99))


def percentile(printed: str, which: int) -> float:
    """Milliseconds of one line of wrk's latency distribution."""
    match = re.search(rf"^\s+{which}%\s+([\d.]+)(us|ms|s)$", printed, re.MULTILINE)
    if match is None:
        raise SystemExit(f"wrk printed no {which}th percentile:\n{printed}")
    return float(match[1]) * UNITS[match[2]]
