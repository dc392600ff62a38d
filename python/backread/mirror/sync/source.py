"""Protocols for what a sync needs from a client, for type checkers and fakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from backread.mirror.store.store import ArrowTable
from backread.mirror.sync.known import Known, StoredRows
from backread.mirror.sync.report import Mode

if TYPE_CHECKING:
    from backread._backread import NativePrivacy

__all__ = ["Batch", "Reading", "ReadingProgress", "Source", "UsersReport"]


class UsersReport(Protocol):
    """The part of a `WalkReport` that the mirror stores."""

    @property
    def certificate(self) -> str: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def requests(self) -> int: ...


class Batch(Protocol):
    """The content of one transaction."""

    @property
    def users(self) -> ArrowTable | None: ...
    @property
    def messages(self) -> ArrowTable | None: ...
    @property
    def lists(self) -> ArrowTable | None: ...
    @property
    def rejects(self) -> ArrowTable | None: ...
    @property
    def gone(self) -> ArrowTable | None: ...
    @property
    def users_state(self) -> str | None: ...
    @property
    def users_report(self) -> UsersReport | None: ...


class ReadingProgress(Protocol):
    """The progress of a reading."""

    @property
    def requests(self) -> int: ...
    @property
    def users_total(self) -> int | None: ...
    @property
    def lists_total(self) -> int | None: ...
    @property
    def lists_done(self) -> int: ...
    @property
    def outage_seconds(self) -> float: ...


class Reading(Protocol):
    """One run's reading, in progress; batches must be committed in this order.

    ``ended_early``: something was not read because the budget was spent; final after the last
    batch. A client's has ``stopped_by`` too, the last failure whose retry would have come
    after the end, ``service_date``, the time by the service's clock at its last answer, and
    ``repaired_text``, the count of a `SyncReport`.
    """

    @property
    def ended_early(self) -> bool: ...
    def progress(self) -> ReadingProgress: ...
    def next_batch(self) -> Batch | None: ...
    def stop(self) -> None: ...


class Source(Protocol):
    """A client.

    ``_secret_mark`` is a word that differs for most other secrets; ``key`` is 16 bytes.
    ``_sync_run`` reads the service, given what is known, or only ``users`` (user_id), without a
    sweep over all of them; ``_ask_rows`` fetches rows by id, named by resource, user_id and id.
    Both end early, without an error, once ``max_requests`` are sent, retries included, or
    ``max_seconds`` have passed; their rows leave out what ``privacy`` says.
    """

    @property
    def base_url(self) -> str: ...
    @property
    def vendor(self) -> str: ...
    def _secret_mark(self, key: bytes) -> str: ...
    def _sync_run(
        self,
        known: Known,
        *,
        mode: Mode,
        max_staleness: float | None,
        max_requests: int | None = None,
        max_seconds: float | None = None,
        users: StoredRows | None = None,
        privacy: NativePrivacy | None = None,
    ) -> Reading: ...
    def _ask_rows(
        self,
        candidates: StoredRows,
        *,
        max_requests: int | None = None,
        max_seconds: float | None = None,
        privacy: NativePrivacy | None = None,
    ) -> Reading: ...
