"""Checks a mirror: whether it can be read, how old it is, and what it proves."""

from __future__ import annotations

import shutil
import stat
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backread._display.words import CLOCKS_DIFFER, amount, counts, duration, moment, size
from backread._files.paths import shown
from backread.cli.doctor.findings import Findings
from backread.cli.exits import MIRROR
from backread.cli.waiting import waiting
from backread.errors import MirrorError
from backread.mirror.published.views import HAS_READ, LAST_READ
from backread.mirror.store.schema import ALL_USERS

if TYPE_CHECKING:
    from backread.mirror import Mirror

__all__ = ["check_mirror"]

LAST_RUN = f"""
SELECT run_id, mode, state, as_of, certificate, certificate_reason, lists_by_certificate,
    (SELECT count(*) FROM users) AS users, (SELECT count(*) FROM messages) AS messages,
    (SELECT count(*) FROM lists WHERE certificate = 'uncertified' AND kind <> 'partial')
        AS uncertified,
    (SELECT count(*) FROM rejects) AS rejects,
    (SELECT max(run_id) FROM runs WHERE NOT {HAS_READ} AND {ALL_USERS}) AS read_nothing
FROM ({LAST_READ})
"""


def check_mirror(findings: Findings, folder: Path) -> None:
    """What a reader or the next sync would meet."""
    findings.begin("mirror")
    try:
        _check_folder(findings, folder)
    except OSError as error:
        findings.problem(
            f"{shown(folder)} cannot be read: {error.strerror}",
            "change its permissions, or run as the user whose mirror it is",
            MIRROR,
        )


def _check_folder(findings: Findings, folder: Path) -> None:
    from backread.mirror import Mirror
    from backread.mirror.rights.purge import removal_is_pending
    from backread.mirror.store.database import visible_damage
    from backread.mirror.store.engine import named_errors
    from backread.mirror.store.folder import DATABASE_NAME, LOCK_NAME
    from backread.mirror.store.lock import lock_holder

    if not folder.is_dir():
        findings.problem(
            f"{shown(folder)} is not a folder",
            f"name the folder of a mirror, or make one: backread sync {shown(folder)}",
            MIRROR,
        )
        return
    mirror = Mirror(folder)
    if not _check_files(findings, folder):
        return
    try:
        relation = mirror.sql(LAST_RUN)
        with named_errors(folder):
            rows = relation.fetchall()
    except MirrorError as error:
        findings.problem(str(error), "", MIRROR)
        if not (folder / LOCK_NAME).exists():
            return
    else:
        for row in rows:
            _check_run(findings, dict(zip(relation.columns, row, strict=True)))
        if not rows:
            findings.warning("no run has read anything yet", "sync again")
        if not (folder / DATABASE_NAME).exists():
            findings.problem(
                f"its {DATABASE_NAME} is missing: it can be read, and not synced",
                "sync into a new folder",
                MIRROR,
            )
    holder = lock_holder(folder)
    if holder is None and (folder / DATABASE_NAME).exists():
        damage = visible_damage(folder)
        if damage is not None:
            text, _, advice = damage.partition("; ")
            findings.problem(text, advice, MIRROR)
    if holder is None and removal_is_pending(folder):
        findings.problem(
            "a removal is not complete: files may still have rows of forgotten users, or expired "
            "ones",
            "run `backread sync` or `backread forget` again",
            MIRROR,
        )
    _check_unfinished(findings, mirror, holder)
    _check_space(findings, folder)


