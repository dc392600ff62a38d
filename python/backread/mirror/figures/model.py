"""What `Mirror.figures` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypedDict


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

    ``users`` counts all users, with or without messages; ``conversations`` those with a message in
    the period. The messages are those created in the period: ``user_messages``,
    ``operator_messages`` (without automatic invitations), ``auto_invitations``, and
    ``other_messages`` of unknown kinds of senders. ``undated_messages`` have no time; they are
    counted only if there is no period, and are in no figure by time. ``first_message_at`` and
    ``last_message_at`` are UTC.
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
        unit: What an element of ``volume`` is: a day, or in a long period a week (from Monday), a
            month or a year.
        volume: Every such unit from the first message to the last, also those without messages:
            ``start`` is its first day; ``messages``, ``user_messages``, ``operator_messages``,
            ``auto_invitations`` and ``other_messages`` are as in `Totals`; ``conversations`` counts
            those whose first message is in it; ``p50_seconds`` is the median first response time
            of those whose user first wrote in it, or None.
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
