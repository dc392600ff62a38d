"""The files of a landing folder: the plan of a run, and the manifest of a committed one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from backread._client.privacy import Choice, why_refused
from backread._files.dataclass_json import dataclass_from_json, to_json_value
from backread._files.json import parse_json
from backread.errors import LandingError
from backread.landing.storage import Folder, Storage, require
from backread.models import WalkReport
from backread.sharding import Plan, Shard
from backread.sharding.shard import Resource

RUN_ID = re.compile(r"[0-9A-Za-z-]+")
ATTEMPT = re.compile(r"(run=[0-9A-Za-z-]+)/shard=\d{5,}/attempt=[0-9a-f]{32}\.parquet", re.ASCII)

FORMAT = 1

MANIFESTS = "manifests"
MANIFEST = re.compile(r"(\d{8})\.json", re.ASCII)


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


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed run. Its files contain each row once.

    They never change, unless `Mirror.forget` removes the rows of a user from them.

    ``number`` counts the commits of the folder from 1; ``run_id`` is the plan's id; ``resource`` is
    what was read (``"users"`` or ``"messages"``); ``files`` are relative to the folder, in the
    order of the shards; ``rows`` is their total; ``report`` says what the shards prove together;
    ``committed_at`` is UTC; ``privacy`` is that of the `Landed` shards.
    """

    number: int
    run_id: str
    resource: Resource
    files: tuple[str, ...]
    rows: int
    report: WalkReport
    committed_at: datetime
    privacy: str | None = None


def runs(folder: Folder, *, after: int = 0) -> list[Committed]:
    """The committed runs in commit order; none if there is no such folder.

    Args:
        folder: The landing folder.
        after: Return only runs with a greater number; the other manifests are not read.

    Raises:
        LandingError: A manifest is damaged.
    """
    storage = Storage(folder)
    return [_read(storage, number) for number in _numbers(storage) if number > after]


def dataset(folder: Folder, run: Committed) -> Any:
    """The rows of a committed run as a ``pyarrow.dataset.Dataset``, to read, filter or batch.

    Args:
        folder: The landing folder.
        run: The result of `commit`, or an item of `runs`.

    Raises:
        LandingError: A file of the run is missing.

    Example:
        >>> table = dataset("landed", runs("landed")[-1]).to_table(columns=["user_id", "body"])
    """
    storage = Storage(folder)
    for file in run.files:
        if storage.size(file) is None:
            raise LandingError(
                f"the landing folder {storage.folder}: {file} of run {run.number} is missing; "
                "check that this is the folder it was landed in, and that all machines see it"
            )
    return require("pyarrow.dataset").dataset(
        [storage.path(file) for file in run.files], filesystem=storage.filesystem, format="parquet"
    )


def as_text(committed: Committed) -> str:
    """The text of the run's manifest."""
    return json.dumps({"format": FORMAT, **to_json_value(committed)}, indent=1)


def manifest_name(number: int) -> str:
    """The file of a manifest, relative to the landing folder."""
    return f"{MANIFESTS}/{number:08}.json"


def refuse_other_choice(storage: Storage, given: Choice | None) -> None:
    """Raises `LandingError` if the newest run of the folder was landed with another choice."""
    for number in _numbers(storage)[-1:]:
        stored = _read(storage, number).privacy
        if (why := why_refused(stored, given, "land into a new folder")) is not None:
            raise LandingError(f"the landing folder {storage.folder} {why}")


def _numbers(storage: Storage) -> list[int]:
    found = [MANIFEST.fullmatch(name) for name in storage.names(MANIFESTS)]
    return [int(name[1]) for name in found if name is not None]


def _read(storage: Storage, number: int) -> Committed:
    name = manifest_name(number)
    try:
        document = parse_json(storage.read(name) or b"")
        if document["format"] != FORMAT:
            raise ValueError(f"its format is not {FORMAT}; upgrade backread")
        committed = dataclass_from_json(Committed, document, "committed run")
        for file in committed.files:
            if not is_attempt(file, committed.run_id):
                raise ValueError(f"{file!r:.120} is not a file of the run")
        if committed.number != number or committed.rows < 0:
            raise ValueError("its number is another, or its rows are negative")
    except (ValueError, KeyError, TypeError) as error:
        raise LandingError(
            f"the landing folder {storage.folder}: {name} is damaged: {error}"
        ) from None
    return committed
