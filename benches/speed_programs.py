"""What `speed.py` runs: the readers, and the service that each of them reads."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

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


@dataclass(frozen=True)
class Service:
    """So many users with so many messages each, of which so many lists are kept in memory.

    The lists of the other users are the same ones with other ids.
    """

    users: int
    rendered: int
    messages: int = 250
    bodies: str = "own"
    """What benches/peers/responder/src/body.rs draws, or how many bytes."""

    @property
    def rows(self) -> int:
        """The messages of all users."""
        return self.users * self.messages

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the responder is told."""
        told = (self.users, self.messages, self.rendered, self.bodies)
        return tuple(map(str, told))


WHOLE = Service(2_000, 2_000)
TENTH = Service(200, 200)
# As many lists in memory for each size, or the larger ones would be read from slower memory.
GROWING = [Service(users, 20) for users in (200, 2_000, 20_000)]
# A sync that finds a list of 250 unchanged reads its last 89 rows, which leaves room for new ones.
END_FROM = WHOLE.messages - 89
# Lists of 1 have a fifth of the rows: each row is a request.
KINDS = {
    "own": WHOLE,
    "escaped": replace(WHOLE, bodies="escaped"),
    "short": replace(WHOLE, bodies="short"),
    "long": Service(320, 320, bodies="4096"),
    "lists-1": Service(100_000, 100_000, messages=1),
    "lists-100": Service(5_000, 5_000, messages=100),
    "lists-5000": Service(100, 100, messages=5_000),
}
"""Kinds of rows: what is in their bodies, and how long the lists are."""


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
        return self.service.messages * (self.users or self.service.users)

    def command(self, url: str) -> list[str | Path]:
        """What is run."""
        if not self.python:
            return [WIRE / self.program, url, *self.arguments]
        return [PYTHONS[self.python], SCRIPTS / self.program, url, *self.arguments]


def reader(key: str, name: str, program: str, *more: str, users: int = 2_000) -> Program:
    """A peer that reads the messages of `users` users: a program, or a library of readers.py."""
    if not program.endswith(".py"):
        program, more = "readers.py", (program, *more)
    return Program("read", key, name, "peers", program, (str(users), *more), users=users)


def shape(key: str, name: str, *more: str) -> Program:
    """backread, in one of its shapes; the key begins with its name."""
    arguments = (key.partition("-")[0], *more)
    return Program("read", key, name, "ours", "backread_messages.py", arguments)


def calls(python: str, names: Iterable[tuple[str, str]]) -> list[Program]:
    """Libraries of one interpreter whose single calls are measured."""
    return [
        Program("get", f"get-{library}", name, python, "single_get.py", (library,))
        for library, name in names
    ]


def mirror(key: str, name: str, python: str, program: str, service: Service, *more: str) -> Program:
    """What lands a service's rows in a folder."""
    return Program(
        "mirror", f"mirror-{key}", name, python, "timed_sync.py", (program, *more), service
    )


def in_rust(key: str, name: str, program: str, *more: int, section: str = "read") -> Program:
    """A reader in Rust."""
    arguments = (WHOLE.users, WHOLE.messages, *more)
    return Program(section, key, name, "", program, tuple(map(str, arguments)))


