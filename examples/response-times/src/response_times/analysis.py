"""Reads every conversation and counts.

The service promises little: a message may come without a time or without a sender's type, senders
may be of a kind that nobody has told us of, and lists may be in any order. So messages are put in
order here, those without a time are counted and left out, and what is neither the user nor an
operator answers nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from backread import AsyncClient, Client
from backread.models import Message, WalkReport

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A user who wrote last."""

    user_id: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Report:
    """What the conversations add up to."""

    users: frozenset[int]
    """The ids of the users who have messages."""
    messages: int
    """How many messages were read, those without a time among them."""
    without_time: int
    median_by_weekday: dict[str, timedelta]
    """From a user's first message to the first answer, by the weekday (UTC) of that message."""
    waiting: tuple[Waiting, ...]
    """Who waits for an answer, the longest first."""
    doubt: str | None
    """Why this may not be all of it; None where the reading was proved to be complete."""


def read(client: Client) -> Report:
    """Reads every message of every user."""
    listing = client.messages.all()
    messages = list(listing)
    return summarize(messages, listing.report)


async def read_async(client: AsyncClient) -> Report:
    """The same as `read`, awaited."""
    listing = client.messages.all()
    messages = [message async for message in listing]
    return summarize(messages, listing.report)


def summarize(messages: Collection[Message], walk: WalkReport) -> Report:
    """Counts; it asks nobody."""
    conversations: dict[int, list[tuple[datetime, int, str | None]]] = defaultdict(list)
    for message in messages:
        # An invitation that the widget sent by itself is no answer.
        if message.created_at is not None and not message.auto_invitation:
            said = (message.created_at, message.id, message.sender_type)
            conversations[message.user_id].append(said)
    seconds: dict[str, list[float]] = defaultdict(list)
    waiting = []
    for user_id, spoken in conversations.items():
        # By the id where two wrote at the same moment, so that the list's order does not show.
        spoken.sort(key=lambda each: each[:2])
        asked = next((at for at, _, who in spoken if who == "user"), None)
        if asked is None:
            continue
        answers = (at for at, _, who in spoken if who == "operator" and at >= asked)
        if (answered := next(answers, None)) is not None:
            seconds[WEEKDAYS[asked.weekday()]].append((answered - asked).total_seconds())
        at, _, who = [each for each in spoken if each[2] in ("user", "operator")][-1]
        if who == "user":
            waiting.append(Waiting(user_id, at))
    return Report(
        users=frozenset(message.user_id for message in messages),
        messages=len(messages),
        without_time=sum(message.created_at is None for message in messages),
        median_by_weekday={day: timedelta(seconds=median(each)) for day, each in seconds.items()},
        waiting=tuple(sorted(waiting, key=lambda each: each.since)),
        doubt=walk.reason if walk.certificate == "uncertified" else None,
    )
