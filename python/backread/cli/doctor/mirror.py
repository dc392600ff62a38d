"""Checks a mirror: whether it can be read and synced, how old it is, and what it proves."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from backread._display.words import CLOCKS_DIFFER, ago, amount, duration, minute, size
from backread._files.paths import shown
from backread.cli.doctor.findings import Findings
from backread.cli.exits import MIRROR
from backread.cli.stderr import waiting
from backread.errors import MirrorError
from backread.mirror import Mirror
from backread.mirror.published.manifest import read_manifest
from backread.mirror.rights.purge import removal_is_pending
from backread.mirror.store.database import visible_damage
from backread.mirror.store.engine import DAMAGED_FILE, connect, named_errors, rows_of, scan
from backread.mirror.store.folder import CURRENT, DATABASE_NAME, PUBLISHED, lock_holder

PENDING = "a removal is not complete: files may still have rows of forgotten users, or expired ones"


def check_mirror(findings: Findings, folder: Path) -> None:
    """What the next sync or a reader would meet."""
    findings.begin("mirror")
    try:
        with named_errors(folder):
            _check_database(findings, folder)
            _check_files(findings, folder)
            _check_status(findings, folder)
    except MirrorError as error:
        _problem(findings, str(error))


def _problem(findings: Findings, text: str) -> None:
    what, _, advice = text.partition("; ")
    findings.problem(what, advice, MIRROR)


def _check_database(findings: Findings, folder: Path) -> None:
    database, unfinished = folder / DATABASE_NAME, Mirror(folder).unfinished_run
    if (holder := lock_holder(folder)) is not None:
        findings.ok(f"a sync is going on, by {holder}")
        return
    if database.exists():
        if (damage := visible_damage(folder)) is not None:
            _problem(findings, damage)
        if (free := shutil.disk_usage(folder).free) < database.stat().st_size:
            advice = "free some space: a sync may write every row once more"
            findings.warning(f"its disk has {size(free)} free", advice)
    elif (folder / PUBLISHED / CURRENT).exists():
        text = f"its {DATABASE_NAME} is missing: it can be read, and not synced"
        findings.problem(text, "sync into a new folder", MIRROR)
    if removal_is_pending(folder):
        findings.problem(PENDING, "run `backread sync` or `backread forget` again", MIRROR)
    if unfinished is not None:
        error = "" if unfinished.error is None else f": {unfinished.error}"
        findings.warning(
            f"run {unfinished.run_id} was stopped {duration(unfinished.age)} ago, before its end, "
            f"while {unfinished.progress.phase}{error}",
            "the next sync resumes it",
        )


def _check_files(findings: Findings, folder: Path) -> None:
    """Reads the published files to their ends: each sync links one that is damaged once more."""
    manifest = read_manifest(folder)
    files = [] if manifest is None else [*chain.from_iterable(manifest.paths(folder).values())]
    with waiting("reading the published files"), connect(None) as connection:
        for file in files:
            try:
                with named_errors(folder):
                    # The hash needs every value.
                    rows_of(connection, f"SELECT bit_xor(hash(COLUMNS(*))) FROM {scan([file])}")
            except MirrorError as error:
                if DAMAGED_FILE not in str(error):
                    raise
                advice = f"delete it, and sync again to publish it: backread sync {shown(folder)}"
                findings.problem(f"{shown(file)} is damaged", advice, MIRROR)
    if files:
        findings.ok(f"{amount(len(files), 'published file')} read to the end")


def _check_status(findings: Findings, folder: Path) -> None:
    status = Mirror(folder).status()
    age = (datetime.now(UTC) - status.as_of).total_seconds()
    rows = f"{amount(status.users, 'user')} and {amount(status.messages, 'message')}"
    text = f"it has {rows} as of {minute(status.as_of)} UTC, {ago(age)}"
    if age < -CLOCKS_DIFFER:
        findings.problem(text, "set this machine's clock, or sync into a new folder", MIRROR)
    else:
        findings.ok(text)
    if status.ok:
        findings.ok("every list is proved")
    for line in status.lines:
        if line.state != "ok":
            findings.warning(line.text, line.advice)
