"""Checks that the service answers as documented, and compares its clock."""

from __future__ import annotations

import html
import re
from dataclasses import fields
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
    TransportError,
)
from backread.models import User, UserAttribute

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from backread._client.client import Client

__all__ = ["check_clock", "check_service"]

NO_USER = 0
"""An id that no service is known to use: the answer is a 404, whose headers can be read."""

NOT_ACCEPTABLE = 406
PROXY_PASSWORD = 407
LOGIN_REQUIRED = 511
LOGIN = "open any page in a browser, log in to the network, and try again"
HTML = re.compile(r"\s*<(!doctype html|html|head|title|body)\b", re.IGNORECASE)
TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
LONGEST_TITLE = 80
TOLERATED = 5.0
"""Seconds. A Date header has whole seconds, and the request takes some."""


def check_service(findings: Findings, client: Client) -> bool:
    """Requests one user; whether the service answered that at all."""
    findings.begin("service")
    began = monotonic()
    try:
        page = client.users.page(limit=1)
    except BackreadError as error:
        advice, code = _advice(error)
        findings.problem(str(error), advice, code)
        # Another request would repeat a password that the proxy refused.
        return isinstance(error, StatusError) and error.status_code != PROXY_PASSWORD
    took = duration(monotonic() - began)
    users = "" if page.total is None else f": it has {amount(page.total, 'user')}"
    findings.ok(f"the service answered in {took}{users}")
    if odd := sorted({*_odd_fields(page.items)}):
        findings.warning(
            f"values of another type or form than documented: {', '.join(odd)}",
            "backread converts none: the fields are None, and extra has the values as sent",
        )
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


def _odd_fields(users: Iterable[User]) -> Iterator[str]:
    """The documented fields whose value is in ``extra``."""
    for user in users:
        yield from (each.name for each in fields(User) if each.name in user.extra)
        for attribute in user.user_attributes or ():
            names = (each.name for each in fields(UserAttribute) if each.name in attribute.extra)
            yield from (f"user_attributes.{name}" for name in names)


def _advice(error: BackreadError) -> tuple[str, int]:
    advice, code = _advice_on_service(error)
    if isinstance(error, StatusError) and error.status_code == LOGIN_REQUIRED:
        return f"this network wants a login (RFC 6585): {LOGIN}", code
    if isinstance(error, TransportError) and "redirect to another origin" in str(error):
        return f"or this network wants a login: {LOGIN}", code
    if (page := _page(error)) is not None:
        return (
            f"the answer is a web page{page}: something in front of the service may have sent it "
            "(a proxy, a firewall, the login of a network)"
            f"{f'; if it was the service: {advice}' if advice else ''}"
        ), code
    return advice, code


def _page(error: BackreadError) -> str | None:
    """The title of an HTML page in place of JSON, in brackets if it has one; None if it is none."""
    text = ""
    if isinstance(error, StatusError):
        text = error.body.decode("utf-8", "replace")
    elif isinstance(error, DecodeError):
        text = error.snippet
    if HTML.match(text) is None:
        return None
    found = TITLE.search(text)
    title = " ".join(html.unescape(found[1]).split())[:LONGEST_TITLE] if found else ""
    return f" ({title})" if title else ""


def _advice_on_service(error: BackreadError) -> tuple[str, int]:
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
    if isinstance(error, DecodeError) and error.path.endswith(".id"):
        kind = "texts" if error.snippet.startswith('"') else "not integers"
        return (
            f"the service's ids are {kind}, and backread needs integers: ask its operators"
        ), code
    if isinstance(error, DecodeError):
        return "something else than the service answers there: check base_url", code
    return "", code
