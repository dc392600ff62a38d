"""The manifests: each commits one run by naming one file per shard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, get_args

from backread._files.json import parse_json
from backread.errors import LandingError
from backread.landing.attempt import Landed, is_attempt
from backread.landing.run import load_plan, shard_folder
from backread.landing.storage import Folder, Storage, check_kind, require
from backread.models import WalkReport
from backread.sharding import join_reports
from backread.sharding.shard import Resource

__all__ = ["Committed", "commit", "dataset", "runs"]

FORMAT = 1
MANIFESTS = "manifests"
MANIFEST = re.compile(r"(\d{8})\.json", re.ASCII)


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed run. Its files contain each row once, and never change.

    ``number`` counts the commits of the folder from 1; ``files`` are relative to the folder, in the
    order of the shards; ``rows`` is their total; ``report`` says what the shards prove together;
    ``committed_at`` is UTC.
    """

    number: int
    run_id: str
    resource: Resource
    files: tuple[str, ...]
    rows: int
    report: WalkReport
    committed_at: datetime


def commit(folder: Folder, run_id: str, landed: Iterable[Landed]) -> Committed:
    """Commits the run: writes the manifest that names one file per shard.

    If a shard was landed more than once, the first in ``landed`` is used. Committing a run again
    changes nothing and returns the earlier commit. Concurrent commits in a local folder get
    different numbers; in an object store, commit from one process at a time.

    Raises `LandingError` if a shard or a file is missing, a file's size differs, or the folder
    cannot be read or written.
    """
    storage = Storage(folder)
    plan = load_plan(folder, run_id)
    chosen: dict[int, Landed] = {}
    for each in landed:
        check_kind("an item of landed", each, Landed, "what land() gives")
        if each.run_id != run_id:
            raise LandingError(f"{each.file} was landed for the run {each.run_id}, not {run_id}")
        chosen.setdefault(each.shard, each)
    missing = [shard.index for shard in plan if shard.index not in chosen]
    if missing or len(chosen) > len(plan):
        some = ", ".join(map(str, missing[:10])) or f"none, but there are only {len(plan)}"
        raise LandingError(
            f"the run {run_id} cannot be committed: of its {len(plan)} shards these were not "
            f"landed: {some}; land them and commit then"
        )
    ordered = [chosen[shard.index] for shard in plan]
    for each in ordered:
        if not is_attempt(each.file, run_id):
            raise LandingError(
                f"the run {run_id} cannot be committed: {each.file!r:.120} is no file of it; give "
                "what land() gave"
            )
        if storage.size(each.file) != each.size:
            raise LandingError(
                f"the run {run_id} cannot be committed: {each.file} is not there as it was landed; "
                f"land shard {each.shard} again"
            )
    report = join_reports(plan, [each.report for each in ordered])
    storage.make_folder(MANIFESTS)
    for name in (MANIFESTS, *(shard_folder(run_id, shard.index) for shard in plan)):
        storage.clean(name)
    while True:
        done = runs(folder)
        for earlier in done:
            if earlier.run_id == run_id:
                return earlier
        committed = Committed(
            number=1 + max((earlier.number for earlier in done), default=0),
            run_id=run_id,
            resource=plan.resource,
            files=tuple(each.file for each in ordered),
            rows=sum(each.rows for each in ordered),
            report=report,
            committed_at=datetime.now(UTC),
        )
        if storage.create(f"{MANIFESTS}/{committed.number:08}.json", _written(committed)):
            return committed


def runs(folder: Folder, *, after: int = 0) -> list[Committed]:
    """The committed runs in commit order; none if there is no such folder.

    With ``after``, only those with a greater number; the other manifests are not read.
    """
    storage = Storage(folder)
    found = [MANIFEST.fullmatch(name) for name in storage.names(MANIFESTS)]
    newer = [name for name in found if name is not None and int(name[1]) > after]
    return [_read(storage, int(name[1])) for name in newer]


def dataset(folder: Folder, run: Committed) -> Any:
    """The rows of a committed run as a ``pyarrow.dataset.Dataset``, to read, filter or batch.

    Raises `LandingError` if a file of the run is missing.
    """
    check_kind("run", run, Committed, "what commit() or runs() gives")
    storage = Storage(folder)
    for file in run.files:
        if storage.size(file) is None:
            raise LandingError(
                f"the landing folder {storage.folder}: {file} of run {run.number} is not there; is "
                "this the folder that it was landed in, and do all machines see it?"
            )
    return require("pyarrow.dataset").dataset(
        [storage.path(file) for file in run.files], filesystem=storage.filesystem, format="parquet"
    )


def _written(committed: Committed) -> str:
    document = {
        "format": FORMAT,
        "number": committed.number,
        "run_id": committed.run_id,
        "resource": committed.resource,
        "rows": committed.rows,
        "committed_at": committed.committed_at.isoformat(),
        "files": committed.files,
        "report": json.loads(committed.report.to_json()),
    }
    return json.dumps(document, indent=1)


def _read(storage: Storage, number: int) -> Committed:
    name = f"{MANIFESTS}/{number:08}.json"
    try:
        document = parse_json(storage.read(name) or b"")
        written = document["format"]
        if written == FORMAT:
            run_id, files = document["run_id"], tuple(document["files"])
            for file in files:
                if not is_attempt(file, run_id):
                    raise ValueError(f"{file!r:.120} is no file of the run")
            resource, rows = document["resource"], document["rows"]
            if document["number"] != number or resource not in get_args(Resource):
                raise ValueError("its number or its resource is another")
            if type(rows) is not int or rows < 0:
                raise ValueError("its rows are no number")
            return Committed(
                number=number,
                run_id=run_id,
                resource=resource,
                files=files,
                rows=rows,
                report=WalkReport.from_json(json.dumps(document["report"])),
                committed_at=datetime.fromisoformat(document["committed_at"]),
            )
    except (ValueError, KeyError, TypeError) as error:
        raise LandingError(
            f"the landing folder {storage.folder}: {name} is damaged: {error}"
        ) from None
    raise LandingError(
        f"the landing folder {storage.folder}: {name} has format {written}, this backread reads "
        f"{FORMAT}; use the newer one"
    )
