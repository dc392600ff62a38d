"""What `Mirror.figures` returns, and the main figures in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypedDict
from zoneinfo import ZoneInfo

from backread._display.html import card
from backread._display.words import amount, duration

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NONE = "–"
EVEN = re.compile(r"(?<=\d (?:h|d)) 00 (?:min|h)$|(?<=min) 00 s$|\.00?(?= s$)")


def seconds(value: float | None) -> str:
    """A response time; a dash if there is none."""
    if value is None:
        return NONE
    if value < 0.0005:
        return "0 s"
    # An axis has whole hours and minutes.
    return EVEN.sub("", duration(value))


def percent(part: int, whole: int) -> str:
    """``12%``, ``0.4%``; a dash for a part of nothing."""
    if not whole:
        return NONE
    share = 100 * part / whole
    return f"{share:.1f}%" if 0 < share < 9.95 else f"{share:.0f}%"


def day(value: str) -> str:
    """``5 Mar 2024`` of an ISO 8601 date."""
    year, month, number = value.split("-")
    return f"{int(number)} {MONTHS[int(month) - 1]} {year}"


def local(moment: str | None, timezone: str) -> str:
    """``2024-03-05 10:31`` in the time zone; in UTC, and saying so, where Python lacks the zone."""
    if moment is None:
        return NONE
    time = datetime.fromisoformat(moment)
    try:
        zone = UTC if timezone == "UTC" else ZoneInfo(timezone)
        return time.astimezone(zone).isoformat(" ", "minutes")[:16]
    except (LookupError, ValueError, OverflowError):
        # Windows has no time zones unless tzdata is installed.
        return f"{time.isoformat(' ', 'minutes')[:16]} UTC"


def unit_label(volume: Mapping[str, Any], unit: str) -> str:
    """A unit of the volume as an axis names it, with an asterisk if it is not whole."""
    start, mark = volume["start"], "" if volume["whole"] else "*"
    if unit == "year":
        return f"{start[:4]}{mark}"
    return f"{day(start).partition(' ')[2] if unit == 'month' else day(start)}{mark}"


class Coverage(TypedDict):
    """How recent and how complete the data is.

    Attributes:
        run_id: The newest sync in the snapshot that read something; None if none is recorded.
        mode: ``incremental`` or ``full``.
        state: ``finished``, or ``partial`` if its budget was used up.
        as_of: When that sync ended, or read something last if it is partial, in UTC.
        age_seconds: The time from then until the figures were computed.
        users_certificate: What proves the list of users; see ``docs/explanation/certificates.md``.
        users_reason: Why nothing proves it.
        lists_by_certificate: The number of users by the certificate of their message list;
            ``never read`` for those whose list no sync has read yet.
        unproved_lists: The number of message lists that are uncertified or were never read.
        unproved: The first twenty of them: ``user_id`` and ``reason``, None if unknown.
        rejects: The number of records that did not fit the schema and are in no figure.
        odd_values: How many values of documented fields have another type, by table and column;
            they are null in the figures.
        proved: Whether the list of users and every message list have a certificate.
        status: What `Mirror.status` says, in sentences.
    """

    run_id: int | None
    mode: str | None
    state: str | None
    as_of: str | None
    age_seconds: float | None
    users_certificate: str | None
    users_reason: str | None
    lists_by_certificate: dict[str, int]
    unproved_lists: int
    unproved: list[dict[str, Any]]
    rejects: int
    odd_values: dict[str, int]
    status: list[str]
    proved: bool


class Totals(TypedDict):
    """Counts over the period.

    ``users`` counts all users, with or without messages. A conversation is all messages of one
    user, so ``conversations`` counts the users with a message in the period. The messages are those
    created in the period: ``user_messages``, ``operator_messages`` (without automatic invitations),
    ``auto_invitations``, and ``other_messages`` of unknown kinds of senders. ``undated_messages``
    have no time; they are counted only if there is no period, and are in no figure by time.
    ``first_message_at`` and ``last_message_at`` are UTC.
    """

    users: int
    conversations: int
    messages: int
    user_messages: int
    operator_messages: int
    auto_invitations: int
    other_messages: int
    undated_messages: int
    first_message_at: str | None
    last_message_at: str | None


class ResponseFigures(TypedDict):
    """First response times: from a user's first message to the first later operator message.

    Automatic invitations are no responses. With opening hours, only the time within them counts,
    and the times are those of all responses but ``answered_outside_hours``.

    Attributes:
        asked: Conversations whose user first wrote in the period.
        answered: Those of them with a response.
        unanswered: Those without one.
        unknown: Those whose message list was not read to its end, so that nothing is known.
        asked_outside_hours: How many of the answered began outside the opening hours; None without
            opening hours.
        answered_outside_hours: How many of these were answered before the next opening; None
            without opening hours.
        p50_seconds: Half of the responses took at most this long.
        p90_seconds: Nine in ten took at most this long.
        mean_seconds: The average.
        longest_seconds: The longest.
        buckets: The distribution: ``conversations`` whose response took at least ``from_seconds``
            and less than ``to_seconds``, None in the last.
    """

    asked: int
    answered: int
    unanswered: int
    unknown: int
    asked_outside_hours: int | None
    answered_outside_hours: int | None
    p50_seconds: float | None
    p90_seconds: float | None
    mean_seconds: float | None
    longest_seconds: float | None
    buckets: list[dict[str, Any]]


class Figures(TypedDict):
    """Figures about the conversations of a mirror, a dict of JSON values; see `Mirror.figures`.

    Times and dates are ISO 8601 text.

    Attributes:
        timezone: The time zone of days, weekdays and hours; ``UTC`` if none was given.
        opening_hours: The opening hours, in a uniform spelling; None if none were given.
        since: The beginning of the period, in UTC; None without one.
        until: The end of the period, in UTC; None without one.
        computed_at: When the figures were computed, in UTC.
        coverage: How recent and how complete the data is.
        totals: Users, conversations and messages.
        before: ``totals`` and ``responses`` of the period of the same length before this one, up to
            now if it has not ended; None without ``since``.
        unit: What an element of ``volume`` is: a day, or in a long period a week (from Monday), a
            month or a year.
        volume: Every such unit from the first message to the last, also those without messages:
            ``start`` and ``last_day`` are its first and last day; ``whole`` is false if it was not
            over when the newest messages were read, or is cut by the period; ``messages``,
            ``user_messages``, ``operator_messages``, ``auto_invitations`` and ``other_messages``
            are as in `Totals`; ``conversations`` counts those whose first message is in it;
            ``p50_seconds`` is the median first response time of those whose user first wrote in it,
            or None.
        hours: All hours of the week that have messages: ``weekday`` (1 is Monday), ``hour`` of the
            day (0 to 23), ``user_messages`` and ``operator_messages``.
        responses: How long users waited for the first response.
        states: Where the conversations stand that have a message in the period.
            ``user_wrote_last``, ``operator_wrote_last``, ``invitation_last`` and ``other_last``
            count them by their last message. ``unread_by_operator_messages`` counts user messages
            that no operator has read, ``unread_by_user_messages`` operator messages that the user
            has not read; ``unread_by_operator_conversations`` and
            ``unread_by_user_conversations`` count the conversations that have any.
        invitations: Automatic invitations of the period (``sent``). Each is ``followed`` if its
            user wrote at any later time, else ``read`` or ``unread`` by the user. ``users`` counts
            invited users, ``users_followed`` those who wrote after an invitation.
        attachments: Messages of the period with a file: ``messages`` in all, ``by_users`` and
            ``by_operators``, in how many ``conversations``, and a dict ``by_type``: by the suffix
            of the file's address, the most frequent first; ``other`` is the rest, and those
            without a suffix.
        operators: By messages, the most first; at most 200. ``id`` and ``name`` are None for
            messages without a sender. ``messages`` are those without automatic invitations,
            ``conversations`` those in which they are. ``first_responses`` counts the conversations
            that this operator answered first, without those answered outside opening hours;
            ``p50_seconds`` and ``p90_seconds`` are the median and the ninth decile of their
            response times, or None.
        operators_total: The number of all operators.
        longest: The ten conversations with the most messages: ``user_id`` and ``name`` of the
            user, and ``messages``, ``user_messages``, ``operator_messages``, ``first_message_at``
            and ``last_message_at`` of the whole conversation.
    """

    timezone: str
    opening_hours: str | None
    since: str | None
    until: str | None
    computed_at: str
    coverage: Coverage
    totals: Totals
    before: dict[str, Any] | None
    unit: Literal["day", "week", "month", "year"]
    volume: list[dict[str, Any]]
    hours: list[dict[str, int]]
    responses: ResponseFigures
    states: dict[str, int]
    invitations: dict[str, int]
    attachments: dict[str, Any]
    operators: list[dict[str, Any]]
    operators_total: int
    longest: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class FiguresProgress:
    """How far `Mirror.figures` has come: ``done`` of ``total`` steps in ``seconds``.

    ``step`` is the one that begins.
    """

    step: str
    done: int
    total: int
    seconds: float


class FiguresDict(dict[str, Any]):
    """The dict that `Mirror.figures` returns as `Figures`; it renders as a card in a notebook."""

    def _repr_html_(self) -> str:
        figures: Any = self
        fresh, complete = coverage_lines(figures["coverage"])
        rows = [("period", span(figures)), ("data", f"{fresh} {complete}")]
        if figures["totals"]["messages"]:
            rows += [(name, f"{value} ({more})") for name, value, more, _ in main_figures(figures)]
        return card(title(figures, None), rows)


def title(figures: Figures, name: str | None) -> str:
    """``Conversations of chats, times in UTC``."""
    of = f" of {name}" if name else ""
    return f"Conversations{of}, times in {figures['timezone']}"


def main_figures(
    figures: Figures, before: Mapping[str, Any] | None = None
) -> list[tuple[str, str, str, str]]:
    """The name, the value and what it means of each main figure, and the list that it counts.

    Those of the period ``before`` lack what is known only of conversations as they are now.
    """
    found: Any = figures if before is None else before
    totals, first, now = found["totals"], found["responses"], figures["states"]
    half, most = seconds(first["p50_seconds"]), seconds(first["p90_seconds"])
    unanswered, waiting = first["unanswered"], now["user_wrote_last"]
    unread = now["unread_by_operator_messages"]
    talks = f"in {totals['conversations']:,} conversations"
    never = f"{percent(unanswered, first['asked'])} of {first['asked']:,} asked"
    share = f"{percent(waiting, totals['conversations'])} of conversations"
    unread_in = f"messages in {now['unread_by_operator_conversations']:,} conversations"
    counts = [
        ("Messages", totals["messages"], talks, "conversations"),
        ("Median first response", half, "half took at most this long", "answered"),
        ("90% of first responses within", most, "1 in 10 took longer", "answered"),
        ("Never answered", unanswered, never, "unanswered"),
        ("User wrote last", waiting, share, "user_wrote_last"),
        ("Unread by operators", unread, unread_in, "unread_by_operator"),
    ]
    rows = [
        (name, value if isinstance(value, str) else f"{value:,}", more, listed)
        for name, value, more, listed in counts
    ]
    return rows if before is None else rows[:4]


def span(figures: Figures) -> str:
    """The days from the first message to the last."""
    totals = figures["totals"]
    if totals["first_message_at"] is None:
        return "no messages with a time"
    first, last = (
        day(local(each, figures["timezone"])[:10])
        for each in (totals["first_message_at"], totals["last_message_at"])
    )
    return first if first == last else f"{first} to {last}"


def period(figures: Figures) -> str:
    """The period that was asked for, or nothing."""
    parts = []
    if figures["since"] is not None:
        parts.append(f"from {local(figures['since'], figures['timezone'])}")
    if figures["until"] is not None:
        parts.append(f"before {local(figures['until'], figures['timezone'])}")
    return " and ".join(parts)


def no_data(figures: Figures) -> str:
    """Why there is no message, and what to do."""
    users = figures["totals"]["users"]
    if asked := period(figures):
        return f"The mirror has no message {asked}; choose another period."
    if users:
        return (
            f"The mirror has {amount(users, 'user')} and no message: nobody has written yet, or no "
            "sync has read the message lists yet."
        )
    return "The mirror has no users and no messages yet; sync again once there are some."


def coverage_lines(coverage: Coverage) -> tuple[str, str]:
    """One sentence on how recent the data is, and one on how complete."""
    if coverage["as_of"] is None or coverage["age_seconds"] is None:
        fresh = "No sync over all users has finished yet."
    else:
        run = f"sync {coverage['run_id']}"
        partial = ", which its budget ended early" if coverage["state"] == "partial" else ""
        fresh = (
            f"Data as of {local(coverage['as_of'], 'UTC')} UTC ({run}{partial}), "
            f"{duration(coverage['age_seconds'])} old when these figures were computed."
        )
    users = coverage["users_certificate"] or "uncertified"
    lists = sum(coverage["lists_by_certificate"].values())
    if coverage["proved"]:
        return fresh, (
            f"Complete: the list of users and all {amount(lists, 'message list')} are proved."
        )
    parts = []
    if users == "uncertified":
        why = f" ({coverage['users_reason']})" if coverage["users_reason"] else ""
        parts.append(f"the list of users is not proved{why}")
    if coverage["unproved_lists"]:
        parts.append(
            f"{coverage['unproved_lists']:,} of {amount(lists, 'message list')} not proved"
        )
    return fresh, f"Perhaps incomplete: {', and '.join(parts)}."
