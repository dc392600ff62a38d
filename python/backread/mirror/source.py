"""What a sync asks of a client: the shape of the native module's reading, for types and fakes."""

from __future__ import annotations

from typing import Protocol

from backread.mirror.known import Known, StoredRows
from backread.mirror.report import Mode

__all__ = ["ArrowTable", "Batch", "Reading", "ReadingProgress", "Source", "UsersReport"]


class ArrowTable(Protocol):
    """Rows that can be scanned any number of times: each call gives a fresh Arrow stream."""

    @property
    def num_rows(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class UsersReport(Protocol):
    """The part of a `WalkReport` that the mirror keeps."""

    @property
    def certificate(self) -> str: ...
    @property
    def reason(self) -> str | None: ...


class Batch(Protocol):
    """What is to be committed in one transaction."""

    @property
    def users(self) -> ArrowTable | None: ...
    @property
    def messages(self) -> ArrowTable | None: ...
    @property
    def lists(self) -> ArrowTable | None: ...
    @property
    def rejects(self) -> ArrowTable | None: ...
    @property
    def cursors(self) -> ArrowTable | None: ...
    @property
    def gone(self) -> ArrowTable | None: ...
    @property
    def users_report(self) -> UsersReport | None: ...


class ReadingProgress(Protocol):
    """How far a reading has come; ``pace`` is in requests a second, now."""

    @property
    def requests(self) -> int: ...
    @property
    def users_total(self) -> int | None: ...
    @property
    def lists_total(self) -> int | None: ...
    @property
    def lists_done(self) -> int: ...
    @property
    def pace(self) -> float: ...
    @property
    def outage_seconds(self) -> float: ...


class Reading(Protocol):
    """One run's reading, under way; batches come in the order in which they are committed."""

    def progress(self) -> ReadingProgress: ...
    def next_batch(self, blocking: bool) -> Batch | None: ...
    def stop(self) -> None: ...


class Source(Protocol):
    """A client.

    ``_sync_run`` reads what there is, given what is known; ``_ask_rows`` asks for the rows named by
    resource, user_id and id, each by its id.
    """

    @property
    def base_url(self) -> str: ...
    @property
    def vendor(self) -> str: ...
    def _sync_run(self, known: Known, *, mode: Mode, max_staleness: float | None) -> Reading: ...
    def _ask_rows(self, candidates: StoredRows) -> Reading: ...
