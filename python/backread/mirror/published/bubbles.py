"""Messages as people know them from a chat: the user on the left, operators on the right."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from urllib.parse import unquote, urlsplit

from backread._display.html import (
    Html,
    is_safe_link,
    link,
    needs_scrolling,
    quiet,
    safe,
    shortened,
)
from backread._display.words import amount, is_invisible, line
from backread.models import Message

LONGEST_BODY = 4_000
"""A bubble shows this many characters."""

LONGEST_NAME = 80


class Bubbles:
    """Renders messages as bubbles for a notebook; a subclass renders them for another page.

    Args:
        longest: How many characters of a body are shown; None for all.
        zone: The time zone of days and times.
    """

    def __init__(self, longest: int | None = LONGEST_BODY, zone: tzinfo = UTC) -> None:
        self._longest = longest
        self._zone = zone

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
            time = message.created_at
            if time is not None and time.tzinfo:
                time = time.astimezone(self._zone)
            if time is not None and time.date() != day:
                day, before = time.date(), None
                parts.append(
                    f'<div class="br-day"><time datetime="{day}" class="br-quiet">'
                    f"{day:%A}, {day}</time></div>"
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

    def file(self, message: Message, address: str) -> Html:
        """What was sent, by its address."""
        return _file(address)

    def rest(self, message: Message, position: int, characters: int) -> Html:
        """Says how many characters of the body are left out, and where they are."""
        return quiet(f"… {characters:,} more characters in conversation[{position}].body")

    def _message(
        self,
        message: Message,
        position: int,
        time: datetime | None,
        speaker: tuple[str, str],
        named: bool,
    ) -> str:
        side, name = speaker
        kind = f" {quiet('automatic invitation')}" if side == "automatic" else ""
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
            content = quiet(f"{amount(len(body), 'character')}, none to be seen")
        if self._longest is not None and len(body) > self._longest:
            content += self.rest(message, position, len(body) - self._longest)
        if message.file_url:
            content += f'<span class="br-file">{self.file(message, message.file_url)}</span>'
        if not content:
            content = quiet("no text")
        moment = "no time"
        if time is not None:
            moment = f'<time datetime="{utc(time):%Y-%m-%dT%H:%M:%S}Z">{time:%H:%M}</time>'
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
    names = (message.sender_name or "", message.sender_type or "")
    name = next((each for each in names if not is_invisible(each)), "unknown")
    return shortened(name, LONGEST_NAME)


def _file(address: str) -> Html:
    """A link with the file's name and host if the address is safe, else the address as text."""
    if not is_safe_link(address):
        return Html(f"File: {link(shortened(address, 500))}")
    parts = urlsplit(address)
    name = line(unquote(parts.path).rstrip("/").rpartition("/")[2]) or "file"
    return Html(f"{link(address, shortened(name, LONGEST_NAME))} {quiet(f'({parts.netloc})')}")


def utc(time: datetime) -> datetime:
    """The time in UTC; one without a time zone as it is."""
    return time.astimezone(UTC) if time.tzinfo else time
