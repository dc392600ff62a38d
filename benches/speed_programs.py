"""What `speed.py` runs: the readers, the service that each of them reads, and taking turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from load import Served

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent / "target"
WIRE = TARGET / "peers" / "release"
SCRIPTS = HERE / "peers" / "speed"
PYTHONS = {
    "ours": Path(sys.executable),
    "peers": TARGET / "speed-peers" / "bin" / "python",
    "dlt": TARGET / "mirror-peers" / "dlt" / "bin" / "python",
    "airbyte": TARGET / "mirror-peers" / "airbyte" / "bin" / "python",
}
MESSAGES = 250

Measurement = dict[str, float]


@dataclass(frozen=True)
class Service:
    """So many users with 250 messages each, of which so many lists are kept in memory.

    The lists of the other users are the same ones with other ids.
    """

    users: int
    rendered: int

    @property
    def rows(self) -> int:
        """The messages of all users."""
        return self.users * MESSAGES


WHOLE = Service(2_000, 2_000)
TENTH = Service(200, 200)
# As many lists in memory for each size, or the larger ones would be read from slower memory.
GROWING = [Service(users, 20) for users in (200, 2_000, 20_000)]


@dataclass(frozen=True)
class Program:
    """A row of a table: its name, and what is run to measure it."""

    section: str
    key: str
    name: str
    python: str
    """Whose interpreter runs it; empty for a program of its own."""
    program: str
    arguments: tuple[str, ...] = ()
    """What it is told besides the service's URL."""
    service: Service = WHOLE
    users: int | None = None
    """How many of the service's users are read, if not all."""

    @property
    def rows(self) -> int:
        """How many rows it must say that it read."""
        return MESSAGES * (self.users or self.service.users)

    def command(self, url: str) -> list[str | Path]:
        """What is run."""
        if not self.python:
            return [WIRE / self.program, url, *self.arguments]
        return [PYTHONS[self.python], SCRIPTS / self.program, url, *self.arguments]


def reader(key: str, name: str, program: str, *more: str, users: int = 2_000) -> Program:
    """A peer that reads the messages of so many users."""
    return Program("read", key, name, "peers", program, (str(users), *more), users=users)


def shape(key: str, name: str) -> Program:
    """backread, in one of its shapes."""
    return Program("read", key, name, "ours", "backread_messages.py", (key,))


def calls(
    section: str, program: str, python: str, names: Iterable[tuple[str, str]]
) -> list[Program]:
    """Libraries of one interpreter whose calls are measured."""
    return [
        Program(section, f"{section}-{library}", name, python, program, (library,))
        for library, name in names
    ]


PROGRAMS = [
    Program(
        "read",
        "discard",
        "fetch and discard (reqwest, Rust)",
        "",
        "fetch-and-discard",
        (str(WHOLE.users), str(MESSAGES)),
    ),
    shape("arrow", "**backread**, `pa.table(client.messages.all())`"),
    shape("dataclasses", "**backread**, `list(client.messages.all())`"),
    shape("dicts", "**backread**, `as_dict=True`"),
    reader("wreq", "wreq + msgspec structs", "wreq_structs.py"),
    reader("wreq-untracked", "wreq + msgspec structs, `gc=False`", "wreq_structs.py", "untracked"),
    reader("pyreqwest", "pyreqwest + msgspec structs", "pyreqwest_structs.py"),
    reader("primp", "primp + msgspec structs", "primp_structs.py"),
    reader("aiohttp", "aiohttp + msgspec structs", "aiohttp_structs.py"),
    reader("aiohttp-dicts", "aiohttp + orjson dicts", "aiohttp_dicts.py"),
    reader("aiohttp-table", "aiohttp + orjson + pyarrow table", "aiohttp_table.py"),
    reader("requests", "requests, one at a time, dicts", "requests_dicts.py", users=200),
    reader("httpx", "httpx + pydantic models", "httpx_pydantic.py", users=200),
    *calls(
        "get",
        "single_get.py",
        "ours",
        [("backread", "**backread**, a `User`"), ("backread_dict", "**backread**, `as_dict=True`")],
    ),
    *calls(
        "get",
        "single_get.py",
        "peers",
        [
            ("primp", "primp"),
            ("wreq", "wreq"),
            ("pyreqwest", "pyreqwest"),
            ("http_client", "http.client + orjson"),
            ("urllib3", "urllib3"),
            ("httpx", "httpx"),
            ("requests", "requests"),
        ],
    ),
    *calls(
        "gather",
        "gathered_gets.py",
        "ours",
        [
            ("backread", "**backread**, a `User`"),
            ("backread_64", "**backread**, `max_concurrency=64`"),
        ],
    ),
    *calls(
        "gather",
        "gathered_gets.py",
        "peers",
        [("wreq", "wreq"), ("pyreqwest", "pyreqwest"), ("aiohttp", "aiohttp")],
    ),
    *(
        Program(
            "rows",
            f"rows-{service.rows}",
            f"{service.rows:,}",
            "ours",
            "backread_stream.py",
            (str(service.rows),),
            service,
        )
        for service in GROWING
    ),
    Program(
        "mirror",
        "mirror-backread",
        "**backread**, `Mirror.sync`",
        "ours",
        "timed_sync.py",
        ("backread_mirror",),
        TENTH,
    ),
    Program(
        "mirror",
        "mirror-backread-whole",
        "**backread**, `Mirror.sync`",
        "ours",
        "timed_sync.py",
        ("backread_mirror",),
    ),
    Program(
        "mirror",
        "mirror-airbyte",
        "Airbyte's CDK, into JSON lines",
        "airbyte",
        "timed_sync.py",
        ("airbyte_declarative",),
        TENTH,
    ),
    Program(
        "mirror",
        "mirror-dlt",
        "dlt, into DuckDB",
        "dlt",
        "timed_sync.py",
        ("dlt_rest_api",),
        TENTH,
    ),
]


class Responders:
    """The services that are read, each started when it is first asked for."""

    def __init__(self) -> None:
        self._running: dict[Service, Served] = {}
        self._stack = ExitStack()

    def url(self, service: Service) -> str:
        """Where a service is."""
        if service not in self._running:
            numbers = (service.users, MESSAGES, service.rendered)
            served = Served(WIRE / "responder", *map(str, numbers))
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
        if program.section == "mirror":
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
    """Measurements by key. Each round begins with another program, so that none is always first."""
    measured: dict[str, list[Measurement]] = {program.key: [] for program in programs}
    for round_number in range(rounds):
        start = round_number % len(programs)
        for program in [*programs[start:], *programs[:start]]:
            measured[program.key].append(run(program, responders.url(program.service)))
    return measured
