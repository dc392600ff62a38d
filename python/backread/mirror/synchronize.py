"""One sync: batches from the client into the store, the end of the run, the publication."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic

from backread.errors import MirrorError
from backread.mirror.database import open_database, refuse_foreign
from backread.mirror.engine import load_duckdb, named_errors
from backread.mirror.lock import writer_lock
from backread.mirror.publish import publish, published_behind
from backread.mirror.report import Mode, Phase, SyncProgress, SyncReport
from backread.mirror.service import Service, refuse_other_service, service_of
from backread.mirror.source import Reading, Source
from backread.mirror.store import Run, Store

__all__ = ["synchronize"]

OnProgress = Callable[[SyncProgress], object]


def synchronize(
    folder: Path, source: Source, mode: Mode, on_progress: OnProgress | None, moved: bool = False
) -> SyncReport:
    """Resumes or starts a run, reads it to its end, publishes; see `Mirror.sync`."""
    load_duckdb()
    _make_folder(folder)
    with ExitStack() as held:
        with named_errors(folder):
            refuse_foreign(folder)
            held.enter_context(writer_lock(folder))
            store = Store(folder, held.enter_context(open_database(folder)))
            refuse_other_service(folder, store.service(), service_of(source), moved)
            # A kill between the end of a run and its publication left this to do.
            if published_behind(store) and not _has_unfinished(store):
                publish(store)
            run = store.begin_run(mode)
        return _Sync(store, run, on_progress).run(source)


def _make_folder(folder: Path) -> None:
    if "?" in str(folder.absolute()):
        raise MirrorError(
            f"the mirror in {folder}: DuckDB keeps no file below a name with '?'; rename the folder"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise MirrorError(f"{folder} is a file; a mirror needs a folder, choose another") from None
    except OSError as error:
        raise MirrorError(
            f"the folder {folder} cannot be made: {error}; choose another or change permissions"
        ) from error


def _has_unfinished(store: Store) -> bool:
    return bool(store.rows("SELECT 1 FROM runs WHERE state = 'unfinished' LIMIT 1"))


class _Sync:
    def __init__(self, store: Store, run: Run, on_progress: OnProgress | None) -> None:
        self._store = store
        self._run = run
        self._on_progress = on_progress
        self._users_total: int | None = None
        self._requests = 0
        self._since = monotonic()

    def run(self, source: Source) -> SyncReport:
        reading = source._sync_run(self._run.done)
        try:
            self._tell("reading")
            self._read(reading, service_of(source))
            self._tell("finishing")
            with named_errors(self._store.folder):
                report = self._store.finish(self._run, *self._spent(reading))
        except BaseException as error:
            # The run stays as committed; why it stopped is worth a note, not a second error.
            with suppress(Exception):
                self._store.record_error(self._run, error)
            raise
        finally:
            reading.stop()
        self._tell("publishing")
        with named_errors(self._store.folder):
            publish(self._store)
        self._tell("finished")
        return report

    def _read(self, reading: Reading, service: Service) -> None:
        while (batch := reading.next_batch(True)) is not None:
            self._users_total = reading.users_total
            with named_errors(self._store.folder):
                self._store.commit(self._run, batch, service, *self._spent(reading))
            self._tell("reading")

    def _spent(self, reading: Reading) -> tuple[int, float]:
        """Requests and seconds since the last call: what the next commit adds to the run."""
        now = monotonic()
        requests = reading.requests
        spent = requests - self._requests, now - self._since
        self._requests, self._since = requests, now
        return spent

    def _tell(self, phase: Phase) -> None:
        if self._on_progress is None:
            return
        run = self._run
        seconds = run.seconds + monotonic() - self._since
        self._on_progress(
            SyncProgress(run.users, self._users_total, run.messages, run.requests, seconds, phase)
        )
