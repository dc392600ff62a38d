"""What `Mirror.figures` returns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal

from backread._files.dataclass_json import to_json_value

__all__ = [
    "AttachmentFigures",
    "Coverage",
    "Figures",
    "FiguresProgress",
    "HourFigures",
    "InvitationFigures",
    "LongConversation",
    "OperatorFigures",
    "PeriodFigures",
    "ResponseFigures",
    "StateFigures",
    "Totals",
    "UnprovedList",
]

Unit = Literal["day", "week", "month", "year"]


@dataclass(frozen=True, slots=True)
class UnprovedList:
    """The message list of ``user_id``, which no certificate proves.

    ``reason`` says why; None if unknown.
    """

    user_id: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Coverage:
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
        unproved: The first twenty of them.
        rejects: The number of records that did not fit the schema and are in no figure.
        odd_values: How many values of documented fields have another type, by table and column;
            they are null in the figures.
    """

    run_id: int | None
    mode: str | None
    state: str | None
    as_of: datetime | None
    age_seconds: float | None
    users_certificate: str | None
    users_reason: str | None
    lists_by_certificate: dict[str, int]
    unproved_lists: int
    unproved: tuple[UnprovedList, ...]
    rejects: int
    odd_values: dict[str, int]

    @property
    def proved(self) -> bool:
        """Whether the list of users and every message list have a certificate."""
        users = self.users_certificate not in (None, "uncertified")
        return users and not self.unproved_lists


@dataclass(frozen=True, slots=True)
class Totals:
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
    first_message_at: datetime | None
    last_message_at: datetime | None


@dataclass(frozen=True, slots=True)
class PeriodFigures:
    """The messages of one day, week (from Monday), month or year, by who wrote them.

    ``start`` is its first day. ``user_messages``, ``operator_messages``, ``auto_invitations`` and
    ``other_messages`` are as in `Totals`.
    ``conversations`` counts those whose first message is in it. ``p50_seconds`` is the median first
    response time of the conversations whose user first wrote in it.
    """

    start: date
    user_messages: int
    operator_messages: int
    auto_invitations: int
    other_messages: int
    conversations: int
    p50_seconds: float | None

    @property
    def messages(self) -> int:
        """All messages."""
        return (
            self.user_messages
            + self.operator_messages
            + self.auto_invitations
            + self.other_messages
        )


@dataclass(frozen=True, slots=True)
class HourFigures:
    """What was written on one ``weekday`` (1 is Monday) in one ``hour`` of the day (0 to 23).

    ``user_messages`` and ``operator_messages`` are as in `Totals`.
    """

    weekday: int
    hour: int
    user_messages: int
    operator_messages: int


@dataclass(frozen=True, slots=True)
class ResponseBucket:
    """How many first responses took at least ``from_seconds`` and less than ``to_seconds``.

    ``conversations`` is their number.
    """

    from_seconds: float
    to_seconds: float | None
    conversations: int


@dataclass(frozen=True, slots=True)
class ResponseFigures:
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
        buckets: The distribution.
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
    buckets: tuple[ResponseBucket, ...]


@dataclass(frozen=True, slots=True)
class StateFigures:
    """Where the conversations stand that have a message in the period.

    ``user_wrote_last``, ``operator_wrote_last``, ``invitation_last`` and ``other_last`` say whose
    message is the last one. ``unread_by_operator_messages`` counts user messages that no operator
    has read, ``unread_by_user_messages`` operator messages that the user has not read;
    ``unread_by_operator_conversations`` and ``unread_by_user_conversations`` count the
    conversations that have any.
    """

    user_wrote_last: int
    operator_wrote_last: int
    invitation_last: int
    other_last: int
    unread_by_operator_messages: int
    unread_by_operator_conversations: int
    unread_by_user_messages: int
    unread_by_user_conversations: int