READERS = [
    in_rust("discard", "fetch and discard (reqwest, Rust)", "fetch-and-discard"),
    in_rust("arrow-json", "reqwest + arrow-json record batches (Rust)", "fetch-and-decode"),
    shape("batches", "**backread**, batches of `client.messages.all()`, discarded"),
    shape("arrow", "**backread**, `pa.table(client.messages.all())`"),
    shape("dataclasses", "**backread**, `client.messages.all().to_list()`"),
    shape("dicts", "**backread**, `as_dict=True`"),
    shape("dicts-uncollected", "**backread**, `as_dict=True`, `gc.disable()`", "uncollected"),
    reader("wreq", "wreq + msgspec structs", "wreq", "structs"),
    reader("wreq-untracked", "wreq + msgspec structs, `gc=False`", "wreq", "structs", "untracked"),
    *(
        reader(
            f"{peer}-uvloop" if peer == "wreq" else peer,
            f"{peer} + msgspec structs, `gc=False`, uvloop",
            peer,
            "structs",
            "untracked",
            "uvloop",
        )
        for peer in ("wreq", "pyqwest", "pyreqwest", "primp", "foghttp", "aiohttp")
    ),
    reader("wreq-dicts", "wreq + orjson dicts", "wreq", "dicts"),
    reader("wreq-dicts-frozen", "wreq + orjson dicts, `gc.freeze()`", "wreq", "dicts", "frozen"),
    reader(
        "wreq-dicts-uncollected",
        "wreq + orjson dicts, `gc.disable()`",
        "wreq",
        "dicts",
        "uncollected",
    ),
    reader(
        "aiohttp-dicts",
        "aiohttp + orjson dicts, `gc.disable()`, uvloop",
        "aiohttp",
        "dicts",
        "uncollected",
        "uvloop",
    ),
    reader("wreq-table", "wreq + pyarrow.json table", "wreq", "table"),
    reader(
        "aiohttp-table",
        "aiohttp + orjson + pyarrow table, `gc.disable()`, uvloop",
        "aiohttp",
        "table",
        "uncollected",
        "uvloop",
    ),
    reader("requests", "requests, one at a time, dicts", "requests_dicts.py", users=200),
    reader("httpx", "httpx + pydantic models", "httpx_pydantic.py", users=200),
]


def of_kind(kind: str, reader: Program) -> Program:
    """The same reader, of rows of that kind."""
    service = KINDS[kind]
    arguments = reader.arguments
    if not reader.python:
        arguments = tuple(map(str, (service.users, service.messages)))
    elif reader.users is not None:
        arguments = (str(service.users), *arguments[1:])
    return replace(
        reader,
        section="kinds",
        key=f"{kind}/{reader.key}",
        arguments=arguments,
        service=service,
        users=reader.users and service.users,
    )


OF_EACH_KIND = (
    "discard",
    "arrow-json",
    "batches",
    "arrow",
    "dataclasses",
    "dicts",
    "wreq-untracked",
    "wreq-dicts",
    "wreq-dicts-frozen",
)
PROGRAMS = [
    *READERS,
    *(of_kind(kind, reader) for kind in KINDS for reader in READERS if reader.key in OF_EACH_KIND),
    *calls(
        "ours",
        [("backread", "**backread**, a `User`"), ("backread_dict", "**backread**, `as_dict=True`")],
    ),
    *calls(
        "peers",
        [
            ("primp", "primp"),
            ("wreq", "wreq"),
            ("pyqwest", "pyqwest"),
            ("pyreqwest", "pyreqwest"),
            ("foghttp", "foghttp"),
            ("http_client", "http.client + orjson"),
            ("urllib3", "urllib3"),
            ("httpx", "httpx"),
            ("requests", "requests"),
        ],
    ),
    *(
        Program(
            "rows",
            f"rows-{service.rows}",
            f"{service.rows:,}",
            "ours",
            "backread_messages.py",
            ("stream", str(service.rows)),
            service,
        )
        for service in GROWING
    ),
    mirror("backread", "**backread**, `Mirror.sync`", "ours", "backread_mirror", TENTH),
    mirror("backread-whole", "**backread**, `Mirror.sync`", "ours", "backread_mirror", WHOLE),
    mirror(
        "backread-200",
        "**backread**, `Mirror.sync`, bodies of 200 B",
        "ours",
        "backread_mirror",
        replace(WHOLE, bodies="200"),
    ),
    mirror(
        "backread-2000",
        "**backread**, `Mirror.sync`, bodies of 2 KB",
        "ours",
        "backread_mirror",
        Service(800, 800, bodies="2000"),
    ),
    mirror(
        "backread-again",
        "**backread**, `Mirror.sync` of an unchanged service",
        "ours",
        "backread_mirror",
        WHOLE,
        "again",
    ),
    in_rust(
        "mirror-requests",
        "the requests of that, fetched and discarded",
        "fetch-and-discard",
        END_FROM,
        section="mirror",
    ),
    mirror("airbyte", "Airbyte's CDK, into JSON lines", "airbyte", "airbyte_declarative", TENTH),
    mirror("dlt", "dlt, into DuckDB", "dlt", "dlt_rest_api", TENTH),
]
