"""Stands in for Airflow where it is not installed: the names that backread's operators use.

``airflow`` is the package `backread.integrations.airflow`, imported over the fake; ``run`` executes
a task as a worker does. That the real Airflow works so is for tests/integrations/airflow.
"""

from __future__ import annotations

import importlib
import json
import logging
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from backread.testing import Lane

PACKAGE = "backread.integrations.airflow"
MODULES = ["base_operators", "hook", "shards", "sync"]
"""The modules of the package that import Airflow."""

LOG = "airflow.task"


class BaseOperator:
    """Takes the arguments of every operator, and refuses others."""

    def __init__(
        self,
        *,
        task_id: str,
        outlets: tuple[Any, ...] = (),
        default_args: dict[str, Any] | None = None,
        max_active_tis_per_dag: int | None = None,
        retries: int = 0,
    ) -> None:
        self.task_id = task_id
        self.outlets = list(outlets)
        self.max_active_tis_per_dag = max_active_tis_per_dag
        self.log = logging.getLogger(LOG)


class BaseHook:
    """Finds the connections that `connect` made."""

    connections: dict[str, SimpleNamespace] = {}  # noqa: RUF012

    @classmethod
    def get_connection(cls, conn_id: str) -> SimpleNamespace:
        try:
            return cls.connections[conn_id]
        except KeyError:
            raise AirflowNotFoundException(conn_id) from None


@dataclass(frozen=True)
class Asset:
    uri: str


@dataclass(frozen=True)
class AssetAlias:
    name: str


class BaseOperatorLink:
    pass


class AirflowException(Exception):  # noqa: N818
    pass


class AirflowFailException(AirflowException):
    pass


class AirflowNotFoundException(AirflowException):
    pass


class AirflowRescheduleException(AirflowException):
    def __init__(self, reschedule_date: datetime) -> None:
        self.reschedule_date = reschedule_date


masked: list[str] = []
"""What is masked in Airflow's logs."""


@dataclass
class Event:
    """What a task adds to the event of an outlet."""

    extra: Any = None
    added: list[tuple[Asset, Any]] = field(default_factory=list)

    def add(self, asset: Asset, extra: Any) -> None:
        self.added.append((asset, extra))


@dataclass
class Done:
    """The XCom of a task that succeeded, and its events by the URI of an asset or an alias."""

    xcom: Any
    events: dict[Any, Event]


def run(task: Any, rescheduled_at: datetime | None = None) -> Done:
    """Executes a task; ``rescheduled_at`` is when it was first rescheduled."""
    instance = SimpleNamespace(get_first_reschedule_date=lambda context: rescheduled_at)
    events: dict[Any, Event] = defaultdict(Event)
    return Done(task.execute({"ti": instance, "outlet_events": events}), events)


def connect(lane: Lane, conn_id: str = "backread_default", **extra: Any) -> None:
    """Makes a connection of a mock's lane."""
    connect_to(conn_id, host=lane.url, password=lane.secret, extra={"vendor": lane.vendor, **extra})


def connect_to(conn_id: str = "backread_default", **fields: Any) -> None:
    """Makes a connection with these fields."""
    BaseHook.connections[conn_id] = connection(conn_id=conn_id, **fields)


def connection(extra: Any = None, **fields: Any) -> SimpleNamespace:
    """A connection as Airflow gives it to a hook, with a dict as its extra."""
    others = dict.fromkeys(("host", "schema", "login", "password", "port"))
    given = json.dumps(extra) if isinstance(extra, dict) else extra
    return SimpleNamespace(**{**others, "conn_type": "backread", "extra": given, **fields})


def _module(name: str, *members: Any, **others: Any) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update({each.__name__: each for each in members}, **others)
    return module


FAKES = [
    _module("airflow"),
    _module("airflow.sdk", Asset, AssetAlias, BaseHook, BaseOperator, BaseOperatorLink),
    _module(
        "airflow.sdk.exceptions",
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowRescheduleException,
    ),
    _module("airflow.sdk.log", mask_secret=masked.append),
]


@pytest.fixture(scope="module")
def airflow() -> Iterator[Any]:
    """The package, for the tests of a module; nothing of the fake is left after them."""
    if sys.platform == "win32":
        pytest.skip("Airflow does not run on Windows")
    package = importlib.import_module(PACKAGE)

    def forget() -> None:
        for name in MODULES:
            sys.modules.pop(f"{PACKAGE}.{name}", None)
        for name in (*MODULES, *package.__all__):
            package.__dict__.pop(name, None)

    with pytest.MonkeyPatch.context() as patch:
        forget()
        for module in FAKES:
            patch.setitem(sys.modules, module.__name__, module)
        yield package
        forget()


@pytest.fixture(autouse=True)
def no_connections() -> Iterator[None]:
    """Each test makes its connections."""
    BaseHook.connections.clear()
    masked.clear()
    yield
    BaseHook.connections.clear()
