"""The page: its head, what it is about, the sections, and how a report is recognised."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from html import escape, unescape

from backread._client.client import __version__
from backread._display.html import Html, safe, shortened
from backread._display.words import line, odd_values
from backread._report import conversations, times
from backread._report.elements import Listed, section
from backread._report.figures import (
    Figures,
    coverage_lines,
    local,
    main_figures,
    no_data,
    period,
    span,
    title,
)
from backread._report.style import STYLE

MARKER = b'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n<meta name="generator" '
MARKER += b'content="backread report">'
"""How every report begins."""

LINK = re.compile(r'<a href="list:([^"]*)">(.*?)</a>')
"""What `Listed` makes."""

LONGEST_NAME = 60

SECTIONS = (
    times.volume,
    times.weekdays,
    times.hours,
    times.heat,
    conversations.responses,
    conversations.states,
    conversations.trend,
    conversations.operators,
    conversations.invitations,
    conversations.attachments,
    conversations.longest,
)
"""In their order on the page; each has a line that says what its figures count."""


def report_html(
    figures: Figures,
    name: str | None = None,
    *,
    address: Callable[[str], str] | None = None,
    controls: str = "",
) -> str:
    """The figures as one HTML page that loads nothing and runs no script.

    Args:
        figures: What to show.
        name: The name of the mirror for the title, such as that of its folder.
        address: Where the list of a number is, by its query; by default, no number is a link.
        controls: Markup above the figures.
    """

    def link(found: re.Match[str]) -> str:
        if address is None:
            return found[2]
        return f'<a href="{escape(address(unescape(found[1])))}">{found[2]}</a>'

    heading = title(figures, shortened(line(name or ""), LONGEST_NAME))
    # The hash allows this style sheet alone (Content Security Policy Level 3, section 2.3.1).
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    forms = "'self'" if controls else "'none'"
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        f"form-action {forms}"
    )
    computed = local(figures["computed_at"], "UTC")
    return (
        f"{MARKER.decode()}\n"
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="robots" content="noindex">\n'
        # Without it, a browser asks a web server for /favicon.ico.
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(heading)}</title>\n<style>{STYLE}</style></head>\n"
        f"<body>\n{_header(figures, heading)}\n"
        f"<main>{controls}{LINK.sub(link, _sections(figures))}</main>\n"
        f"<footer><p>Computed {computed} UTC by backread {escape(__version__)}. "
        "Deleted users and messages are in no figure.</p></footer>\n</body></html>\n"
    )


def is_report(beginning: bytes) -> bool:
    """Whether a file that begins like this is a report, which a newer one may replace."""
    return beginning.startswith(MARKER)


def _header(figures: Figures, heading: str) -> Html:
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
    details = "".join(f"<p>{escape(each)}</p>" for each in coverage["status"])
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


def _sections(figures: Figures) -> Html:
    """Everything below the header."""
    if not figures["totals"]["messages"]:
        return section("No data", "", f"<p>{escape(no_data(figures))}</p>", "full")
    cards = "\n".join(each(figures) for each in SECTIONS)
    return Html(f'{_tiles(figures)}\n<div class="cards">{cards}</div>')


def _tiles(figures: Figures) -> Html:
    before = main_figures(figures, figures["before"]) if figures["before"] else []
    body = ""
    for place, (name, value, more, listed) in enumerate(main_figures(figures)):
        earlier = f"; before: {before[place][1]}" if place < len(before) else ""
        body += (
            f'<div><dt>{escape(name)}</dt><dd class="big">{Listed(value, f"figure={listed}")}'
            f'</dd><dd class="more">{escape(more + earlier)}</dd></div>'
        )
    return Html(f'<dl class="tiles">{body}</dl>')
