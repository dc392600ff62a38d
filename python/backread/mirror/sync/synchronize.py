"""One sync: commits batches from the client, finishes the run, publishes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from backread._client.privacy import why_refused
from backread._files.access import RefusedFileError, make_folder
from backread._files.paths import shown
from backread._interruptible import run_interruptibly
from backread.errors import DeadlineExceededError, MirrorError
from backread.mirror.published.publish import publish, published_behind
from backread.mirror.rights.purge import (
    forget_again,
    open_store,
    removal_is_pending,
    remove_expired,
)
from backread.mirror.store.engine import check_path, load_duckdb, named_errors
from backread.mirror.store.folder import refuse_demo, refuse_foreign, writer_lock
from backread.mirror.store.schema import PRIVACY, PROFILE
from backread.mirror.store.store import Service, Store, refuse_other_service, service_of
from backread.mirror.sync.commit import commit
from backread.mirror.sync.deletions import rows_to_ask
from backread.mirror.sync.finish_run import end_partial, figures_before, finish, of_this_sync
from backread.mirror.sync.known import StoredRows, given_users, known_to, users_to_ask, verified
from backread.mirror.sync.progress import (
    Meter,
    UnfinishedRun,
    forget_unfinished_run,
    write_unfinished_run,
)
from backread.mirror.sync.report import Mode, Phase, SyncProgress, SyncReport
from backread.mirror.sync.runs import (
    Run,
    Spent,
    begin_run,
    begin_users_run,
    error_text,
    note_verified,
    record_error,
    set_in_run,
)

if TYPE_CHECKING:
    from backread._backread import SyncBatch, SyncPace, SyncRun
    from backread._client.client import Client
    from backread._client.privacy import LoadedPrivacy

# DuckDB treats a backslash as a slash; only on Windows it really is a separator.
UNUSABLE = "?" if os.name == "nt" else "?\\"

SECONDS_BETWEEN_FILES = 2.0
"""How often other processes are told how far the run has come."""

FEW_USERS = 5_000
"""A batch with at most this many users, and no messages, is merged in one thread."""

SUSPECTS = 16
"""How many users are fetched by id at once, to see whether their hints have moved by now."""

OnProgress = Callable[[SyncProgress], object]


@dataclass(frozen=True, slots=True)
class Options:
    """How to sync, see `Mirror.sync`.

    Times are in seconds, ``memory_limit`` is in bytes, ``profile`` is JSON.
    """

    mode: Mode = "incremental"
    max_staleness: float | None = None
    on_progress: OnProgress | None = None
    moved: bool = False
    profile: str | None = None
    max_requests: int | None = None
    max_seconds: float | None = None
    users: Sequence[int] | None = None
    publish: bool = True
    memory_limit: int | None = None
    retention: float | None = None
    privacy: LoadedPrivacy | None = None
    demo: bool = False
    """Only `backread demo` syncs into the folder that it marked."""


def synchronize(folder: Path, client: Client, options: Options) -> SyncReport:
    """Resumes or starts a run, reads it to its end, publishes; see `Mirror.sync`."""
    load_duckdb()
    if not options.demo:
        refuse_demo(folder)
    _make_folder(folder)
    with ExitStack() as held:
        with named_errors(folder):
            refuse_foreign(folder)
            held.enter_context(writer_lock(folder))
        report = _sync(folder, client, options)
        if removal_is_pending(folder):
            with named_errors(folder), open_store(folder, options.memory_limit):
                report = replace(report, published=True)
        return report


def _sync(folder: Path, client: Client, options: Options) -> SyncReport:
    with ExitStack() as held:
        with named_errors(folder):
            choice = None if options.privacy is None else options.privacy.choice

            def prepare(store: Store) -> None:
                service = service_of(client, store.meta("mirror_id"))
                refuse_other_service(folder, store.service(), service, options.moved)
                # Before the first rows, nothing is stored that another choice would have changed.
                if store.service() is not None:
                    why = why_refused(store.meta(PRIVACY), choice, "sync into a new folder")
                    if why is not None:
                        raise MirrorError(f"the mirror in {folder} {why}")
                forget_again(store)

            store = held.enter_context(open_store(folder, options.memory_limit, prepare))
            store.privacy = None if choice is None else choice.to_json()
            killed = options.publish and _publish_earlier(store)
            if options.profile is not None:
                with store.transaction():
                    store.set_meta(PROFILE, options.profile)
            if options.users is not None:
                run = begin_users_run(store, moved=options.moved)
            else:
                run = begin_run(
                    store,
                    options.mode,
                    killed=killed,
                    moved=options.moved,
                    max_staleness=options.max_staleness,
                )
        sync = _Sync(store, run, options)
        report = sync.run(client)
        if options.retention is None:
            return report
        with named_errors(folder):
            problem = remove_expired(store, options.retention, sync.service_date)
        return replace(report, retention_problem=problem)


def _publish_earlier(store: Store) -> bool:
    """Publishes what an earlier sync ended or, in its first run, committed, and was killed.

    Returns whether it was a first run that was killed.
    """
    killed = store.never_finished()
    if killed:
        first = store.rows(
            "SELECT run_id, mode, error FROM runs WHERE committed_at IS NOT NULL LIMIT 1"
        )
        if not first:
            return False
        [(run_id, mode, error)] = first
        run = Run(run_id, mode, resumed=True, alone=False)
        end_partial(store, run, Spent(0, 0.0, 0.0), stopped_by=error)
    if published_behind(store):
        publish(store)
    return killed


def _make_folder(folder: Path) -> None:
    check_path(folder, UNUSABLE)
    try:
        make_folder(folder)
    except RefusedFileError as error:
        raise MirrorError(f"the mirror in {folder}: {error}") from None
    except OSError as error:
        if folder.is_symlink() and not folder.exists():
            raise MirrorError(
                f"{folder} is a symbolic link to a folder that does not exist ("
                f"{shown(folder.readlink())}); create that, or choose another path"
            ) from None
        if folder.exists() and not folder.is_dir():
            raise MirrorError(
                f"{folder} is a file, but a mirror is a folder; choose another path"
            ) from None
        raise MirrorError(
            f"cannot create the folder {folder}: {error}; choose another or change permissions"
        ) from error


def _merges_many(batch: SyncBatch) -> bool:
    """Whether merging a batch takes long enough for more threads to help."""
    users = 0 if batch.users is None else batch.users.num_rows
    return batch.messages is not None or users > FEW_USERS


class _Sync:
    """One run in one call; a full run has a second phase, which fetches missing rows by id."""

    def __init__(self, store: Store, run: Run, options: Options) -> None:
        self._store = store
        self._run = run
        self._options = options
        with named_errors(store.folder):
            self._before = figures_before(store, run)
        self._started_at = datetime.now(UTC) if run.resumed else run.started_at
        self._meter = Meter()
        # The progress of each reading, the newest last.
        self._progress: dict[SyncRun, SyncPace] = {}
        self._lists: SyncPace | None = None
        self._has_missed = self._before["audit_misses"] > 0
        self._trust_ended = False
        self._phase: Phase = "reading"
        self._stopped_by: BaseException | None = None
        self.service_date: datetime | None = None
        self._requests = 0
        self._outage_seconds = 0.0
        self._repaired_text = 0
        self._began = self._since = monotonic()
        self._told = self._began - SECONDS_BETWEEN_FILES

    def run(self, client: Client) -> SyncReport:
        service = service_of(client, self._store.meta("mirror_id"))
        has_other_secret = service.has_other_secret(self._store.service())
        try:
            self._client = client
            ended_early = self._read(self._reading(), service, "reading")
            if self._trust_ended:
                # The lists it would have skipped are read, too.
                ended_early = self._read(self._reading(), service, "reading")
            if self._run.mode == "full" and not ended_early:
                ended_early = self._ask(service)
            self._tell("finishing")
            report = self._end(ended_early)
        except BaseException as error:
            # The run stays as committed; a failure to record the error must not replace it.
            with suppress(Exception):
                spent = self._spent()
                record_error(self._store, self._run, error, spent)
                self._count(spent)
            self._tell_others(self._progress_of(self._phase), error_text(error))
            if isinstance(error, DeadlineExceededError):
                self._stopped_by = error
                with suppress(MirrorError):
                    self._end(True)
                    self._publish()
            raise
        try:
            self._publish()
        except BaseException as error:
            self._tell_others(self._progress_of(self._phase), error_text(error))
            raise
        self._tell("finished")
        return replace(
            of_this_sync(report, self._before, self._started_at),
            published=self._options.publish,
            unknown_users=tuple(sorted(self._run.unknown_users)),
            has_other_secret=has_other_secret,
            repaired_text=self._repaired_text,
        )

    def _end(self, ended_early: bool) -> SyncReport:
        with named_errors(self._store.folder):
            self._store.use_all_threads()
            repaired = "repaired_text = repaired_text + ?"
            set_in_run(self._store, self._run.run_id, repaired, self._repaired_text)
            if not ended_early:
                return finish(self._store, self._run, self._spent())
            reading = self._lists
            lists = (reading.lists_done, reading.lists_total) if reading else None
            stopped_by = None if self._stopped_by is None else error_text(self._stopped_by)
            return end_partial(self._store, self._run, self._spent(), lists, stopped_by)

    def _publish(self) -> None:
        """Publishes an ended run if that is wanted, and no longer says that it is unfinished."""
        if self._options.publish:
            self._tell("publishing")
            with named_errors(self._store.folder):
                publish(self._store)
        # A run of given users may come between the parts of another one, which stays unfinished.
        if not self._run.given:
            forget_unfinished_run(self._store.folder)

    def _reading(self) -> SyncRun:
        with named_errors(self._store.folder):
            known = known_to(self._store, self._run)
            users = None
            if self._options.users is not None:
                users = given_users(self._store, self._options.users)
            # Until there are many rows to merge, all statements are small.
            self._store.use_one_thread()
        return self._client._sync_run(
            known,
            mode=self._run.mode,
            max_staleness=self._options.max_staleness,
            users=users,
            **self._limits(),
        )

    def _limits(self) -> dict[str, Any]:
        """How a reading is limited: by what this sync may still spend, and by privacy."""
        requests, seconds = self._options.max_requests, self._options.max_seconds
        if self._progress:
            # A limit may be passed: by retries, or while the last rows are committed.
            if requests is not None:
                requests = max(0, requests - self._sent())
            if seconds is not None:
                seconds = max(0.0, seconds - monotonic() + self._began)
        privacy = self._options.privacy
        return {
            "max_requests": requests,
            "max_seconds": seconds,
            "privacy": None if privacy is None else privacy.native,
        }

    def _ask(self, service: Service) -> bool:
        with named_errors(self._store.folder):
            self._store.use_all_threads()
            candidates = rows_to_ask(self._store, self._run)
        if candidates is None:
            return False
        return self._read(self._fetching(candidates), service, "checking")

    def _fetching(self, rows: StoredRows) -> SyncRun:
        return self._client._ask_rows(rows, **self._limits())

    def _check_hints(self) -> None:
        """Looks for a miss among the changes that came without a moved hint."""
        suspects, self._run.unannounced = self._run.unannounced, []
        trusted = self._run.mode == "quick"
        # One miss is enough, and each costs a request.
        while suspects and not self._has_missed:
            asked, suspects = suspects[:SUSPECTS], suspects[SUSPECTS:]
            still = self._verify(asked)
            missed_user = next((user_id for user_id in asked if still.get(user_id)), None)
            self._has_missed = missed_user is not None
            with named_errors(self._store.folder):
                note_verified(self._store, self._run, len(still), missed_user)
        self._trust_ended |= trusted and self._has_missed

    def _verify(self, user_ids: list[int]) -> dict[int, bool]:
        """Fetches users by id; returns, for each user found, whether the hints are unchanged."""
        found: dict[int, bool] = {}
        with named_errors(self._store.folder):
            fetching = self._fetching(users_to_ask(self._store, user_ids))
        try:
            while (batch := fetching.next_batch()) is not None:
                with named_errors(self._store.folder):
                    found |= verified(self._store, batch)
        finally:
            self._progress[fetching] = fetching.progress()
            fetching.stop()
        return found

    def _read(self, reading: SyncRun, service: Service, phase: Phase) -> bool:
        """Commits what it reads, until the trust in hints ends; returns whether the budget did."""
        trusted = not self._trust_ended
        try:
            self._note(reading, phase)
            self._tell(phase)
            while (batch := reading.next_batch()) is not None:
                self._note(reading, phase)
                # In one go: changing threads for each statement took 4 % of an unchanged run's CPU.
                work = partial(self._commit, batch, service, asked=phase == "checking")
                run_interruptibly(work, self._store.connection.interrupt)
                self._tell(phase)
                # With a budget afterwards: two readings at once would spend more.
                if self._options.max_requests is None:
                    self._check_hints()
                if trusted and self._trust_ended:
                    return False
            self._note(reading, phase)
            self._check_hints()
            self._stopped_by = reading.stopped_by
            self.service_date = reading.service_date
            return reading.ended_early
        finally:
            self._note(reading, phase)
            self._repaired_text += reading.repaired_text
            reading.stop()

    def _note(self, reading: SyncRun, phase: Phase) -> None:
        self._progress[reading] = progress = reading.progress()
        if phase == "reading":
            self._lists = progress

    def _commit(self, batch: SyncBatch, service: Service, *, asked: bool) -> None:
        spent = self._spent()
        with named_errors(self._store.folder):
            if not self._run.alone and _merges_many(batch):
                self._store.use_all_threads()
            commit(self._store, self._run, batch, service, asked=asked, spent=spent)
        self._count(spent)

    def _spent(self) -> Spent:
        """The cost since the last commit, which the next one adds to the run."""
        outage_seconds = sum(each.outage_seconds for each in self._progress.values())
        return Spent(
            self._sent() - self._requests,
            monotonic() - self._since,
            outage_seconds - self._outage_seconds,
        )

    def _count(self, spent: Spent) -> None:
        """Counts a cost that the run in the database has now."""
        self._requests += spent.requests
        self._outage_seconds += spent.outage_seconds
        self._since += spent.seconds

    def _sent(self) -> int:
        return sum(each.requests for each in self._progress.values())

    def _tell(self, phase: Phase) -> None:
        self._phase = phase
        now = self._progress_of(phase)
        reading = phase in ("reading", "checking")
        if reading and monotonic() - self._told >= SECONDS_BETWEEN_FILES:
            self._told = monotonic()
            self._tell_others(now)
        if self._options.on_progress is not None:
            counted = ("users", "messages", "requests", "seconds")
            here = {name: getattr(now, name) - self._before[name] for name in counted}
            self._options.on_progress(replace(now, **here))

    def _tell_others(self, now: SyncProgress, error: str | None = None) -> None:
        run = self._run
        # No later sync continues a run of given users.
        if run.given:
            return
        updated_at = datetime.now(UTC)
        unfinished = UnfinishedRun(run.run_id, run.mode, run.started_at, updated_at, now, error)
        write_unfinished_run(self._store.folder, unfinished)

    def _progress_of(self, phase: Phase) -> SyncProgress:
        run, reading = self._run, self._lists
        lists, lists_total = (reading.lists_done, reading.lists_total) if reading else (0, None)
        rows = run.users + run.messages - self._before["users"] - self._before["messages"]
        speed = self._meter.observe(rows, self._sent(), lists, lists_total)
        busy = phase in ("reading", "checking")
        return SyncProgress(
            users=run.users,
            users_total=reading.users_total if reading else None,
            messages=run.messages,
            requests=run.requests,
            seconds=run.seconds + monotonic() - self._since,
            phase=phase,
            lists=lists,
            lists_total=lists_total,
            rate=speed.rate if busy else 0.0,
            pace=speed.pace if busy else 0.0,
            seconds_left=speed.seconds_left if phase == "reading" else None,
            run_requests=run.requests,
        )
