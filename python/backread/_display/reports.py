"""Reports and listings: the certificate first, then every field; and a line with a progress bar."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from backread._display.markup import (
    Html,
    cell,
    filled,
    named_fields,
    output,
    safe,
    sheet,
    table_rows,
    text_of,
)
from backread._display.style import BAR, TABLES
from backread._display.words import amount, counts, duration, odd_values

if TYPE_CHECKING:
    from backread.mirror.sync.report import SyncReport
    from backread.models import WalkReport

__all__ = [
    "certificate_mark",
    "listing_html",
    "progress_html",
    "report_html",
    "sync_report_html",
]

MOST_IDS = 10
"""The number of ids shown of a longer list."""

MEANINGS = {
    "snapshot": "one response contained the whole list",
    "counted": "as many rows were read as a later response counted",
    "linked": "each page shares rows with the next: every row that stayed in its place was read",
}

READING = {
    "Listing": (
        "for {item} in listing",
        "listing.to_list()",
        "listing.to_polars()",
        "listing.to_pandas()",
        "listing.to_arrow()",
        "polars.DataFrame(listing)",
    ),
    "AsyncListing": (
        "async for {item} in listing",
        "await listing.to_list()",
        "await listing.to_polars()",
        "await listing.to_pandas()",
        "await listing.to_arrow()",
    ),
}


def report_html(report: WalkReport) -> str:
    """What was proved, the numbers that matter most, and each field on demand."""
    return _drawn(
        sheet(Html(f"WalkReport {_mark(report)}"), _walked(report)) + _every_field(report)
    )


def sync_report_html(report: SyncReport) -> str:
    """What was read and changed, what was proved, and each field on demand."""
    changed = "".join(
        f'<tr><th scope="row">{name}</th>'
        + "".join(f'<td class="br-number">{getattr(report, each):,}</td>' for each in columns)
        + "</tr>"
        for name, columns in (
            ("users", ("users", "users_added", "users_updated")),
            ("messages", ("messages", "messages_added", "messages_updated")),
        )
    )
    head = "".join(
        f'<th scope="col" class="br-number">{name}</th>'
        for name in ("", "read", "added", "updated")
    )
    how = f"{report.mode}{', resumed' if report.resumed else ''}"
    caption = f'SyncReport: run {report.run_id} <span class="br-quiet">{safe(how)}</span>'
    rows: list[tuple[str, Any]] = [
        ("users proved", Html(certificate_mark(report.certificate, report.certificate_reason))),
        ("message lists proved", counts(report.lists_by_certificate) or None),
        ("message lists read", counts(report.lists_by_kind) or None),
        ("took", f"{duration(report.seconds)}, {amount(report.requests, 'request')}"),
    ]
    if report.resumed:
        run = report.run
        read = f"{amount(run.users, 'user')}, {amount(run.messages, 'message')}"
        spent = f"{duration(run.seconds)}, {amount(run.requests, 'request')}"
        rows.append(("all syncs of the run", f"{read}, {spent}"))
    if report.outage_seconds:
        rows.append(("service down", duration(report.outage_seconds)))
    if report.uncertified_users:
        unproved = f'<span class="br-mark br-unproved">! uncertified</span> {_ids(report)}'
        rows.insert(2, ("of the users", Html(unproved)))
    if report.deleted or report.mode == "full":
        rows.append(("gone", f"{report.deleted:,}"))
    if report.rejects:
        rows.append(("rejects", f"{report.rejects:,}: see the table rejects"))
    if report.odd_values:
        rows.append(("odd values", odd_values(report.odd_values)))
    if report.repaired_text:
        rows.append(("text repaired", f"in {amount(report.repaired_text, 'place')}"))
    if report.error:
        rows.append(("stopped by" if report.partial else "earlier error", report.error))
    return _drawn(
        f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{changed}</tbody></table>"
        f"<table><tbody>{table_rows(rows)}</tbody></table>" + _every_field(report)
    )


def listing_html(kind: str, title: str, report: WalkReport | None) -> str:
    """What a listing lists and how it is read, or what its latest walk proved so far.

    ``kind`` is ``Listing`` or ``AsyncListing``, ``report`` is None before the first walk. Sends no
    request.
    """
    item = title.partition(" ")[0].removesuffix("s") or "item"
    ways = " ".join(f"<code>{safe(way.format(item=item))}</code>" for way in READING[kind])
    caption = f"{kind} of {safe(title)} "
    if report is None:
        caption += '<span class="br-mark br-open">not read yet</span>'
        rows: list[tuple[str, Any]] = [("read it with", Html(ways))]
        note = "No request is sent until it is read."
    else:
        caption += _mark(report)
        rows = [*_walked(report), ("read it with", Html(ways))]
        note = "This is the report of its latest walk; each reading is a new walk."
    rows.append(("", Html(f'<span class="br-quiet">{note}</span>')))
    return _drawn(sheet(Html(caption), rows))


def _drawn(content: str) -> str:
    return output(TABLES + content)


def _walked(report: WalkReport) -> list[tuple[str, Any]]:
    """The numbers of a walk that matter most."""
    rows: list[tuple[str, Any]] = []
    if meaning := _meaning(report):
        rows.append(("certificate", meaning))
    total = "" if report.total_last is None else f" of {report.total_last:,}"
    repeats = f", {amount(report.repeats, 'repeat')} left out" if report.repeats else ""
    rows.append(("rows", f"{report.distinct:,}{total}{repeats}"))
    if report.lists_by_certificate:
        rows.append(("lists", counts(report.lists_by_certificate)))
    if report.uncertified_users:
        rows.append(("uncertified users", _ids(report)))
    rows.append(("requests", f"{report.requests:,}"))
    if report.started_at is not None and report.ended_at is not None:
        took = (report.ended_at - report.started_at).total_seconds()
        rows.append(("took", duration(max(0.0, took))))
    if report.repaired_text:
        rows.append(("text repaired", f"in {amount(report.repaired_text, 'place')}"))
    if report.unreadable_rows:
        rows.append(("left out", amount(report.unreadable_rows, "row")))
    if report.odd_values:
        rows.append(("of another type", f"{amount(report.odd_values, 'value')}, kept in extra"))
    return rows


def _meaning(report: WalkReport) -> str | None:
    if report.certificate == "uncertified":
        return report.reason
    meaning = MEANINGS.get(report.certificate)
    return f"the weakest of the lists: {meaning}" if report.lists_by_certificate else meaning


def _mark(report: WalkReport) -> Html:
    """The certificate as a badge."""
    if report.started_at is None:
        return Html('<span class="br-mark br-open">not read yet</span>')
    if report.ended_at is None:
        return Html('<span class="br-mark br-open">… not read to its end</span>')
    return certificate_mark(report.certificate, None)


def certificate_mark(name: str, reason: str | None) -> Html:
    """A certificate as a badge, and why there is none."""
    proved = name != "uncertified"
    mark = (
        f'<span class="br-mark br-{"proved" if proved else "unproved"}">'
        f"{'✓' if proved else '!'} {safe(name)}</span>"
    )
    return Html(mark if reason is None else f"{mark} {safe(reason)}")


def _ids(report: WalkReport | SyncReport) -> str:
    ids = report.uncertified_users
    some = ", ".join(map(str, ids[:MOST_IDS]))
    return f"{some} and {len(ids) - MOST_IDS:,} more" if len(ids) > MOST_IDS else some


def _every_field(report: WalkReport | SyncReport) -> str:
    rows: list[tuple[str, Any]] = []
    for name, value in named_fields(report):
        if isinstance(value, Mapping):
            rows.append((name, counts(value) or None))
        elif is_dataclass(value):
            rows.append((name, text_of(dict(named_fields(value)))))
        elif name == "uncertified_users":
            rows.append((name, _ids(report) or None))
        elif isinstance(value, int) and not isinstance(value, bool) and name != "run_id":
            rows.append((name, f"{value:,}"))
        elif name == "seconds":
            rows.append((name, f"{value:,.3f}"))
        else:
            rows.append((name, cell(value if filled(value) else None)))
    return (
        f"<details><summary>every field</summary>"
        f"<table><tbody>{table_rows(rows)}</tbody></table></details>"
    )


def progress_html(label: str, fraction: float | None, parts: Iterable[str], *, live: bool) -> str:
    """A label, a bar while it is ``live`` (without a ``fraction`` one of no length), numbers."""
    bar = ""
    if live:
        state = "" if fraction is None else f' value="{fraction:.4f}"'
        bar = f'<progress max="1"{state} aria-label="{safe(label)}"></progress>'
    text = " · ".join(parts)
    return output(f"{BAR}<b>{safe(label)}</b> {bar}<span>{safe(text)}</span>", " br-progress")
