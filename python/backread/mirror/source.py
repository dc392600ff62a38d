"""What a sync asks of a client: the shape of the native module's reading, for types and fakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["ArrowTable", "Batch", "Reading", "Source", "UsersReport"]


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
    def users_report(self) -> UsersReport | None: ...


class Reading(Protocol):
    """One run's reading, under way; batches come in the order in which they are committed."""

    @property
    def requests(self) -> int: ...
    @property
    def users_total(self) -> int | None: ...
    def next_batch(self, blocking: bool) -> Batch | None: ...
    def stop(self) -> None: ...


class Source(Protocol):
    """A client; `done` are the users whose message list need not be read."""

    @property
    def base_url(self) -> str: ...
    @property
    def vendor(self) -> str: ...
    def _sync_run(self, done: Sequence[int]) -> Reading: ...
