"""Messages as bubbles with their own addresses, and the words of a search marked."""

from __future__ import annotations

from collections.abc import Sequence

from backread._display.bubbles import LONGEST_BODY, Bubbles
from backread._display.markup import Html, safe
from backread._display.records import marked
from backread.mirror.search import places_of
from backread.models import Message

__all__ = ["PageBubbles", "message_address"]


def message_address(user_id: int, message_id: int) -> str:
    """Where the page shows a message."""
    return f"#/user/{user_id}/message/{message_id}"


class PageBubbles(Bubbles):
    """Bubbles for the page of one user; ``words`` are folded."""

    def __init__(self, user_id: int, words: Sequence[str] = ()) -> None:
        super().__init__()
        self._user_id = user_id
        self._words = words

    def attributes(self, message: Message) -> Html:
        """The message's id, by which the script finds it, and focus for links to it."""
        return Html(f' id="message-{message.id}" tabindex="-1"')

    def text(self, body: str) -> Html:
        """The body with the words marked."""
        return marked(body, places_of(body, self._words)) if self._words else safe(body)

    def moment(self, message: Message, time: Html) -> Html:
        """The time as a link to the message."""
        address = message_address(self._user_id, message.id)
        return Html(f'<a href="{address}" title="Link to message {message.id}">{time}</a>')

    def rest(self, message: Message, position: int, characters: int) -> Html:
        """A button that shows the whole body."""
        return Html(
            f'<button type="button" class="whole" data-message="{message.id}">Show '
            f"{characters:,} more characters</button>"
        )

    def whole(self, message: Message) -> Html:
        """All of a body that `rest` cut."""
        body = message.body or ""
        return Html(f"{self.text(body[:LONGEST_BODY])}{safe(body[LONGEST_BODY:])}")
