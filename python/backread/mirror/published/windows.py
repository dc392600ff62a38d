"""`read_window`: a part of a conversation, around a message or from one of its ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from backread._client.arguments import LARGEST, whole
from backread.errors import MirrorError
from backread.mirror.published.conversation import (
    MESSAGE_ORDER,
    Conversation,
    Deleted,
    count_messages,
    read_messages,
    read_user,
)

if TYPE_CHECKING:
    from backread.mirror.published.snapshot_reader import SnapshotReader

__all__ = ["Window", "read_window"]


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive messages of a conversation.

    ``conversation`` has only these messages. ``start`` is the position of the first one in the
    whole conversation, counted from 0; ``total`` is the number of all messages but deleted ones.
    """

    conversation: Conversation
    start: int
    total: int
    deleted: Deleted

    @property
    def end(self) -> int:
        """The position after the last message."""
        return self.start + len(self.conversation)

    @property
    def has_earlier(self) -> bool:
        """Whether there are messages before these."""
        return self.start > 0

    @property
    def has_later(self) -> bool:
        """Whether there are messages after these."""
        return self.end < self.total


def read_window(
    reader: SnapshotReader,
    user_id: int,
    *,
    at: Literal["first", "last"] = "last",
    around: int | None = None,
    before: int | None = None,
    after: int | None = None,
    limit: int = 100,
) -> Window:
    """A part of a conversation of the newest snapshot, in chronological order.

    Only the bodies of these messages are read, so it costs the same for long conversations as for
    short ones (some 50 ms for 50,000 messages). Deleted messages are left out.

    Args:
        reader: Opens the mirror's snapshots.
        user_id: The user.
        at: The end of the conversation to read, if none of the following is given.
        around: The id of a message to read with those around it.
        before: The id of a message; reads the messages before it.
        after: The id of a message; reads the messages after it.
        limit: The most messages to read.

    Returns:
        The messages; none if the conversation has none at that place.

    Raises:
        MirrorError: Nothing is published, or the snapshot has no such user or message.
        ValueError: More than one of ``around``, ``before`` and ``after``.

    Example:
        >>> window = read_window(reader, 42, around=1017, limit=20)
        >>> earlier = read_window(reader, 42, before=window.conversation[0].id)
    """
    limit = whole("limit", limit, 1, LARGEST, then="")
    given = [each for each in (around, before, after) if each is not None]
    if len(given) > 1:
        raise ValueError("give only one of around, before and after")
    snapshot = reader.snapshot()
    user = read_user(snapshot, user_id)
    spoken = f"({snapshot.of_user(user_id)['messages']}) WHERE user_id = ? AND deleted_at IS NULL"
    total, deleted = count_messages(snapshot, user_id)
    if not given:
        start, end = (0, limit) if at == "first" else (total - limit, total)
    else:
        found = snapshot.rows(
            f"SELECT place FROM (SELECT id, row_number() OVER (ORDER BY {MESSAGE_ORDER}) - 1 "
            f"AS place FROM {spoken}) WHERE id = ?",
            [user_id, given[0]],
        )
        if not found:
            raise MirrorError(
                f"the conversation with user {user_id} has no message {given[0]}; it may have been "
                "deleted"
            )
        [(place,)] = found
        if before is not None:
            start, end = place - limit, place
        elif after is not None:
            start, end = place + 1, place + 1 + limit
        else:
            start = max(0, min(place - limit // 2, total - limit))
            end = start + limit
    start, end = max(0, start), min(end, total)
    messages = read_messages(snapshot, user_id, first=start, count=max(0, end - start))
    return Window(Conversation(user, messages), start, total, deleted)
