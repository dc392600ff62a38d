"""The files that were sent in conversations, as far as `Mirror.fetch_files` has stored them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from backread._browse.reply import Reply, attached
from backread.errors import MirrorError
from backread.mirror.published.snapshot_reader import OpenSnapshot
from backread.mirror.store.folder import file_path

__all__ = ["StoredFile", "file_reply", "stored_files"]

PICTURES = {
    rb"\x89PNG\r\n\x1a\n": "image/png",
    rb"\xff\xd8\xff": "image/jpeg",
    rb"GIF8[79]a": "image/gif",
    rb"RIFF.{4}WEBP": "image/webp",
}
"""The media types that are shown, by how their files begin."""

FILES = """
SELECT message_id, sha256, name, bytes
FROM files JOIN messages ON messages.user_id = files.user_id AND messages.id = message_id
WHERE files.user_id = ? AND deleted_at IS NULL AND regexp_full_match(sha256, '[0-9a-f]{64}')
    AND split_part(files.file_url, '?', 1) = split_part(messages.file_url, '?', 1)
"""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a message; ``picture`` is its media type if it can be shown."""

    path: Path
    name: str
    bytes: int
    picture: str | None


def stored_files(snapshot: OpenSnapshot, user_id: int) -> dict[int, StoredFile]:
    """The stored files of a user's conversation, by the id of their message."""
    found = {}
    for message_id, sha256, name, size in snapshot.rows(FILES, [user_id]):
        path = file_path(snapshot.mirror, sha256)
        if path.is_file():
            found[message_id] = StoredFile(path, name, size, _picture(path))
    return found


def file_reply(snapshot: OpenSnapshot, user_id: int, message_id: int) -> Reply:
    """The file of a message, which no browser takes for a page: a picture, or a download."""
    stored = stored_files(snapshot, user_id).get(message_id)
    if stored is None:
        raise MirrorError(f"no file of message {message_id} of user {user_id} is stored")
    headers = attached(stored.name)
    if stored.picture is not None:
        headers = {"Content-Type": stored.picture, "Content-Disposition": "inline"}
    headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return Reply(200, headers=headers, file=stored.path)


def _picture(path: Path) -> str | None:
    with path.open("rb") as file:
        beginning = file.read(16)
    kinds = (kind for sign, kind in PICTURES.items() if re.match(sign, beginning, re.DOTALL))
    return next(kinds, None)
