"""The list of users, read once by each process for all its tasks of one stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import TaskContext  # type: ignore[import-not-found, unused-ignore]

from backread.sharding.live import ReadList, listed_ids

if TYPE_CHECKING:
    from backread import Client

__all__ = ["read_once_per_stage"]

_last: tuple[object, list[int]] | None = None


def read_once_per_stage(plan_id: str) -> ReadList:
    """Reads the list of users, or returns what this process read for the running stage.

    Each execution of a query has separate stages, so none sees another's list. A retried task reads
    the list again.
    """

    def listed(client: Client, strict: bool) -> list[int]:
        global _last
        task = TaskContext.get()
        if task is None:
            return listed_ids(client, strict)
        stage = (plan_id, task.stageId())
        if _last is None or _last[0] != stage or task.attemptNumber() > 0:
            _last = stage, listed_ids(client, strict)
        return _last[1]

    return listed
