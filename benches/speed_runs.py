"""How `speed.py` measures programs: fresh processes that take turns, with a service for each."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from load import Served
from speed_programs import WIRE, Program, Service

Measurement = dict[str, float]


class Responders:
    """The services that are read, each started when it is first asked for."""

    def __init__(self) -> None:
        self._running: dict[Service, Served] = {}
        self._stack = ExitStack()

    def url(self, service: Service) -> str:
        """Where a service is."""
        if service not in self._running:
            served = Served(WIRE / "responder", *service.arguments)
            self._running[service] = self._stack.enter_context(served)
        return self._running[service].url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()


def run(program: Program, url: str) -> Measurement:
    """One measurement, in a fresh process and an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = program.command(url)
        environment = dict(os.environ)
        if program.section == "mirror" and program.python:
            command.append(folder)
            # What a peer keeps of itself stays in the folder, and nothing is sent anywhere.
            environment |= {
                "HOME": folder,
                "TMPDIR": folder,
                "RUNTIME__DLTHUB_TELEMETRY": "false",
                "DO_NOT_TRACK": "1",
            }
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, encoding="utf-8", check=False
        )
    try:
        measured: Measurement = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        printed = done.stdout[-2000:] + done.stderr[-4000:]
        raise SystemExit(f"{program.key}: exit code {done.returncode}\n{printed}") from None
    if measured.get("rows", program.rows) != program.rows:
        raise SystemExit(f"{program.key} read {measured['rows']:,} of {program.rows:,} rows")
    if done.returncode != 0:
        # Some peers crash at times while their interpreter ends; they have been measured by then.
        print(f"{program.key} ended with {done.returncode}, once measured", file=sys.stderr)
    return measured


def in_turns(
    programs: Sequence[Program], rounds: int, responders: Responders
) -> dict[str, list[Measurement]]:
    """Measurements by key, in a random order each round: no program always follows the same one."""
    measured: dict[str, list[Measurement]] = {program.key: [] for program in programs}
    for _ in range(rounds):
        for program in random.sample(programs, len(programs)):
            measured[program.key].append(run(program, responders.url(program.service)))
    return measured
