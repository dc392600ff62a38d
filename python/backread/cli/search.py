"""``search``: messages of the mirror that contain words, or people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from backread.cli.arguments import Folder, Since, Until, argument, flag, value
from backread.cli.exits import UnusableArgumentError
from backread.cli.output import Target, with_target, write_rows
from backread.cli.rows import readable_time, time_text
from backread.cli.stderr import say, waiting
from backread.cli.text import plain
from backread.errors import MirrorError

if TYPE_CHECKING:
    from rich.text import Text

    from backread.mirror import Mirror


BLANKS = re.compile(r"\s+")
MESSAGES = ("created_at (UTC)", "user_id", "id", "sender", "text")
PEOPLE = ("user_id", "name", "email", "messages", "last_message_at (UTC)", "last_body")


@with_target
def search(
    target: Target,
    folder: Folder,
    words: Annotated[
        list[str],
        argument("WORDS", "All of them must occur; '\"a phrase\"' in double quotes is one word."),
    ],
    people: Annotated[
        bool, flag("Find people instead, by name, e-mail address, reference or id.", "--people")
    ] = False,
    since: Since = None,
    until: Until = None,
    user: Annotated[
        int | None, value("USER_ID", "Only messages of this user's conversation.", min=0)
    ] = None,
    limit: Annotated[int, value("NUMBER", "How many to show, at most.", min=1)] = 50,
) -> None:
    """Finds messages in the mirror in FOLDER, or people, newest first.

    Case and accents do not count, and all characters but double quotes stand for themselves.
    Times are UTC. `backread show FOLDER USER_ID --message MESSAGE_ID` shows what was said before
    and after.

    Examples:
        backread search chats refund invoice
        backread search chats '"not paid"' --since 2026-03-01
        backread search chats --people zoe
        backread search chats refund | jq .user_id
    """
    from backread.mirror import Mirror

    if people and user is not None:
        raise UnusableArgumentError("--people and --user do not agree; give the id as a word")
    mirror = Mirror(folder)
    find = _people if people else _messages
    with waiting("searching"):
        rows = find(mirror, " ".join(words), since=since, until=until, user=user, limit=limit)
    if not rows and user is not None:
        _refuse_unknown(mirror, user)
    if people:
        write_rows(rows, target, PEOPLE, _person_cells, wrap=True)
    else:
        write_rows(rows, target, MESSAGES, _message_cells, wrap=True)
    if not rows:
        say(f"no {'one' if people else 'message'} has all of these words", named=False)
    elif len(rows) == limit:
        say(f"these are the newest {limit:,}; --limit shows more", named=False)


def _messages(mirror: Mirror, words: str, **limits: Any) -> list[dict[str, Any]]:
    return [_document(hit) for hit in mirror.search(words, **limits)]


def _people(
    mirror: Mirror,
    words: str,
    *,
    since: datetime | None,
    until: datetime | None,
    user: int | None,
    limit: int,
) -> list[dict[str, Any]]:
    from backread.mirror.published.people import People, PeopleQuery
    from backread.mirror.published.snapshot_reader import SnapshotReader

    people = People(SnapshotReader(mirror.folder.absolute()))
    found = people.find(PeopleQuery(words, since, until), limit=limit)
    return [_document(person) for person in found.people]


def _document(found: Any) -> dict[str, Any]:
    return {
        name: time_text(value) if isinstance(value, datetime) else value
        for name, value in asdict(found).items()
    }


def _refuse_unknown(mirror: Mirror, user: int) -> None:
    if not mirror.sql("SELECT 1 FROM users WHERE id = ?", [user]).fetchall():
        raise MirrorError(
            f"the mirror in {mirror.folder} has no user {user}; check --user, or sync again if the "
            "user is new"
        )


def _message_cells(hit: dict[str, Any]) -> Sequence[object]:
    name = hit["sender_name"] or hit["sender_type"] or "unknown"
    return (_time(hit["created_at"]), hit["user_id"], hit["id"], name, _snippet(hit))


def _person_cells(person: dict[str, Any]) -> Sequence[object]:
    return [
        _time(person[name.removesuffix(" (UTC)")]) if name.endswith("(UTC)") else person[name]
        for name in PEOPLE
    ]


def _time(text: str | None) -> str | None:
    return None if text is None else readable_time(text)


def _snippet(hit: dict[str, Any]) -> Text:
    """The text on one line, with the words marked."""
    from rich.text import Text

    text = Text()
    end = 0
    for low, high in [*hit["matches"], (len(hit["snippet"]), len(hit["snippet"]))]:
        text.append(_spaced(hit["snippet"][end:low]))
        text.append(_spaced(hit["snippet"][low:high]), style="bold yellow")
        end = high
    return text


def _spaced(text: str) -> str:
    return plain(BLANKS.sub(" ", text))
