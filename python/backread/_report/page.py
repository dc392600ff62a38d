"""The page: its head, the sections, and how a report is recognised."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from backread import __version__
from backread._display.html import shortened
from backread._display.words import line
from backread._report.sections import header, sections
from backread._report.style import STYLE
from backread._report.words import local, title
from backread.mirror.figures import Figures

__all__ = ["is_report", "report_html"]

MARKER = b'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n<meta name="generator" '
MARKER += b'content="backread report">'
"""How every report begins."""

LONGEST_NAME = 60


def report_html(figures: Figures, name: str | None = None) -> str:
    """The figures as one HTML page that loads nothing and runs no script.

    Args:
        figures: What to show.
        name: The name of the mirror for the title, such as that of its folder.
    """
    heading = title(figures, shortened(line(name or ""), LONGEST_NAME))
    # The hash allows this style sheet alone (Content Security Policy Level 3, section 2.3.1).
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
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
        f"<body>\n{header(figures, heading)}\n<main>{sections(figures)}</main>\n"
        f"<footer><p>Computed {computed} UTC by backread {escape(__version__)}. "
        "Deleted users and messages are in no figure.</p></footer>\n</body></html>\n"
    )


def is_report(beginning: bytes) -> bool:
    """Whether a file that begins like this is a report, which a newer one may replace."""
    return beginning.startswith(MARKER)
