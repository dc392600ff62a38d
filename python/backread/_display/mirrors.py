"""A mirror at a glance: where it is, how old, how complete, and what to do with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from backread._display.markup import Html, output, safe, sheet
from backread._display.reports import certificate_mark
from backread._display.style import TABLES
from backread._display.words import ago, amount, counts, line, moment, size

if TYPE_CHECKING:
    from backread.mirror.summary import MirrorSummary
    from backread.mirror.sync.unfinished_run import UnfinishedRun

__all__ = ["mirror_html", "mirror_text"]

SHOWN_TABLES = ("users", "messages", "rejects", "runs")

GOING_ON = 60.0
"""Seconds after which a run that tells nothing new is taken for a killed one."""


def mirror_html(summary: MirrorSummary) -> str:
    """The folder, its state, the rows of its tables, and calls to try."""
    rows: list[tuple[str, Any]] = [("folder", str(summary.folder)), *_state(summary)]
    if summary.run is not None:
        mark = certificate_mark(summary.run.certificate, summary.run.reason)
        rows.append(("users proved", mark))
        rows.append(("message lists proved", _lists(summary.lists)))
    rows += _tables(summary)
    # What mends a damaged mirror is in its error.
    if summary.is_empty or summary.problem is None:
        calls = " ".join(f"<code>{safe(each)}</code>" for each in _calls(summary))
        rows.append(("try next", Html(calls)))
    return output(TABLES + sheet("Mirror", rows))


def mirror_text(summary: MirrorSummary) -> str:
    """The same as lines for a terminal."""
    rows: list[tuple[str, str]] = _state(summary)
    if (run := summary.run) is not None:
        proof = run.certificate if run.reason is None else f"{run.certificate}: {run.reason}"
        rows.append(("users proved", proof))
        rows.append(("message lists proved", counts(summary.lists) or "none"))
    rows += _tables(summary)
    if summary.is_empty or summary.problem is None:
        rows.append(("try next", ", ".join(_calls(summary))))
    lines = [f"Mirror in {line(str(summary.folder))}"]
    return "\n".join([*lines, *(f"  {name}: {line(text)}" for name, text in rows)])


def _state(summary: MirrorSummary) -> list[tuple[str, str]]:
    rows = []
    if summary.problem is not None:
        rows.append(("state" if summary.is_empty else "cannot be read", summary.problem))
    else:
        rows.append(("data as of", _as_of(summary)))
    if summary.unfinished is not None:
        rows.append(("sync", _going_on(summary.unfinished)))
    return rows


def _as_of(summary: MirrorSummary) -> str:
    if (run := summary.run) is None:
        if summary.has_no_rows:
            return "no run has read anything yet"
        # Only given users were read so far.
        return (
            "no run over all users" if summary.published_at is None else _time(summary.published_at)
        )
    left = "" if run.lists_left is None else f", {amount(run.lists_left, 'list')} left"
    state = f"{run.state}{left}" if run.state != "finished" else run.mode
    return f"{_time(run.at)} (run {run.run_id}, {state})"


def _time(time: datetime) -> str:
    age = (datetime.now(UTC) - time).total_seconds()
    return f"{moment(time.replace(microsecond=0))}, {ago(age)}"


def _going_on(run: UnfinishedRun) -> str:
    done, total = run.progress.lists, run.progress.lists_total
    lists = "" if total is None else f", {done:,} of {total:,} message lists read"
    if run.age < GOING_ON:
        return f"run {run.run_id} is going on{lists}"
    return f"run {run.run_id} stopped {ago(run.age)}{lists}; the next sync continues it"


def _lists(by_certificate: dict[str, int]) -> Html:
    """How many lists have which certificate; a badge for the weakest."""
    if "uncertified" in by_certificate:
        return Html(f"{certificate_mark('uncertified', None)} {safe(counts(by_certificate))}")
    return safe(counts(by_certificate) or "none")


def _tables(summary: MirrorSummary) -> list[tuple[str, str]]:
    return [
        (name, f"{amount(summary.rows[name], 'row')}, {size(summary.bytes[name])}")
        for name in SHOWN_TABLES
        if name in summary.rows
    ]


def _calls(summary: MirrorSummary) -> list[str]:
    if summary.is_empty:
        return ["mirror.sync(Client(), progress=True)"]
    calls = ["mirror.tables", "mirror.table('messages').to_polars()", "mirror.search('invoice')"]
    if summary.user_id is not None:
        calls.append(f"mirror.conversation({summary.user_id})")
    return [*calls, "mirror.sql('FROM conversations LIMIT 10')"]
