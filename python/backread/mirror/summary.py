"""What is known of a mirror at a glance, for its repr and its card in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from backread._display.html import Html, card, certificate_badge, safe
from backread._display.words import ago, amount, counts, line, minute, moment, size
from backread._files.paths import shown
from backread.errors import MirrorError
from backread.mirror.published.manifest import Manifest, read_manifest
from backread.mirror.published.snapshot_reader import (
    OpenSnapshot,
    SnapshotReader,
    nothing_published,
)
from backread.mirror.published.views import LAST_READ, LISTS
from backread.mirror.store.engine import from_microseconds
from backread.mirror.store.schema import ALL_USERS
from backread.mirror.sync.progress import UnfinishedRun, read_unfinished_run

COUNTED = ("users", "messages")
SHOWN_TABLES = ("users", "messages", "rejects", "runs")

GOING_ON = 60.0
"""Seconds after which a run that tells nothing new is taken for a killed one."""

LAST_RUN = f"""
SELECT run_id, mode, state, lists_left, epoch_us(as_of),
    coalesce(certificate, 'uncertified'), certificate_reason
FROM ({LAST_READ}) WHERE {ALL_USERS}
"""

SOME_USER = "SELECT user_id FROM messages WHERE deleted_at IS NULL LIMIT 1"


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest run over all users that read something, and what it proved of their list."""

    run_id: int
    mode: str
    state: str
    lists_left: int | None
    at: datetime
    certificate: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class MirrorSummary:
    """``problem`` says why nothing can be read, ``is_empty`` that nothing was published.

    ``rows`` and ``bytes`` are those of the published tables, deleted rows included; both are empty
    if nothing is published. ``lists`` counts message lists by their certificate, or as
    ``never read``. ``user_id`` is a
    user with messages.
    """

    folder: Path
    problem: str | None = None
    is_empty: bool = False
    rows: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    published_at: datetime | None = None
    run: LastRun | None = None
    lists: dict[str, int] = field(default_factory=dict)
    user_id: int | None = None
    unfinished: UnfinishedRun | None = None

    @property
    def has_no_rows(self) -> bool:
        """Whether what is published has neither users nor messages."""
        return bool(self.rows) and not any(self.rows[name] for name in COUNTED)

    def to_html(self) -> str:
        """The folder, its state, the rows of its tables, and calls to try."""
        rows = [(name, html) for name, html, _ in self._rows()]
        return card("Mirror", [("folder", str(self.folder)), *rows])

    def __str__(self) -> str:
        """The same as lines for a terminal."""
        rows = [f"  {name}: {line(text)}" for name, _, text in self._rows()]
        return "\n".join([f"Mirror in {line(str(self.folder))}", *rows])

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        """The name of each row, and its value for a notebook and for a terminal."""
        state = self.problem or self._as_of()
        name = "data as of"
        if self.problem is not None:
            name = "state" if self.is_empty else "cannot be read"
        yield name, state, state
        if self.unfinished is not None:
            going_on = _going_on(self.unfinished)
            yield "sync", going_on, going_on
        if (run := self.run) is not None:
            proof = run.certificate if run.reason is None else f"{run.certificate}: {run.reason}"
            yield "users proved", certificate_badge(run.certificate, run.reason), proof
            lists = counts(self.lists) or "none"
            shown_lists = safe(lists)
            if "uncertified" in self.lists:
                shown_lists = Html(f"{certificate_badge('uncertified')} {shown_lists}")
            yield "message lists proved", shown_lists, lists
        for table in SHOWN_TABLES:
            if table in self.rows:
                held = f"{amount(self.rows[table], 'row')}, {size(self.bytes[table])}"
                yield table, held, held
        if calls := self._calls():
            codes = Html(" ".join(f"<code>{safe(each)}</code>" for each in calls))
            yield "try next", codes, ", ".join(calls)

    def _as_of(self) -> str:
        run = self.run
        if run is not None:
            left = "" if run.lists_left is None else f", {amount(run.lists_left, 'list')} left"
            state = f"{run.state}{left}" if run.state != "finished" else run.mode
            return f"{_time(run.at)} (run {run.run_id}, {state})"
        if self.has_no_rows:
            return "no run has read anything yet"
        # Only given users were read so far.
        return "no run over all users" if self.published_at is None else _time(self.published_at)

    def _calls(self) -> list[str]:
        if self.is_empty:
            return ["mirror.sync(Client(), progress=True)"]
        if self.problem is not None:
            # What mends a damaged mirror is in its error.
            return []
        calls = ["mirror.tables", "mirror.table('messages').to_polars()"]
        calls.append("mirror.search('invoice')")
        if self.user_id is not None:
            calls.append(f"mirror.conversation({self.user_id})")
        return [*calls, "mirror.sql('FROM conversations LIMIT 10')"]


def _time(time: datetime) -> str:
    age = (datetime.now(UTC) - time).total_seconds()
    return f"{moment(time.replace(microsecond=0))}, {ago(age)}"


def _going_on(run: UnfinishedRun) -> str:
    done, total = run.progress.lists, run.progress.lists_total
    lists = "" if total is None else f", {done:,} of {total:,} message lists read"
    if run.age < GOING_ON:
        return f"run {run.run_id} is going on{lists}"
    return f"run {run.run_id} stopped {ago(run.age)}{lists}; the next sync continues it"


def mirror_title(folder: Path) -> str:
    """The repr of a mirror: its rows and when they were published; reads only the manifest."""
    name = f"Mirror {shown(folder)!r}"
    try:
        manifest = read_manifest(folder)
    except (MirrorError, OSError):
        return f"<{name}: cannot be read>"
    if manifest is None:
        return f"<{name}: nothing published>"
    rows = ", ".join(amount(_rows(manifest)[each], each.removesuffix("s")) for each in COUNTED)
    return f"<{name}: {rows}, published {minute(manifest.published_at)} UTC>"


def summarize(folder: Path, reader: SnapshotReader) -> MirrorSummary:
    """What can be found out about the folder; a problem is in the summary, and not raised."""
    known = MirrorSummary(folder, unfinished=read_unfinished_run(folder))
    try:
        manifest = read_manifest(folder)
        if manifest is None:
            return replace(known, is_empty=True, problem=str(nothing_published(folder)))
        snapshot = reader.snapshot()
        return replace(
            known,
            run=read_last_run(snapshot),
            lists=dict(snapshot.rows(LISTS)),
            user_id=next((each for (each,) in snapshot.rows(SOME_USER)), None),
            rows=_rows(manifest),
            bytes={name: sum(each.bytes for each in of) for name, of in manifest.tables.items()},
            published_at=manifest.published_at,
        )
    except (MirrorError, OSError) as error:
        return replace(known, problem=str(error))


def read_last_run(snapshot: OpenSnapshot) -> LastRun | None:
    """The newest published run over all users that read something."""
    last = snapshot.rows(LAST_RUN)
    if not last:
        return None
    [(run_id, mode, state, lists_left, at, certificate, reason)] = last
    return LastRun(run_id, mode, state, lists_left, from_microseconds(int(at)), certificate, reason)


def _rows(manifest: Manifest) -> dict[str, int]:
    return {name: sum(each.rows for each in of) for name, of in manifest.tables.items()}
