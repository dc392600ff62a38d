"""Checks that the service answers as documented, and compares its clock."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import TYPE_CHECKING

from backread._display.words import amount, duration
from backread.cli.doctor.findings import Findings
from backread.cli.exits import USAGE, exit_code
from backread.errors import (
    AuthenticationError,
    BackreadError,
    DecodeError,
    NotFoundError,
    PermissionDeniedError,
    StatusError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backread._client.client import Client

__all__ = ["check_clock", "check_service"]

NO_USER = 0
"""An id that no service is known to use: the answer is a 404, whose headers can be read."""

NOT_ACCEPTABLE = 406
TOLERATED = 5.0
"""Seconds. A Date header has whole seconds, and the request takes some."""


def check_service(findings: Findings, client: Client) -> bool:
    """Requests one user; whether that was answered at all."""
    findings.begin("service")
    began = monotonic()
    try:
        page = client.users.page(limit=1)
    except BackreadError as error:
        advice, code = _advice(error)
        findings.problem(str(error), advice, code)
        return isinstance(error, StatusError)
    took = duration(monotonic() - began)
    users = "" if page.total is None else f": it has {amount(page.total, 'user')}"
    findings.ok(f"the service answered in {took}{users}")
    return True


def check_clock(findings: Findings, client: Client) -> None:
    """Compares this machine's clock with the Date header of an answer."""
    findings.begin("clock")
    began = datetime.now(UTC)
    try:
        client.users.get(NO_USER)
        headers: Mapping[str, str] = {}
    except StatusError as error:
        headers = error.headers
    except BackreadError as error:
        findings.warning(f"the clocks were not compared: {error}", "try again")
        return
    ended = datetime.now(UTC)
    try:
        there = parsedate_to_datetime(headers["date"])
        there = there if there.tzinfo else there.replace(tzinfo=UTC)
    except (KeyError, ValueError, OverflowError):
        findings.ok("the service's answer has no Date header, so the clocks were not compared")
        return
    # The header's second had begun.
    ahead = max((began - there).total_seconds() - 1, 0.0)
    behind = max((there - ended).total_seconds(), 0.0)
    if max(ahead, behind) <= TOLERATED:
        findings.ok("this machine's clock agrees with the service's, to a few seconds")
        return
    findings.warning(
        f"this machine's clock is {max(ahead, behind):,.0f} s "
        f"{'ahead of' if ahead else 'behind'} the service's",
        "set the clock by NTP; a wrong one breaks TLS, and misreads waits that are given as a date",
    )


def _advice(error: BackreadError) -> tuple[str, int]:
    code = exit_code(error)
    if isinstance(error, AuthenticationError):
        return (
            "copy the API Secret Key again, from the page Integration (General) of the service's "
            "console; a file with it must hold nothing else"
        ), code
    if isinstance(error, PermissionDeniedError):
        return "ask the service's operators what this API Secret Key may read", code
    if isinstance(error, NotFoundError):
        return (
            "base_url is the part of the address in front of /external/users; check its path"
        ), USAGE
    if isinstance(error, StatusError) and error.status_code == NOT_ACCEPTABLE:
        return (
            "vendor is the word in the media type application/vnd.VENDOR.v1+json of the service's "
            "documentation"
        ), USAGE
    if isinstance(error, DecodeError):
        return "something else than the service answers there: check base_url", code
    return "", code
