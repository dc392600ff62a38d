"""A conversation as people know it from a chat: the user on the left, operators on the right."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from backread._display.markup import (
    Html,
    is_safe_link,
    link,
    needs_scrolling,
    output,
    safe,
    shortened,
)
from backread._display.style import CHAT, DOCUMENT
from backread._display.words import amount, is_invisible, line, sender_name

if TYPE_CHECKING:
    from backread.mirror.published.conversation import Conversation
    from backread.models import Message

__all__ = ["Bubbles", "conversation_document", "conversation_html"]

LONGEST_CONVERSATION = 200
"""The number of messages shown; a longer conversation shows its last ones."""

LONGEST_BODY = 4_000
"""A bubble shows this many characters."""

LONGEST_NAME = 80

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def conversation_html(conversation: Conversation) -> str:
    """The newest messages as bubbles, with times in UTC; fetches nothing."""
    return _chat(conversation, LONGEST_CONVERSATION, LONGEST_BODY, "b")


def conversation_document(conversation: Conversation) -> str:
    """A complete document with all messages as bubbles; it runs and fetches nothing."""
    chat = _chat(conversation, None, None, "h1")
    # Hashes instead of 'unsafe-inline': no style that a stranger wrote could apply.
    styles = " ".join(f"'sha256-{_digest(each)}'" for each in (DOCUMENT, CHAT))
    name = line(conversation.user.name or "")
    title = f"{shortened(name, LONGEST_NAME)} (user {conversation.user.id})".lstrip()
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src {styles}; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{safe(title)}</title>\n{DOCUMENT}\n</head>\n"
        f"<body>\n<main>{chat}</main>\n</body>\n</html>\n"
    )


def _digest(style: str) -> str:
    rules = style.removeprefix("<style>").removesuffix("</style>")
    return b64encode(sha256(rules.encode()).digest()).decode()


def _chat(conversation: Conversation, most: int | None, longest: int | None, name_tag: str) -> str:
    """At most ``most`` messages, ``longest`` characters of each; None for all."""
    user, messages = conversation.user, conversation.messages
    name = ""
    if not is_invisible(user.name or ""):
        shown = safe(shortened(user.name or "", LONGEST_NAME))
        name = f"<{name_tag}><bdi>{shown}</bdi></{name_tag}> "
    facts = [f"user {user.id}", amount(len(messages), "message"), *_span(messages), "times in UTC"]
    parts = [
        f'<div class="br-head">{name}<span class="br-quiet">{safe(" · ".join(facts))}</span></div>'
    ]
    cut = 0 if most is None else max(0, len(messages) - most)
    if cut:
        parts.append(
            f'<div class="br-note"><span class="br-quiet">{amount(cut, "earlier message")} not '
            f"drawn: slices draw any part, as in conversation[:{most}], and "
            "conversation.save('name.html') writes all</span></div>"
        )
    parts.append(Bubbles(longest).render(messages[cut:], start=cut))
    label = f"Conversation with user {user.id}"
    return output(CHAT + "".join(parts), " br-chat", f' role="region" aria-label="{label}"')


class Bubbles:
    """Renders messages as bubbles for a notebook; a subclass renders them for another page.

    Args:
        longest: How many characters of a body are shown; None for all.
    """

    def __init__(self, longest: int | None = LONGEST_BODY) -> None:
        self._longest = longest

    def render(self, messages: Sequence[Message], *, start: int = 0) -> Html:
        """The bubbles, with a heading for each day.

        Args:
            messages: In chronological order.
            start: The position of the first one in its conversation.
        """
        parts = []
        day = None
        before: tuple[str, str] | None = None
        for position, message in enumerate(messages, start=start):
            time = None if message.created_at is None else _utc(message.created_at)
            if time is not None and time.date() != day:
                day, before = time.date(), None
                parts.append(
                    f'<div class="br-day"><time datetime="{day}" class="br-quiet">'
                    f"{WEEKDAYS[day.weekday()]}, {day}</time></div>"
                )
            speaker = (_side(message), _name(message))
            parts.append(self._message(message, position, time, speaker, speaker != before))
            before = speaker
        return Html("".join(parts))

    def attributes(self, message: Message) -> Html:
        """More attributes of a message's element, each after a blank."""
        return Html("")

    def text(self, body: str) -> Html:
        """A body as markup."""
        return safe(body)

    def moment(self, message: Message, time: Html) -> Html:
        """The time of a message, or that it has none, as markup."""
        return time

    def rest(self, message: Message, position: int, characters: int) -> Html:
        """Says how many characters of the body are left out, and where they are."""
        return Html(
            f'<span class="br-quiet">… {characters:,} more characters in '
            f"conversation[{position}].body</span>"
        )

    def _message(
        self,
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
            shown = body[: self._longest]
            # Scrollable text must be reachable by keyboard; a saved document shows all of it.
            place = (
                ' class="br-body br-tall" tabindex="0"'
                if self._longest is not None and needs_scrolling(shown)
                else ' class="br-body"'
            )
            content = f'<div{place} dir="auto">{self.text(shown)}</div>'
        elif body:
            content = (
                f'<span class="br-quiet">{amount(len(body), "character")}, none to be seen</span>'
            )
        if self._longest is not None and len(body) > self._longest:
            content += self.rest(message, position, len(body) - self._longest)
        if message.file_url:
            content += f'<span class="br-file">{_file(message.file_url)}</span>'
        if not content:
            content = '<span class="br-quiet">no text</span>'
        moment = "no time"
        if time is not None:
            moment = f'<time datetime="{time:%Y-%m-%dT%H:%M:%S}Z">{time:%H:%M}</time>'
        when = [self.moment(message, Html(moment))]
        if side == "user" and message.read_by_operator is False:
            when.append(Html("not read by an operator"))
        if side in ("operator", "automatic") and message.read_by_user is False:
            when.append(Html("not read by the user"))
        return (
            f'<div class="br-message br-{side}"{self.attributes(message)}>{who}'
            f'<div class="br-bubble">{content}'
            f'<span class="br-when">{" · ".join(when)}</span></div></div>'
        )


def _side(message: Message) -> str:
    if message.auto_invitation:
        return "automatic"
    return message.sender_type if message.sender_type in ("user", "operator") else "other"


def _name(message: Message) -> str:
    names = (sender_name(message.sender) or "", message.sender_type or "")
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
