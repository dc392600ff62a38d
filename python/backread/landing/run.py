"""A run before its commit: the plan, and a file per shard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from backread._files.json import parse_json
from backread.errors import LandingError
from backread.landing.storage import Folder, Storage
from backread.models import WalkReport
from backread.sharding import Plan, Shard

RUN_ID = re.compile(r"[0-9A-Za-z-]+")
ATTEMPT = re.compile(r"(run=[0-9A-Za-z-]+)/shard=\d{5,}/attempt=[0-9a-f]{32}\.parquet", re.ASCII)


def begin(folder: Folder, plan: Plan[Any]) -> str:
    """Writes the plan into the folder, and returns the run's id, which is the plan's.

    Workers need only the folder, that id and a number to load their shard with `load_shard`.
    Beginning again is not an error.

    Args:
        folder: The landing folder; it is created if it does not exist.
        plan: The whole result of `backread.plan`.

    Raises:
        LandingError: The folder cannot be written.
    """
    storage = Storage(folder)
    for shard in plan:
        storage.make_folder(shard_folder(plan.plan_id, shard.index))
        storage.write(f"{shard_folder(plan.plan_id, shard.index)}/shard.json", shard.to_json())
    head = {"format": 1, "shards": len(plan), "report": plan.report.to_dict()}
    storage.write(f"{run_folder(plan.plan_id)}/plan.json", json.dumps(head, indent=1))
    return plan.plan_id


def load_plan(folder: Folder, run_id: str) -> Plan[Any]:
    """The plan that `begin` wrote.

    Args:
        folder: The landing folder.
        run_id: The result of `begin`.

    Raises:
        LandingError: There is no such run, or its files are damaged.
    """
    storage = Storage(folder)
    name = f"{run_folder(run_id)}/plan.json"
    with _parsing(storage, name) as document:
        head = parse_json(document)
        report, count = WalkReport.from_dict(head["report"]), int(head["shards"])
    return Plan([load_shard(folder, run_id, index) for index in range(count)], report)


def load_shard(folder: Folder, run_id: str, index: int) -> Shard[Any]:
    """One shard of a plan that `begin` wrote.

    The file is untrusted: `Shard.read` and `land` accept the shard only if it is signed with the
    secret that they would send.

    Args:
        folder: The landing folder.
        run_id: The result of `begin`.
        index: The number of the shard, from 0.

    Raises:
        LandingError: There is no such shard, or its file is damaged.

    Example:
        >>> land("landed", load_shard("landed", run_id, 3))
    """
    storage = Storage(folder)
    with _parsing(storage, f"{shard_folder(run_id, index)}/shard.json") as document:
        shard = Shard.from_json(document)
        if (shard.plan_id, shard.index) != (run_id, index):
            raise ValueError("it is a different shard")
    return shard


def run_folder(run_id: str) -> str:
    """The run's folder, relative to the landing folder."""
    if not RUN_ID.fullmatch(run_id):
        raise ValueError(f"a run id is the result of begin(), not {run_id!r:.80}")
    return f"run={run_id}"


def shard_folder(run_id: str, index: int) -> str:
    """The shard's folder, relative to the landing folder."""
    return f"{run_folder(run_id)}/shard={index:05}"


def is_attempt(file: object, run_id: object) -> bool:
    """Whether `land` would name a file of that run like this; the JSON is untrusted."""
    found = ATTEMPT.fullmatch(file) if isinstance(file, str) else None
    return found is not None and isinstance(run_id, str) and found[1] == run_folder(run_id)


@contextmanager
def _parsing(storage: Storage, name: str) -> Iterator[bytes]:
    """A file of a run, and errors about what is in it."""
    document = storage.read(name)
    if document is None:
        raise LandingError(
            f"the landing folder {storage.folder} has no {name}; begin(folder, plan) writes it"
        )
    try:
        yield document
    except (ValueError, KeyError, TypeError) as error:
        raise LandingError(
            f"the landing folder {storage.folder}: {name} is damaged ({error}); make a new plan "
            "and begin again"
        ) from error
