"""One user's messages from the published snapshot, as models."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Protocol, overload

from backread._client.arguments import LARGEST, whole
from backread._client.columns import ATTRIBUTE, MESSAGES, SENDER, USERS, Column
from backread._display.html import output, quiet, safe, shortened
from backread._display.style import CHAT, DOCUMENT
from backread._display.words import amount, is_invisible, line, minute, plain
from backread._files.json import SentNumber, fraction
from backread._files.paths import local_path, shown
from backread._files.unfinished import Unfinished
from backread.errors import MirrorError
from backread.mirror.published.bubbles import LONGEST_NAME, Bubbles, utc
from backread.mirror.published.snapshot_reader import OpenSnapshot, SnapshotReader
from backread.mirror.store.engine import from_microseconds
from backread.models import (
    Message,
    OperatorSender,
    OtherSender,
    Sender,
    User,
    UserAttribute,
    UserSender,
)

SENDER_TYPES: dict[str | None, type[UserSender | OperatorSender]] = {
    "user": UserSender,
    "operator": OperatorSender,
}

MESSAGE_ORDER = "created_at NULLS LAST, id"
"""The order of a conversation's messages, in SQL."""

LONGEST_PRETTY = 40
"""The number of messages shown by IPython in a terminal: the last ones."""


LONGEST_LINE = 2_000
"""The number of characters it shows of each."""

LONGEST_CHAT = 200
"""The number of messages shown in a notebook: the last ones."""


class Printer(Protocol):
    """The part of IPython's pretty printer that is used here."""

    def text(self, text: str) -> object: ...


@dataclass(frozen=True, slots=True)
class Deleted:
    """What the service no longer has of a conversation: the user, and how many messages."""

    user: bool
    messages: int

    def in_words(self) -> list[str]:
        """Sentences, none if nothing is deleted."""
        found = ["The service no longer has this user."] if self.user else []
        if self.messages:
            verb = "is" if self.messages == 1 else "are"
            found.append(f"{amount(self.messages, 'deleted message')} {verb} not shown.")
        return found


@dataclass(frozen=True, slots=True, repr=False)
class Conversation:
    """One user and the user's messages in chronological order, without deleted ones.

    A sequence of its messages; a slice is again a conversation. ``str()`` has one line per message,
    times in UTC. In a notebook it renders as a chat: the last 200 messages, or those of a slice.

    Text from strangers cannot affect a terminal or page: control characters are shown as pictures
    (``␛``), characters that change the text direction are removed from ``str()`` and isolated
    within their bubble, and a file's address is a link only if it is plain http or https.
    """

    user: User
    messages: tuple[Message, ...]

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    @overload
    def __getitem__(self, position: int) -> Message: ...
    @overload
    def __getitem__(self, position: slice) -> Conversation: ...
    def __getitem__(self, position: int | slice) -> Message | Conversation:
        if isinstance(position, slice):
            return Conversation(self.user, self.messages[position])
        return self.messages[position]

    def __str__(self) -> str:
        return "\n".join([self._title(), *map(_line, self.messages)])

    def __repr__(self) -> str:
        return f"<Conversation of user {self.user.id}, {amount(len(self), 'message')}>"

    def _title(self) -> str:
        name = line(self.user.name or "") or "no name"
        return f"{name} (user {self.user.id}), {amount(len(self), 'message')}"

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        lines = [self._title()]
        if (cut := len(self) - LONGEST_PRETTY) > 0:
            lines.append(f"... {amount(cut, 'earlier message')}; print(conversation) writes all")
        for message in self.messages[-LONGEST_PRETTY:]:
            said = _line(message)
            lines.append(said if len(said) <= LONGEST_LINE else f"{said[:LONGEST_LINE]} ...")
        printer.text("\n".join(lines))

    def to_html(self) -> str:
        """A complete HTML document with all messages, in light and dark, for a browser or print.

        It runs no script and loads nothing, and its content security policy forbids both. Files
        that were sent are links.
        """
        # Hashes instead of 'unsafe-inline': no style that a stranger wrote could apply.
        styles = " ".join(f"'sha256-{_digest(each)}'" for each in (DOCUMENT, CHAT))
        name = shortened(line(self.user.name or ""), LONGEST_NAME)
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            f"style-src {styles}; base-uri 'none'; form-action 'none'\">\n"
            '<meta name="referrer" content="no-referrer">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{safe(f'{name} (user {self.user.id})'.lstrip())}</title>\n{DOCUMENT}\n"
            f"</head>\n<body>\n<main>{self._chat(0, Bubbles(None), 'h1')}</main>\n"
            "</body>\n</html>\n"
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes `to_html` to a ``.html`` file, or the text of ``str()`` to a ``.txt`` file.

        The file is written completely or not at all, and replaces an existing one. It gets the
        access of its folder.

        Returns:
            The absolute path of the file.

        Raises:
            MirrorError: The file cannot be written.
            ValueError: The path is not local, or its suffix is another one.

        Example:
            >>> mirror.conversation(42).save("ada.html")
        """
        target = local_path(path, "save to a local file").absolute()
        match target.suffix.lower():
            case ".html" | ".htm":
                text = self.to_html()
            case ".txt":
                text = f"{self}\n"
            case _:
                raise ValueError(
                    f"{shown(target.name)} must end in .html or .txt, the formats of a conversation"
                )
        try:
            with Unfinished(target) as fresh:
                # Only text that a caller made can have surrogates.
                fresh.file.write(text.encode(errors="replace"))
        except OSError as error:
            raise MirrorError(
                f"{shown(target)} cannot be written: {error.strerror or error}; choose another file"
            ) from error
        return target

    def _repr_html_(self) -> str:
        return self._chat(max(0, len(self) - LONGEST_CHAT), Bubbles(), "b")

    def _chat(self, cut: int, bubbles: Bubbles, name_tag: str) -> str:
        """The messages without the first ``cut`` as bubbles, below the name and what they are."""
        user_id, name = self.user.id, ""
        if not is_invisible(self.user.name or ""):
            shown_name = safe(shortened(self.user.name or "", LONGEST_NAME))
            name = f"<{name_tag}><bdi>{shown_name}</bdi></{name_tag}> "
        times = [utc(each.created_at) for each in self if each.created_at is not None]
        days = sorted({str(each.date()) for each in (min(times), max(times))} if times else ())
        facts = [f"user {user_id}", amount(len(self), "message"), " to ".join(days), "times in UTC"]
        head = f'<div class="br-head">{name}{quiet(" · ".join(filter(None, facts)))}</div>'
        if cut:
            left_out = quiet(
                f"{amount(cut, 'earlier message')} not drawn: slices draw any part, as in "
                f"conversation[:{LONGEST_CHAT}], and conversation.save('name.html') writes all"
            )
            head += f'<div class="br-note">{left_out}</div>'
        drawn = bubbles.render(self.messages[cut:], start=cut)
        label = f' role="region" aria-label="Conversation with user {user_id}"'
        return output(f"{CHAT}{head}{drawn}", " br-chat", label)


def _digest(style: str) -> str:
    rules = style.removeprefix("<style>").removesuffix("</style>")
    return b64encode(sha256(rules.encode()).digest()).decode()


def _read_user(snapshot: OpenSnapshot, source: str, user_id: int) -> User:
    users = _records(snapshot, USERS, f"({source}) WHERE id = ?", user_id)
    if not users:
        raise MirrorError(
            f"the published snapshot has no user {user_id}; sync again if the user is new"
        )
    return User(**users[0])


def _records(
    snapshot: OpenSnapshot, columns: Sequence[Column], source: str, user_id: int
) -> list[dict[str, Any]]:
    # DuckDB needs a time zone database to return datetimes.
    names = ", ".join(
        f'epoch_us("{each.name}")' if each.kind == "datetime" else f'"{each.name}"'
        for each in columns
    )
    return [
        {each.name: _value(each.kind, value) for each, value in zip(columns, row, strict=True)}
        for row in snapshot.rows(f"SELECT {names} FROM {source}", [user_id])
    ]


def attributes_of(stored: Sequence[dict[str, Any]] | None) -> tuple[UserAttribute, ...] | None:
    """A user's custom properties, from the value of the column ``user_attributes``."""
    if stored is None:
        return None
    return tuple(
        UserAttribute(**{each.name: _value(each.kind, item[each.name]) for each in ATTRIBUTE})
        for item in stored
    )