def _check_files(findings: Findings, folder: Path) -> bool:
    """Reads the published files to their ends: each sync links one that is damaged once more."""
    from backread.mirror.published.manifest import read_manifest
    from backread.mirror.store.engine import DAMAGED_FILE, connect, file_list, named_errors, rows_of

    try:
        manifest = read_manifest(folder)
        with named_errors(folder):
            connection = connect(None)
    except MirrorError:
        # Named by who reads it next.
        return True
    files = [] if manifest is None else [*chain.from_iterable(manifest.paths(folder).values())]
    read, damaged = 0, []
    with waiting("reading the published files"):
        for file in files:
            # The hash needs every value.
            query = f"SELECT bit_xor(hash(COLUMNS(*))) FROM read_parquet({file_list([file])})"
            try:
                with named_errors(folder):
                    rows_of(connection, query)
                read += 1
            except MirrorError as error:
                # Anything else is named by who reads it next, unless a sync has replaced the file.
                if DAMAGED_FILE in str(error):
                    damaged.append(file)
    connection.close()
    for file in damaged:
        findings.problem(
            f"{shown(file)} is damaged",
            f"delete it, and sync again to publish it anew: backread sync {shown(folder)}",
            MIRROR,
        )
    if read:
        findings.ok(f"{amount(read, 'published file')} read to the end")
    return not damaged


def _check_run(findings: Findings, run: dict[str, Any]) -> None:
    findings.ok(
        f"it can be read: {amount(run['users'], 'user')} and {amount(run['messages'], 'message')}"
    )
    in_vain = (run["read_nothing"] or 0) > run["run_id"]
    if run["as_of"] is not None:
        seconds = (datetime.now(UTC) - run["as_of"]).total_seconds()
        age = "less than a minute" if seconds < 60 else duration(seconds)
        ended = (
            f"run {run['run_id']} ({run['mode']}, {run['state']}) "
            f"{'ended' if run['state'] == 'finished' else 'read something last'} "
            f"{moment(run['as_of'].replace(microsecond=0))}"
        )
        if seconds < -CLOCKS_DIFFER:
            findings.problem(
                f"its data has no age: {ended}, which is in the future",
                "a clock was wrong, now or in an earlier run; then sync into a new folder",
                MIRROR,
            )
        elif in_vain:
            findings.warning(
                f"its data is {age} old: {ended}, and run {run['read_nothing']} read nothing",
                "the next sync continues it",
            )
        else:
            findings.ok(f"its data is {age} old: {ended}")
    if run["state"] == "partial":
        findings.warning("the last run was partial", "the next sync continues it")
    reason = f": {run['certificate_reason']}" if run["certificate_reason"] else ""
    if run["certificate"] == "uncertified":
        findings.warning(
            f"the list of users is not proved to be complete{reason}",
            "sync again, when it is quiet; a row that is named is the service's to mend",
        )
    else:
        findings.ok(f"the certificate of the list of users is {run['certificate']}{reason}")
    if run["uncertified"]:
        findings.warning(
            f"{amount(run['uncertified'], 'message list')} not proved to be complete",
            "the table lists says why; the next sync tries again",
        )
    elif run["lists_by_certificate"]:
        findings.ok(f"message lists read by it: {counts(run['lists_by_certificate'])}")
    if run["rejects"]:
        findings.warning(
            f"{amount(run['rejects'], 'record')} did not fit into the tables",
            "the table rejects has each with the reason",
        )


def _check_unfinished(findings: Findings, mirror: Mirror, holder: str | None) -> None:
    unfinished = mirror.unfinished_run
    if holder is not None:
        findings.ok(f"a sync is going on, by {holder}")
    elif unfinished is not None:
        phase, error = unfinished.progress.phase, unfinished.error
        stopped = "" if error is None else f", while {phase}: {error}"
        findings.warning(
            f"run {unfinished.run_id} was stopped {duration(unfinished.age)} ago, before its end"
            f"{stopped}",
            "the next sync resumes it",
        )
    else:
        findings.ok("no sync is going on, and none is unfinished")


def _check_space(findings: Findings, folder: Path) -> None:
    # Snapshots share the files that did not change.
    sizes: dict[tuple[int, int], int] = {}
    for each in folder.rglob("*"):
        # A sync may replace files meanwhile.
        with suppress(OSError):
            found = each.lstat()
            if stat.S_ISREG(found.st_mode):
                sizes[found.st_dev, found.st_ino] = found.st_size
    used = sum(sizes.values())
    free = shutil.disk_usage(folder).free
    text = f"it takes {size(used)}, and its disk has {size(free)} free"
    if free < used:
        findings.warning(
            text, "free some space: a sync may write every row once more before it removes the old"
        )
    else:
        findings.ok(text)
