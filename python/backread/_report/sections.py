"""The sections of the report, each with a line that says what its figures count."""

from __future__ import annotations

from html import escape

from backread._display.html import Html, safe
from backread._display.words import odd_values
from backread._report.conversations import (
    attachments,
    invitations,
    longest,
    operators,
    response_times,
    responses,
    states,
    trend,
    workload,
)
from backread._report.elements import cut, section, table
from backread._report.times import heat, hours, volume, weekdays
from backread._report.words import (
    CERTIFICATES,
    coverage_lines,
    no_data,
    percent,
    period,
    seconds,
    span,
)
from backread.mirror.figures import Figures

__all__ = ["header", "sections"]


def header(figures: Figures, heading: str) -> Html:
    """The title, what the figures are about, and how recent and complete the data is."""
    coverage = figures["coverage"]
    facts = [span(figures)]
    if asked := period(figures):
        facts.append(f"only messages {asked}")
    if figures["opening_hours"] is None:
        facts.append("response times around the clock")
    else:
        facts.append(f"response times within the opening hours {figures['opening_hours']}")
    fresh, complete = coverage_lines(coverage)
    lists = [
        (name, CERTIFICATES.get(name, ""), f"{count:,}")
        for name, count in coverage["lists_by_certificate"].items()
    ]
    details: str = table(
        "Message lists, one per user, by what proves them",
        ("Certificate", "What it says", "Lists"),
        lists,
    )
    if coverage["unproved"]:
        details += table(
            f"The first {len(coverage['unproved'])} of {coverage['unproved_lists']:,} lists that "
            "are not proved",
            ("User", "Reason"),
            [
                (str(each["user_id"]), safe(cut(each["reason"]) or "–"))
                for each in coverage["unproved"]
            ],
        )
    details += "".join(f"<p>{escape(each)}</p>" for each in coverage["status"])
    rejects = (
        f"<p>{coverage['rejects']:,} records of the service did not fit and are in no figure.</p>"
        if coverage["rejects"]
        else ""
    )
    odd = odd_values(coverage["odd_values"])
    odd = f"<p>{escape(odd)}.</p>" if odd else ""
    return Html(
        f"<header><h1>{escape(heading)}</h1>"
        f'<p class="quiet">{escape("; ".join(facts))}</p>'
        f'<div class="state {"good" if coverage["proved"] else "warn"}"><p>{safe(fresh)} '
        f"<strong>{safe(complete)}</strong></p>{rejects}{odd}"
        f"<details><summary>What is proved</summary>{details}</details></div></header>"
    )


def sections(figures: Figures) -> Html:
    """Everything below the header."""
    if not figures["totals"]["messages"]:
        return section("No data", "", f"<p>{escape(no_data(figures))}</p>", "full")
    shown = (
        volume,
        weekdays,
        hours,
        heat,
        responses,
        states,
        trend,
        response_times,
        workload,
        operators,
        invitations,
        attachments,
        longest,
    )
    cards = "\n".join(each(figures) for each in shown)
    return Html(f'{_tiles(figures)}\n<div class="cards">{cards}</div>')


def _tiles(figures: Figures) -> Html:
    totals, first, now = figures["totals"], figures["responses"], figures["states"]
    tiles = (
        ("Messages", f"{totals['messages']:,}", f"in {totals['conversations']:,} conversations"),
        ("Median first response", seconds(first["p50_seconds"]), "half took at most this long"),
        (
            "90% of first responses within",
            seconds(first["p90_seconds"]),
            "1 in 10 took longer",
        ),
        (
            "Never answered",
            f"{first['unanswered']:,}",
            f"{percent(first['unanswered'], first['asked'])} of {first['asked']:,} asked",
        ),
        (
            "User wrote last",
            f"{now['user_wrote_last']:,}",
            f"{percent(now['user_wrote_last'], totals['conversations'])} of conversations",
        ),
        (
            "Unread by operators",
            f"{now['unread_by_operator_messages']:,}",
            f"messages in {now['unread_by_operator_conversations']:,} conversations",
        ),
    )
    body = "".join(
        f'<div><dt>{escape(name)}</dt><dd class="big">{escape(value)}</dd>'
        f'<dd class="more">{escape(more)}</dd></div>'
        for name, value, more in tiles
    )
    return Html(f'<dl class="tiles">{body}</dl>')