def _line(message: Message) -> str:
    moment = "????-??-?? ??:??" if message.created_at is None else minute(message.created_at)
    name = line(message.sender_name or message.sender_type or "unknown")
    body = plain(message.body or "").replace("\n", "\n" + " " * 18)
    file = f" [{line(message.file_url)}]" if message.file_url else ""
    return f"{moment}  {name}: {body}{file}"


def _value(kind: str, stored: Any) -> Any:
    if kind == "dict":
        return json.loads(stored, parse_int=_integer, parse_float=fraction) if stored else {}
    if stored is None:
        return None
    if kind == "datetime":
        return from_microseconds(stored)
    if kind == "tuple":
        return attributes_of(stored)
    return stored


def _integer(digits: str) -> int | SentNumber:
    """As the client reads it: Python limits the digits of an int."""
    try:
        return int(digits)
    except ValueError:
        return SentNumber(digits)


def _message(values: dict[str, Any]) -> Message:
    names = [name for name in values if name.startswith(SENDER) and name != "sender_type"]
    sender = {name.removeprefix(SENDER): values.pop(name) for name in names}
    return Message(**values, sender=_sender(values["sender_type"], sender))


def _sender(sender_type: str | None, values: dict[str, Any]) -> Sender | None:
    documented = SENDER_TYPES.get(sender_type)
    if documented is not None and values["id"] is not None:
        return documented(**{each.name: values[each.name] for each in fields(documented)})
    sender_id, extra = values.pop("id"), values.pop("extra")
    sent = {name: value for name, value in values.items() if value is not None} | extra
    return None if sender_id is None and not sent else OtherSender(sender_type, sender_id, sent)


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


def read_window(
    reader: SnapshotReader,
    user_id: int,
    *,
    at: Literal["first", "last"] = "last",
    around: int | None = None,
    before: int | None = None,
    after: int | None = None,
    limit: int = LARGEST,
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
        limit: The maximum number of messages.

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
    of_user = snapshot.of_user(user_id)
    user = _read_user(snapshot, of_user["users"], user_id)
    spoken = f"({of_user['messages']}) WHERE user_id = ? AND deleted_at IS NULL"
    [(total, deleted, is_user_deleted)] = snapshot.rows(
        "SELECT count(*) FILTER (deleted_at IS NULL), count(*) FILTER (deleted_at IS NOT NULL), "
        f"EXISTS (FROM ({of_user['users']}) WHERE id = ? AND deleted_at IS NOT NULL) "
        f"FROM ({of_user['messages']}) WHERE user_id = ?",
        [user_id, user_id],
    )
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
    part = f"ORDER BY {MESSAGE_ORDER} LIMIT {max(0, end - start)} OFFSET {start}"
    records = _records(snapshot, MESSAGES, f"{spoken} {part}", user_id)
    conversation = Conversation(user, tuple(map(_message, records)))
    return Window(conversation, start, total, Deleted(is_user_deleted, deleted))
