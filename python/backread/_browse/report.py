"""The report as a page of `backread browse`, in which numbers lead to the people they count."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from urllib.parse import parse_qsl, urlencode

from backread._browse.files import Reply
from backread._report.figures import Figures
from backread._report.page import report_html
from backread._report.words import local

OPTIONS = ("timezone", "days", "since", "until", "hours")

PERIODS = {
    "": "any time",
    "1": "today",
    "7": "last 7 days",
    "30": "last 30 days",
    "90": "last 90 days",
    "365": "last 365 days",
}

POLICY = "frame-ancestors 'none'; script-src 'none'; base-uri 'none'; form-action 'self'"
"""The page's own policy, which `report_html` writes into it, allows its style."""


def report_page(figures: Figures, name: str, query: Mapping[str, str]) -> Reply:
    """The page; ``query`` has the options that were chosen on it."""
    chosen = {name: query[name] for name in OPTIONS if query.get(name)}

    def address(listed: str) -> str:
        given = dict(parse_qsl(listed))
        if "user" in given:
            return f"../#/user/{given['user']}?{urlencode({'timezone': figures['timezone']})}"
        kept = dict(chosen)
        if "since" in given:
            kept.pop("days", None)
            if figures["since"] is not None:
                first = local(figures["since"], figures["timezone"])[:10]
                given["since"] = max(given["since"], first)
            given["until"] = min(given["until"], chosen.get("until", given["until"]))
        return f"../#/?{urlencode(kept | given)}"

    page = report_html(figures, name, address=address, controls=_controls(chosen))
    headers = {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": POLICY}
    return Reply(200, page.encode("utf-8", "replace"), headers)


def _controls(chosen: Mapping[str, str]) -> str:
    def field(label: str, name: str, kind: str = "text", hint: str = "") -> str:
        value = escape(chosen.get(name, ""))
        return (
            f'<label>{label} <input type="{kind}" name="{name}" value="{value}" '
            f'placeholder="{hint}"></label>'
        )

    days = "".join(
        f'<option value="{value}"{" selected" if chosen.get("days") == value else ""}>{text}'
        "</option>"
        for value, text in PERIODS.items()
    )
    return (
        '<form><a href="../">Back to the conversations</a>'
        f'<label>Period <select name="days">{days}</select></label>'
        f"{field('or from', 'since', 'date')}{field('to', 'until', 'date')}"
        f"{field('Time zone', 'timezone', hint='UTC')}"
        f"{field('Opening hours', 'hours', hint='mon-fri 9-17')}<button>Show</button></form>"
    )
