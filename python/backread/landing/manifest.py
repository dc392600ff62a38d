"""The manifests: each commits one run by naming one file per shard."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from backread._client.privacy import Choice
from backread._files.dataclass_json import dataclass_from_json, to_json_value
from backread._files.json import parse_json
from backread.errors import LandingError
from backread.landing.attempt import Landed, is_attempt
from backread.landing.choice import (
    MANIFESTS,
    manifest_name,
    manifest_numbers,
    refuse_other_choice,
)
from backread.landing.run import load_plan, shard_folder
from backread.landing.storage import Folder, Storage, check_kind, require
from backread.models import WalkReport
from backread.sharding.joining import join_shard_reports
from backread.sharding.shard import Resource

__all__ = ["Committed", "commit", "dataset", "runs", "write_again"]

FORMAT = 1


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


def commit(folder: Folder, run_id: str, landed: Iterable[Landed]) -> Committed:
    """Commits the run: writes the manifest that names one file per shard.

    Committing a run again changes nothing and returns the earlier commit. Concurrent commits in a
    local folder get different numbers; in an object store, commit from one process at a time.

    Args:
        folder: The landing folder.
        run_id: The result of `begin`.
        landed: The results of `land`; if a shard was landed more than once, its first is used.

    Returns:
        The committed run.

    Raises:
        LandingError: A shard or a file is missing, a file's size differs, shards were landed with
            different choices of privacy or with another one than the folder's runs, or the folder
            cannot be read or written.
    """
    storage = Storage(folder)
    plan = load_plan(folder, run_id)
    chosen: dict[int, Landed] = {}
    for each in landed:
        check_kind("an item of landed", each, Landed, "the result of land()")
        if each.run_id != run_id:
            raise LandingError(f"{each.file} was landed for the run {each.run_id}, not {run_id}")
        chosen.setdefault(each.shard, each)
    missing = [shard.index for shard in plan if shard.index not in chosen]
    if missing or len(chosen) > len(plan):
        some = ", ".join(map(str, missing[:10])) or f"none, but there are only {len(plan)}"
        raise LandingError(
            f"the run {run_id} cannot be committed: of its {len(plan)} shards, these were not "
            f"landed: {some}; land them, then commit"
        )
    # The files of a committed run may have lost the rows of a forgotten user since.
    done = runs(folder)
    if (earlier := _of_run(done, run_id)) is not None:
        return earlier
    ordered = [chosen[shard.index] for shard in plan]
    for each in ordered:
        if not is_attempt(each.file, run_id):
            raise LandingError(
                f"the run {run_id} cannot be committed: {each.file!r:.120} is not one of its "
                "files; pass the results of land()"
            )
        if storage.size(each.file) != each.size:
            raise LandingError(
                f"the run {run_id} cannot be committed: {each.file} is missing or has another "
                f"size; land shard {each.shard} again"
            )
    choice = _choice(run_id, ordered)
    report = join_shard_reports(plan, [each.report for each in ordered])
    storage.make_folder(MANIFESTS)
    for name in (MANIFESTS, *(shard_folder(run_id, shard.index) for shard in plan)):
        storage.clean(name)
    while True:
        refuse_other_choice(storage, choice)
        committed = Committed(
            number=1 + max((earlier.number for earlier in done), default=0),
            run_id=run_id,
            resource=plan.resource,
            files=tuple(each.file for each in ordered),
            rows=sum(each.rows for each in ordered),
            report=report,
            committed_at=datetime.now(UTC),
            privacy=None if choice is None else choice.to_json(),
        )
        if storage.create(manifest_name(committed.number), _written(committed)):
            return committed
        # Another commit took the number; it may be one of the same run.
        done = runs(folder)
        if (earlier := _of_run(done, run_id)) is not None:
            return earlier


def runs(folder: Folder, *, after: int = 0) -> list[Committed]:
    """The committed runs in commit order; none if there is no such folder.

    Args:
        folder: The landing folder.
        after: Return only runs with a greater number; the other manifests are not read.

    Raises:
        LandingError: A manifest is damaged.
    """
    storage = Storage(folder)
    return [_read(storage, number) for number in manifest_numbers(storage) if number > after]


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
    check_kind("run", run, Committed, "the result of commit() or an item of runs()")
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


def write_again(storage: Storage, run: Committed) -> None:
    """Replaces the manifest of a run from whose files rows were removed."""
    storage.write(manifest_name(run.number), _written(run))


def _of_run(committed: Iterable[Committed], run_id: str) -> Committed | None:
    return next((each for each in committed if each.run_id == run_id), None)


def _choice(run_id: str, landed: Iterable[Landed]) -> Choice | None:
    """The choice of privacy that all shards share."""
    choices = {each.privacy for each in landed}
    if len(choices) > 1:
        raise LandingError(
            f"the run {run_id} cannot be committed: its shards were landed with different keys or "
            "choices of pseudonymise, drop_bodies and redact; land all of them with the same"
        )
    [choice] = choices
    try:
        return None if choice is None else Choice.from_json(choice)
    except ValueError:
        raise LandingError(
            f"the run {run_id} cannot be committed: the privacy of its shards is damaged; pass the "
            "results of land()"
        ) from None


def _written(committed: Committed) -> str:
    return json.dumps({"format": FORMAT, **to_json_value(committed)}, indent=1)


def _read(storage: Storage, number: int) -> Committed:
    name = manifest_name(number)
    try:
        document = parse_json(storage.read(name) or b"")
        written = document["format"]
        if written == FORMAT:
            committed = dataclass_from_json(Committed, document, "committed run")
            for file in committed.files:
                if not is_attempt(file, committed.run_id):
                    raise ValueError(f"{file!r:.120} is not a file of the run")
            if committed.number != number or committed.rows < 0:
                raise ValueError("its number is another, or its rows are negative")
            return committed
    except (ValueError, KeyError, TypeError) as error:
        raise LandingError(
            f"the landing folder {storage.folder}: {name} is damaged: {error}"
        ) from None
    raise LandingError(
        f"the landing folder {storage.folder}: {name} has format {written}, this backread reads "
        f"{FORMAT}; upgrade backread"
    )
