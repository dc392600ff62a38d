"""Markup of the page: lists of people and messages, the bubbles of one user, and the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from html import escape
from urllib.parse import parse_qsl, urlencode

from backread._browse.files import Reply, StoredFile
from backread._display.html import Html, marked, quiet, safe, sheet, shortened
from backread._display.words import amount, is_invisible, line, moment, size
from backread._report.figures import Figures, local
from backread._report.page import report_html
from backread.mirror.published.bubbles import LONGEST_BODY, LONGEST_NAME, Bubbles
from backread.mirror.published.people import Person
from backread.mirror.published.search import SearchHit, places_of
from backread.models import Message, User

OPTIONS = ("timezone", "days", "since", "until", "hours")

PERIODS = {
    "": "any time",
    "1": "today",
    "7": "last 7 days",
    "30": "last 30 days",
    "90": "last 90 days",
    "365": "last 365 days",
}

POLICY = "frame-ancestors 'none'; script-src 'none'; base-uri 'none'; form-action 'self'"
"""The page's own policy, which `report_html` writes into it, allows its style."""


def people_html(people: Iterable[Person], zone: tzinfo) -> Html:
    """An item for each person."""
    return Html("".join(_person(each, zone) for each in people))


def hits_html(hits: Iterable[SearchHit], names: Mapping[int, str], zone: tzinfo) -> Html:
    """An item for each hit; ``names`` are those of users."""
    return Html("".join(_hit(hit, names.get(hit.user_id), zone) for hit in hits))


def heading(user: User, total: int, zone: str) -> Html:
    """The name of a conversation, and the user's fields on demand."""
    facts = [f"user {user.id}", amount(total, "message"), f"times in {zone}"]
    return Html(
        f'<h2 id="conversation-name" tabindex="-1"><bdi>{_name(user.id, user.name, user.email)}'
        f'</bdi></h2><p class="quiet">{safe(" · ".join(facts))}</p>'
        f'<details><summary>Details</summary><div class="backread fields">'
        f"{sheet(f'User {user.id}', user._rows())}</div></details>"
    )


def _person(person: Person, zone: tzinfo) -> str:
    name = _name(person.user_id, person.name, person.email)
    preview = line(person.last_body or "") if person.messages else "no messages"
    said = safe(preview) if preview else "&nbsp;"
    is_answered = person.last_sender_type == "operator"
    who = '<span class="quiet">Operator: </span>' if is_answered and preview else ""
    marks = []
    if person.unread_by_operator:
        marks.append(f'<span class="mark">{person.unread_by_operator:,} unread</span>')
    if person.files:
        marks.append(safe(amount(person.files, "file")))
    count = amount(person.messages, "message")
    facts = " · ".join([safe(count), *marks])
    return (
        f'<li><a class="item" href="#/user/{person.user_id}" data-user="{person.user_id}">'
        f'<span class="item-top"><bdi class="item-name">{name}</bdi>'
        f"{_day(person.last_message_at, zone)}</span>"
        f'<span class="item-text">{who}<bdi dir="auto">{said}</bdi></span>'
        f'<span class="item-facts">{facts}</span></a></li>'
    )


def _hit(hit: SearchHit, name: str | None, zone: tzinfo) -> str:
    address = message_address(hit.user_id, hit.id)
    by = "" if hit.sender_type == "user" else f"{line(hit.sender_name or hit.sender_type or '')}: "
    return (
        f'<li><a class="item" href="{address}" data-user="{hit.user_id}" data-message="{hit.id}">'
        f'<span class="item-top"><bdi class="item-name">{_name(hit.user_id, name, None)}</bdi>'
        f'{_day(hit.created_at, zone)}</span><span class="item-hit">'
        f'<span class="quiet"><bdi>{safe(shortened(by, LONGEST_NAME))}</bdi></span>'
        f'<bdi dir="auto">{marked(hit.snippet, hit.matches)}</bdi></span></a></li>'
    )


def _name(user_id: int, *names: str | None) -> Html:
    for name in names:
        if name and not is_invisible(name):
            return safe(shortened(line(name), LONGEST_NAME))
    return safe(f"User {user_id}")


def _day(time: datetime | None, zone: tzinfo) -> str:
    if time is None:
        return ""
    full = moment(time.replace(microsecond=0))
    return (
        f'<time datetime="{time:%Y-%m-%dT%H:%M:%SZ}" title="{full}">'
        f"{time.astimezone(zone):%Y-%m-%d}</time>"
    )


def message_address(user_id: int, message_id: int) -> str:
    """Where the page shows a message."""
    return f"#/user/{user_id}/message/{message_id}"


class PageBubbles(Bubbles):
    """Bubbles for the page of one user; ``words`` are those of `search_words`."""

    def __init__(
        self,
        user_id: int,
        words: Sequence[str],
        files: Mapping[int, StoredFile],
        zone: tzinfo,
    ) -> None:
        super().__init__(zone=zone)
        self._user_id = user_id
        self._words = words
        self._files = files

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

    def file(self, message: Message, address: str) -> Html:
        """A stored picture, or a stored file to save; else the link to where it was sent."""
        stored = self._files.get(message.id)
        if stored is None:
            return super().file(message, address)
        place = f"api/file?user={self._user_id}&amp;message={message.id}"
        name = safe(shortened(line(stored.name), LONGEST_NAME))
        if stored.picture is None:
            return Html(f'<a href="{place}" download>{name}</a> {quiet(size(stored.bytes))}')
        return Html(f'<a href="{place}"><img src="{place}" alt="{name}" loading="lazy"></a>')

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


def report_page(figures: Figures, name: str, query: Mapping[str, str]) -> Reply:
    """The page; ``query`` has the options that were chosen on it."""
    chosen = {name: query[name] for name in OPTIONS if query.get(name)}

    def address(listed: str) -> str:
        given = dict(parse_qsl(listed))
        if "user" in given:
            return f"../#/user/{given['user']}?{urlencode({'timezone': figures['timezone']})}"
        kept = dict(chosen)
        if "since" in given:
            kept.pop("days", None)
            if figures["since"] is not None:
                first = local(figures["since"], figures["timezone"])[:10]
                given["since"] = max(given["since"], first)
            given["until"] = min(given["until"], chosen.get("until", given["until"]))
        return f"../#/?{urlencode(kept | given)}"

    page = report_html(figures, name, address=address, controls=_controls(chosen))
    headers = {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": POLICY}
    return Reply(200, page.encode("utf-8", "replace"), headers)


def _controls(chosen: Mapping[str, str]) -> str:
    def field(label: str, name: str, kind: str = "text", hint: str = "") -> str:
        value = escape(chosen.get(name, ""))
        return (
            f'<label>{label} <input type="{kind}" name="{name}" value="{value}" '
            f'placeholder="{hint}"></label>'
        )

    days = "".join(
        f'<option value="{value}"{" selected" if chosen.get("days") == value else ""}>{text}'
        "</option>"
        for value, text in PERIODS.items()
    )
    return (
        '<form><a href="../">Back to the conversations</a>'
        f'<label>Period <select name="days">{days}</select></label>'
        f"{field('or from', 'since', 'date')}{field('to', 'until', 'date')}"
        f"{field('Time zone', 'timezone', hint='UTC')}"
        f"{field('Opening hours', 'hours', hint='mon-fri 9-17')}<button>Show</button></form>"
    )
