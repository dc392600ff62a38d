"""Progress of a sync or a walk as text, for the command line and `progress`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from backread._display.words import amount, duration, size

if TYPE_CHECKING:
    from backread.models import WalkReport


def describe(now: Any) -> str:
    """A `SyncProgress` in one line, without what is unknown."""
    reading = now.phase == "reading"
    return ", ".join(
        part
        for part in (
            f"{_of(now.users, now.users_total)} users",
            f"{_of(now.lists, now.lists_total)} lists" if now.lists_total is not None else "",
            f"{now.messages:,} messages",
            amount(now.requests, "request"),
            f"{now.rate:,.0f} rows/s" if reading and now.rate else "",
            f"{now.pace:,.1f} requests/s" if reading and now.pace else "",
            f"{timedelta(seconds=round(now.seconds_left))} left"
            if now.seconds_left is not None
            else "",
        )
        if part
    )


def sync_parts(now: Any) -> list[str]:
    """A `SyncProgress` in short parts, for a terminal or a notebook."""
    reading = now.phase == "reading"
    done, total, kind = (
        (now.users, now.users_total, "users")
        if now.lists_total is None
        else (now.lists, now.lists_total, "lists")
    )
    parts = [
        f"{done:,} {kind}" if total is None else f"{done:,}/{total:,} {kind}",
        f"{now.messages:,} msgs",
        f"{now.requests:,} req",
    ]
    if reading and now.pace:
        parts.append(f"{now.pace:,.{0 if now.pace >= 10 else 1}f} req/s")
    if now.seconds_left is not None:
        left = str(timedelta(seconds=round(now.seconds_left)))
        parts.append(f"{left.removeprefix('0:').removeprefix('0')} left")
    return parts


def export_parts(now: Any) -> list[str]:
    """An `ExportProgress` in short parts."""
    return [
        f"{now.rows:,}/{amount(now.rows_total, 'row')}",
        size(now.bytes),
        duration(now.seconds),
    ]


def files_parts(now: Any) -> list[str]:
    """A `FilesProgress` in short parts."""
    failed = [f"{now.failed:,} failed"] if now.failed else []
    return [
        f"{now.files:,}/{amount(now.files_total, 'file')}",
        size(now.bytes),
        *failed,
        duration(now.seconds),
    ]


def walk_parts(report: WalkReport, total: int | None) -> list[str]:
    """The progress of a walk, in parts; ``total`` is the size of the list, if known."""
    rows = amount(report.distinct, "row")
    if total is not None:
        rows = f"{report.distinct:,}/{amount(total, 'row')}"
    parts = [rows, amount(report.requests, "request")]
    if report.lists_by_certificate:
        parts.insert(1, amount(sum(report.lists_by_certificate.values()), "list"))
    return parts


def fitting(parts: list[str], room: int, separator: str) -> str:
    """Joins the parts in at most ``room`` characters; drops the first and the last part last."""
    parts = list(parts)
    while parts and len(separator.join(parts)) > room:
        del parts[min(1, len(parts) - 1)]
    return separator.join(parts)


def _of(count: int, total: int | None) -> str:
    # A resumed run may read the users twice.
    return f"{count:,}" if total is None or count > total else f"{count:,} of {total:,}"
