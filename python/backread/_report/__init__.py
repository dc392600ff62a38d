"""The report of `Figures` as one HTML page with charts, which runs no script."""

from backread._report.page import is_report, report_html

__all__ = ["is_report", "report_html"]
