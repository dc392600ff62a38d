"""A conversation as people know it from a chat: the user on the left, operators on the right."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from backread._display.markup import Html, is_safe_link, link, needs_scrolling, safe, shortened
from backread._display.records import sender_name
from backread._display.style import CHAT
from backread._display.words import amount, is_invisible, line

if TYPE_CHECKING:
    from backread.mirror.conversation import Conversation
    from backread.models import Message

__all__ = ["conversation_html"]

LONGEST_CONVERSATION = 200
"""The number of messages shown; a longer conversation shows its last ones."""

LONGEST_BODY = 4_000
"""A bubble shows this many characters."""

LONGEST_NAME = 80

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def conversation_html(conversation: Conversation) -> str:
    """The conversation as bubbles, with times in UTC; fetches nothing."""
    user, messages = conversation.user, conversation.messages
    name = ""
    if not is_invisible(user.name or ""):
        name = f"<b><bdi>{safe(shortened(user.name or '', LONGEST_NAME))}</bdi></b> "
    facts = [f"user {user.id}", amount(len(messages), "message"), *_span(messages), "times in UTC"]
    parts = [
        f'<div class="br-head">{name}<span class="br-quiet">{safe(" · ".join(facts))}</span></div>'
    ]
    cut = max(0, len(messages) - LONGEST_CONVERSATION)
    if cut:
        parts.append(
            f'<div class="br-note"><span class="br-quiet">{amount(cut, "earlier message")} not '
            f"drawn: slices draw any part, as in conversation[:{LONGEST_CONVERSATION}], and "
            "print(conversation) writes all</span></div>"
        )
    day = None
    before: tuple[str, str] | None = None
    for position, message in enumerate(messages[cut:], start=cut):
        time = None if message.created_at is None else _utc(message.created_at)
        if time is not None and time.date() != day:
            day, before = time.date(), None
            parts.append(
                f'<div class="br-day"><time datetime="{day}" class="br-quiet">'
                f"{WEEKDAYS[day.weekday()]}, {day}</time></div>"
            )
        speaker = (_side(message), _name(message))
        parts.append(_message(message, position, time, speaker, speaker != before))
        before = speaker
    label = f"Conversation with user {user.id}"
    return (
        f'<div class="backread br-chat" role="region" aria-label="{label}">{CHAT}'
        f"{''.join(parts)}</div>"
    )


def _message(
    message: Message,
    position: int,
    time: datetime | None,
    speaker: tuple[str, str],
    named: bool,
) -> str:
    side, name = speaker
    kind = ' <span class="br-quiet">automatic invitation</span>' if side == "automatic" else ""
    who = f'<div class="br-who"><bdi>{safe(name)}</bdi>{kind}</div>' if named else ""
    body = message.body or ""
    content = ""
    if not is_invisible(body):
        shown = body[:LONGEST_BODY]
        # Scrollable text must be reachable by keyboard.
        place = (
            ' class="br-body br-tall" tabindex="0"'
            if needs_scrolling(shown)
            else ' class="br-body"'
        )
        content = f'<div{place} dir="auto">{safe(shown)}</div>'
    elif body:
        content = f'<span class="br-quiet">{amount(len(body), "character")}, none to be seen</span>'
    if len(body) > LONGEST_BODY:
        content += (
            f'<span class="br-quiet">… {len(body) - LONGEST_BODY:,} more characters in '
            f"conversation[{position}].body</span>"
        )
    if message.file_url:
        content += f'<span class="br-file">{_file(message.file_url)}</span>'
    if not content:
        content = '<span class="br-quiet">no text</span>'
    when = []
    if time is not None:
        when.append(f'<time datetime="{time:%Y-%m-%dT%H:%M:%S}Z">{time:%H:%M}</time>')
    else:
        when.append("no time")
    if side == "user" and message.read_by_operator is False:
        when.append("not read by an operator")
    if side in ("operator", "automatic") and message.read_by_user is False:
        when.append("not read by the user")
    return (
        f'<div class="br-message br-{side}">{who}<div class="br-bubble">{content}'
        f'<span class="br-when">{" · ".join(when)}</span></div></div>'
    )


def _side(message: Message) -> str:
    if message.auto_invitation:
        return "automatic"
    return message.sender_type if message.sender_type in ("user", "operator") else "other"


def _name(message: Message) -> str:
    names = (sender_name(message.sender), message.sender_type or "")
    name = next((each for each in names if not is_invisible(each)), "unknown")
    return shortened(name, LONGEST_NAME)


def _file(address: str) -> Html:
    """A link with the file's name and host if the address is safe, else the address as text."""
    if not is_safe_link(address):
        return Html(f"File: {link(shortened(address, 500))}")
    parts = urlsplit(address)
    name = line(unquote(parts.path).rstrip("/").rpartition("/")[2]) or "file"
    host = f'<span class="br-quiet">({safe(parts.netloc)})</span>'
    return Html(f"{link(address, shortened(name, LONGEST_NAME))} {host}")


def _span(messages: tuple[Message, ...]) -> list[str]:
    days = [_utc(each.created_at).date() for each in messages if each.created_at is not None]
    if not days:
        return []
    first, last = min(days), max(days)
    return [str(first) if first == last else f"{first} to {last}"]


def _utc(time: datetime) -> datetime:
    return time.astimezone(UTC) if time.tzinfo else time