@dataclass(frozen=True, slots=True)
class InvitationFigures:
    """Automatic invitations of the period (``sent``) and what came of them.

    Each is ``followed`` if its user wrote at any later time, else ``read`` or ``unread`` by the
    user. ``users`` counts invited users, ``users_followed`` those who wrote after an invitation.
    """

    sent: int
    followed: int
    read: int
    unread: int
    users: int
    users_followed: int


@dataclass(frozen=True, slots=True)
class AttachmentFigures:
    """Messages of the period with a file: ``messages`` in all, in ``conversations``.

    ``by_users`` and ``by_operators`` count those that users and operators sent.
    ``by_type`` counts them by the suffix of the file's address, the most frequent first; ``other``
    is the rest, and those without a suffix.
    """

    messages: int
    by_users: int
    by_operators: int
    conversations: int
    by_type: dict[str, int]


@dataclass(frozen=True, slots=True)
class OperatorFigures:
    """The work of one operator in the period.

    ``id`` and ``name`` are None for messages without a sender.

    ``messages`` are those without automatic invitations, ``conversations`` those in which they are.
    ``first_responses`` counts the conversations that this operator answered first, without those
    answered outside opening hours; ``p50_seconds`` and ``p90_seconds`` are the median and the ninth
    decile of their response times.
    """

    id: int | None
    name: str | None
    messages: int
    conversations: int
    first_responses: int
    p50_seconds: float | None
    p90_seconds: float | None


@dataclass(frozen=True, slots=True)
class LongConversation:
    """One of the conversations with the most messages, that of ``user_id`` (``name``).

    ``messages``, ``user_messages``, ``operator_messages``, ``first_message_at`` and
    ``last_message_at`` (UTC) are of the whole of it.
    """

    user_id: int
    name: str | None
    messages: int
    user_messages: int
    operator_messages: int
    first_message_at: datetime | None
    last_message_at: datetime | None


@dataclass(frozen=True, slots=True)
class FiguresProgress:
    """How far `Mirror.figures` has come: ``done`` of ``total`` steps in ``seconds``.

    ``step`` is the one that begins.
    """

    step: str
    done: int
    total: int
    seconds: float


@dataclass(frozen=True, slots=True, repr=False)
class Figures:
    """Figures about the conversations of a mirror; see `Mirror.figures`.

    Attributes:
        timezone: The time zone of days, weekdays and hours; ``UTC`` if none was given.
        opening_hours: The opening hours, in a uniform spelling; None if none were given.
        since: The beginning of the period, in UTC; None without one.
        until: The end of the period, in UTC; None without one.
        computed_at: When the figures were computed, in UTC.
        coverage: How recent and how complete the data is.
        totals: Users, conversations and messages.
        unit: What a row of ``volume`` is: a day, or in a long period a week, a month or a year.
        volume: Every such unit from the first message to the last, also those without messages.
        hours: All hours of the week that have messages.
        responses: How long users waited for the first response.
        states: Who wrote last, and what is unread.
        invitations: Automatic invitations and what came of them.
        attachments: Messages with a file.
        operators: By messages, the most first; at most 200.
        operators_total: The number of all operators.
        longest: The ten conversations with the most messages.
    """

    timezone: str
    opening_hours: str | None
    since: datetime | None
    until: datetime | None
    computed_at: datetime
    coverage: Coverage
    totals: Totals
    unit: Unit
    volume: tuple[PeriodFigures, ...]
    hours: tuple[HourFigures, ...]
    responses: ResponseFigures
    states: StateFigures
    invitations: InvitationFigures
    attachments: AttachmentFigures
    operators: tuple[OperatorFigures, ...]
    operators_total: int
    longest: tuple[LongConversation, ...]

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON values: times and dates as ISO 8601 text."""
        document: dict[str, Any] = to_json_value(self)
        return document

    def __repr__(self) -> str:
        totals = self.totals
        return (
            f"<Figures of {totals.messages:,} messages in {totals.conversations:,} conversations, "
            f"times in {self.timezone}>"
        )
