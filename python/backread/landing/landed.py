"""`land` reads a shard into a Parquet file, `commit` writes the manifest of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from backread._client.client import Client
from backread._client.listing import ArrowSource
from backread._client.privacy import Choice, Privacy, loaded
from backread._files.dataclass_json import JsonRecord
from backread.errors import LandingError
from backread.landing.manifest import (
    MANIFESTS,
    Committed,
    as_text,
    is_attempt,
    load_plan,
    manifest_name,
    refuse_other_choice,
    runs,
    shard_folder,
)
from backread.landing.storage import Folder, Storage, require
from backread.models import WalkReport
from backread.sharding import Shard
from backread.sharding.joining import join_shard_reports


@dataclass(frozen=True, slots=True, repr=False)
class Landed(JsonRecord):
    """A shard that was read to its end; the worker sends it to the process that commits.

    ``run_id`` is the plan's id. ``file`` is relative to the folder, ``rows`` and ``size`` (bytes)
    are those of the file, and ``report`` is that of the shard's listing. ``privacy`` is the choice
    of ``pseudonymise``, ``drop_bodies`` and ``redact`` as JSON, with the key's fingerprint; None
    without one. Pickles; use `to_json` for text-only transports.
    """

    run_id: str
    shard: int
    file: str
    rows: int
    size: int
    report: WalkReport
    privacy: str | None = None


def land(
    folder: Folder,
    shard: Shard[Any],
    *,
    client: Client | None = None,
    strict: bool = False,
    secret_file: str | os.PathLike[str] | None = None,
    on_progress: Callable[[int], object] | None = None,
    pseudonymise: str | os.PathLike[str] | None = None,
    drop_bodies: bool = False,
    redact: bool = False,
) -> Landed:
    """Reads the shard into a new file, in bounded memory.

    A killed worker leaves a file under a temporary name, which is never read; the next attempt
    removes it and writes another.

    Args:
        folder: The landing folder, a path or a URI that pyarrow supports.
        shard: A shard of the plan that `begin` wrote.
        client: As for `Shard.read`, like ``strict`` and ``secret_file``.
        strict: Raises `IncompleteError` if nothing was proved.
        secret_file: A file with the API secret.
        on_progress: Called with the number of rows written so far; an exception ends the reading.
        pseudonymise: As for `backread.Mirror`, like ``drop_bodies`` and ``redact``. All shards of a
            run, and all runs of a folder, must have the same choice.

    Returns:
        The new file and what the shard's listing proved, for `commit`.

    Raises:
        BackreadError: The errors of `Shard.read`.
        ConfigurationError: The key file is missing, too short, or not private.
        LandingError: The folder cannot be written, or has runs with another choice of
            ``pseudonymise``, ``drop_bodies`` and ``redact``.
    """
    privacy = loaded(Privacy.of(pseudonymise, drop_bodies, redact))
    choice = None if privacy is None else privacy.choice
    storage = Storage(folder)
    refuse_other_choice(storage, choice)
    parquet = require("pyarrow.parquet")
    readers = require("pyarrow").RecordBatchReader
    listing = shard.read(client, strict=strict, secret_file=secret_file)
    name = f"{shard_folder(shard.plan_id, shard.index)}/attempt={uuid4().hex}.parquet"
    storage.make_folder(shard_folder(shard.plan_id, shard.index))
    storage.clean(shard_folder(shard.plan_id, shard.index))

    def write(source: ArrowSource) -> int:
        rows = 0
        reader = readers.from_stream(source)
        with parquet.ParquetWriter(
            path, reader.schema, filesystem=storage.filesystem, compression="zstd"
        ) as writer:
            for batch in reader:
                writer.write_batch(batch)
                rows += batch.num_rows
                if on_progress is not None:
                    on_progress(rows)
        return rows

    with storage.named(name, "written"), storage.fresh(name) as path:
        rows = ArrowSource(listing, None if privacy is None else privacy.native).read(write)
    size = storage.size(name) or 0
    chosen = None if choice is None else choice.to_json()
    return Landed(shard.plan_id, shard.index, name, rows, size, listing.report, chosen)


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
    ordered = [chosen[shard.index] for shard in plan]
    while True:
        done = runs(folder)
        for earlier in done:
            # Its files may have lost the rows of a forgotten user since.
            if earlier.run_id == run_id:
                return earlier
        _check_files(storage, run_id, ordered)
        choice = _choice(run_id, ordered)
        refuse_other_choice(storage, choice)
        committed = Committed(
            number=1 + max((earlier.number for earlier in done), default=0),
            run_id=run_id,
            resource=plan.resource,
            files=tuple(each.file for each in ordered),
            rows=sum(each.rows for each in ordered),
            report=join_shard_reports(plan, [each.report for each in ordered]),
            committed_at=datetime.now(UTC),
            privacy=None if choice is None else choice.to_json(),
        )
        storage.make_folder(MANIFESTS)
        for name in (MANIFESTS, *(shard_folder(run_id, shard.index) for shard in plan)):
            storage.clean(name)
        # Otherwise another commit took the number; it may be one of the same run.
        if storage.create(manifest_name(committed.number), as_text(committed)):
            return committed


def _check_files(storage: Storage, run_id: str, landed: Iterable[Landed]) -> None:
    for each in landed:
        if not is_attempt(each.file, run_id) or storage.size(each.file) != each.size:
            raise LandingError(
                f"the run {run_id} cannot be committed: {each.file!r:.120} is missing, or has "
                f"another size, or is not one of its files; land shard {each.shard} again"
            )


def _choice(run_id: str, landed: Iterable[Landed]) -> Choice | None:
    """The choice of privacy that all shards share."""
    choices = {each.privacy for each in landed}
    if len(choices) > 1:
        raise LandingError(
            f"the run {run_id} cannot be committed: its shards were landed with different keys or "
            "choices of pseudonymise, drop_bodies and redact; land all of them with the same"
        )
    [choice] = choices
    return None if choice is None else Choice.from_json(choice)
