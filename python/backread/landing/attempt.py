"""`land`: reads one shard into a Parquet file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from backread._client.client import Client
from backread._client.listing import ArrowSource
from backread._client.privacy import Privacy, loaded
from backread._files.dataclass_json import JsonRecord
from backread.landing.manifest import refuse_other_choice
from backread.landing.run import shard_folder
from backread.landing.storage import Folder, Storage, require
from backread.models import WalkReport
from backread.sharding import Shard


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
