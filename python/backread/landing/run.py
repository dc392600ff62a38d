"""A run before its commit: the plan, and a file per shard."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from backread._files.json import parse_json
from backread.errors import ConfigurationError, LandingError
from backread.landing.storage import Folder, Storage, check_kind
from backread.models import WalkReport
from backread.sharding import Plan, Shard

__all__ = ["begin", "load_plan", "load_shard", "run_folder", "shard_folder"]

T = TypeVar("T")

RUN_ID = re.compile(r"[0-9A-Za-z-]+")


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
    check_kind("plan", plan, Plan, "the result of plan()")
    storage = Storage(folder)
    for shard in plan:
        storage.make_folder(shard_folder(plan.plan_id, shard.index))
        storage.write(_shard_file(plan.plan_id, shard.index), shard.to_json())
    head = {"format": 1, "shards": len(plan), "report": plan.report.to_dict()}
    storage.write(_plan_file(plan.plan_id), json.dumps(head, indent=1))
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
    document = storage.read(_plan_file(run_id))
    if document is None:
        raise LandingError(
            f"the landing folder {storage.folder} has no run {run_id}; "
            "begin(folder, plan) creates one"
        )
    try:
        head = parse_json(document)
        report = WalkReport.from_dict(head["report"])
        count = int(head["shards"])
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(storage, _plan_file(run_id), error) from error
    return Plan([_load_shard(storage, run_id, index) for index in range(count)], report)


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
    return _load_shard(Storage(folder), run_id, index)


def run_folder(run_id: str) -> str:
    """The run's folder, relative to the landing folder."""
    if not RUN_ID.fullmatch(run_id):
        raise ValueError(f"a run id is the result of begin(), not {run_id!r:.80}")
    return f"run={run_id}"


def shard_folder(run_id: str, index: int) -> str:
    """The shard's folder, relative to the landing folder."""
    return f"{run_folder(run_id)}/shard={index:05}"


def _plan_file(run_id: str) -> str:
    return f"{run_folder(run_id)}/plan.json"


def _shard_file(run_id: str, index: int) -> str:
    return f"{shard_folder(run_id, index)}/shard.json"


def _load_shard(storage: Storage, run_id: str, index: int) -> Shard[Any]:
    name = _shard_file(run_id, index)
    document = storage.read(name)
    if document is None:
        raise LandingError(
            f"the landing folder {storage.folder} has no shard {index} of a run {run_id}; "
            "begin(folder, plan) writes its shards"
        )
    try:
        shard = Shard.from_json(document)
    except ConfigurationError as error:
        raise ConfigurationError(f"the landing folder {storage.folder}: {name}: {error}") from None
    except ValueError as error:
        raise _damaged(storage, name, error) from error
    if (shard.plan_id, shard.index) != (run_id, index):
        raise _damaged(storage, name, ValueError("it is a different shard"))
    return shard


def _damaged(storage: Storage, name: str, error: Exception) -> LandingError:
    return LandingError(
        f"the landing folder {storage.folder}: {name} is damaged ({error}); make a new plan and "
        "begin again"
    )
