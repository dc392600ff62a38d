"""`commit`: writes the manifest of a run."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from backread._client.privacy import Choice
from backread.errors import LandingError
from backread.landing.attempt import Landed
from backread.landing.manifest import (
    MANIFESTS,
    Committed,
    as_text,
    manifest_name,
    refuse_other_choice,
    runs,
)
from backread.landing.run import is_attempt, load_plan, shard_folder
from backread.landing.storage import Folder, Storage
from backread.sharding.joining import join_shard_reports


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
