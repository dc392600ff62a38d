"""Fetches the files that messages link to, and stores them by their content.

A file is ``files/ab/abcd…``, its SHA-256 in hexadecimal, so equal files are stored once. The table
``files`` has a row for each message whose link was tried. A file is placed before its row is
committed: what a kill leaves without a row is found again by its hash, or removed with the next
removal of rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from mimetypes import guess_type
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from backread._files.access import (
    flush_directory,
    flush_file,
    give_like_folder,
    make_subfolder,
)
from backread._files.dataclass_json import ShortRepr, to_json_value
from backread._files.unfinished import private_folder, remove_leftovers
from backread.errors import MirrorError
from backread.mirror.published.publish import publish
from backread.mirror.published.views import FILES_COUNTED
from backread.mirror.rights.purge import forget_again, open_store
from backread.mirror.store.engine import load_duckdb, named_errors
from backread.mirror.store.folder import (
    FILES,
    file_path,
    refuse_demo,
    require_database,
    writer_lock,
)
from backread.mirror.store.schema import FILES as FILES_COLUMNS
from backread.mirror.store.schema import PRIVACY
from backread.mirror.store.store import refuse_other_service, service_of

if TYPE_CHECKING:
    from backread._client.client import Client
    from backread.mirror.store.store import Store

MAX_FILE_BYTES = 100 * 1024**2
"""The default of ``max_file_bytes``: more than chat widgets accept, and less than a disk has."""

ATTEMPTS = 5
"""How often a link is tried. After that, only a link that has changed is."""

COMMIT_SECONDS = 2.0
MOST_FAILED = 20
"""How many failures a report names; the table has all."""

UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f"*/:<>?\\|\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffd]')
"""What file systems do not accept in a name, or terminals in a line."""

LONGEST_NAME = 120
"""In characters, so that the name fits file systems with the id of its message in front."""

LINKS = """
SELECT messages.user_id, id, messages.file_url,
    CASE WHEN split_part(files.file_url, '?', 1) = split_part(messages.file_url, '?', 1)
        THEN attempts ELSE 0 END AS tried,
    CASE WHEN tried > 0 THEN sha256 END AS held,
    files.file_url IS NOT DISTINCT FROM messages.file_url AS unchanged
FROM messages LEFT JOIN files ON files.user_id = messages.user_id AND message_id = messages.id
WHERE messages.file_url <> '' AND deleted_at IS NULL
ORDER BY tried, created_at DESC, messages.user_id, id
"""
"""All links: those never tried first, new messages before old ones, whose links may have died."""


@dataclass(frozen=True, slots=True)
class FailedFile:
    """An attachment that could not be fetched.

    - ``user_id``, ``message_id``: its message.
    - ``name``: the name at the end of its link.
    - ``reason``: why it could not be fetched.
    """

    user_id: int
    message_id: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class FilesProgress:
    """How far `Mirror.fetch_files` has come.

    - ``files``: links that were tried, ``failed`` of them in vain; ``files_total``: links to try.
    - ``bytes``: of the files fetched so far; ``seconds``: since the call began.
    """

    files: int
    files_total: int
    failed: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, repr=False)
class FilesReport(ShortRepr):
    """What one call of `Mirror.fetch_files` did, and what the mirror holds now.

    - ``fetched``: files that were downloaded, with ``bytes`` in all; ``stored`` of them were new,
      the content of the others was stored already.
    - ``failures``: links that were tried in vain; ``failed`` has the first 20 with their reasons.
    - ``left``: links that ``max_bytes`` or ``ended_by`` kept from being tried, and that the next
      call tries. ``ended_by``: why the call ended early, such as a full disk, or None.
    - ``files``: links of messages that are not deleted; ``held`` of their files are stored.
    - ``seconds``: how long it took.
    """

    fetched: int = 0
    stored: int = 0
    bytes: int = 0
    failures: int = 0
    failed: tuple[FailedFile, ...] = ()
    left: int = 0
    ended_by: str | None = None
    files: int = 0
    held: int = 0
    seconds: float = 0.0

    @property
    def missing(self) -> int:
        """How many files are not stored, whatever the reason."""
        return self.files - self.held

    def to_dict(self) -> dict[str, Any]:
        """The report as a dict of JSON values, with ``missing``."""
        document: dict[str, Any] = to_json_value(self)
        return document | {"missing": self.missing}


@dataclass(frozen=True, slots=True)
class _Link:
    user_id: int
    message_id: int
    url: str
    tried: int

    @property
    def name(self) -> str:
        return file_name(self.url)


def file_name(url: str) -> str:
    """The name at the end of a link, made safe for file systems and terminals; never empty."""
    try:
        path = urlsplit(url).path
    except ValueError:
        path = ""
    name = UNSAFE.sub("_", unquote(path.rstrip("/").rpartition("/")[2])).strip(" .")
    # The end tells the type.
    return name[-LONGEST_NAME:].lstrip(" .") or "file"


def fetch_files(
    folder: Path, client: Client, *, memory_limit: int | None = None, **options: Any
) -> FilesReport:
    """Fetches what is not stored yet, and publishes; see `Mirror.fetch_files`."""
    load_duckdb()
    with ExitStack() as held:
        with named_errors(folder):
            require_database(folder)
            refuse_demo(folder)
            held.enter_context(writer_lock(folder))

            def prepare(store: Store) -> None:
                service = service_of(client, store.meta("mirror_id"))
                refuse_other_service(folder, store.service(), service, moved=False)
                if store.meta(PRIVACY) is not None:
                    raise MirrorError(
                        f"the mirror in {folder} keeps personal data out, and files cannot be "
                        "searched for it; fetch them into a mirror without pseudonymise, "
                        "drop_bodies and redact"
                    )
                forget_again(store)

            store = held.enter_context(open_store(folder, memory_limit, prepare))
            make_subfolder(folder / FILES)
            remove_leftovers(folder / FILES)
            aside = held.enter_context(private_folder(folder / FILES, "incoming"))
        return _Fetching(store, aside, **options).run(client)


@dataclass
class _Fetching:
    """One call: places what arrives, and commits its rows every two seconds.

    The options are those of `Mirror.fetch_files`.
    """

    store: Store
    aside: Path
    max_bytes: int | None
    max_file_bytes: int
    only: tuple[str, ...]
    on_progress: Callable[[FilesProgress], object] | None
    began: float = field(default_factory=monotonic)
    fetched: int = 0
    stored: int = 0
    bytes: int = 0
    failed: list[FailedFile] = field(default_factory=list)
    failures: int = 0
    left: int = 0
    ended_by: str | None = None

    def run(self, client: Client) -> FilesReport:
        with named_errors(self.store.folder):
            links = self._links()
        downloads = client._downloads(
            [(link.url, str(self.aside / str(number))) for number, link in enumerate(links)],
            self.max_file_bytes,
            self.max_bytes,
        )
        self._tell(len(links))
        while self.ended_by is None and (ended := downloads.next(COMMIT_SECONDS)):
            with named_errors(self.store.folder):
                rows = [(links[each[0]], self._placed(links[each[0]], *each)) for each in ended]
                self._commit([(link, row) for link, row in rows if row is not None])
            self._tell(len(links))
        with named_errors(self.store.folder):
            [(files, held, _)] = self.store.rows(FILES_COUNTED)
            if not self.store.never_finished():
                publish(self.store)
        return FilesReport(
            fetched=self.fetched,
            stored=self.stored,
            bytes=self.bytes,
            failures=self.failures,
            failed=tuple(self.failed[:MOST_FAILED]),
            left=len(links) - self.fetched - self.failures,
            ended_by=self.ended_by,
            files=files,
            held=held,
            seconds=monotonic() - self.began,
        )

    def _links(self) -> list[_Link]:
        """The links to fetch, in the order of `LINKS`."""
        present = {each.name for each in (self.store.folder / FILES).glob("??/*")}
        found = []
        for user_id, message_id, url, tried, sha256, unchanged in self.store.rows(LINKS):
            gave_up = sha256 is None and unchanged and tried >= ATTEMPTS
            if sha256 in present or gave_up:
                continue
            link = _Link(user_id, message_id, url, tried)
            if not self.only or _matches(link.name, self.only):
                found.append(link)
        return found

    def _placed(
        self,
        link: _Link,
        number: int,
        state: str,
        reason: str | None,
        sha256: str | None,
        size: int | None,
        media_type: str | None,
    ) -> tuple[Any, ...] | None:
        """The rest of the row of a link; None if it was not tried."""
        path = self.aside / str(number)
        if state == "left":
            return None
        if sha256 is not None:
            self._place(path, file_path(self.store.folder, sha256))
            self.fetched += 1
            self.bytes += size or 0
        else:
            with suppress(FileNotFoundError):
                path.unlink()
            self.failures += 1
            if len(self.failed) < MOST_FAILED:
                self.failed.append(
                    FailedFile(link.user_id, link.message_id, link.name, reason or "")
                )
        if state == "unwritten":
            self.ended_by = reason
        return sha256, size, media_type, reason

    def _place(self, path: Path, target: Path) -> None:
        """Gives a complete file its name, durably; drops it if its content is stored already."""
        if target.exists():
            path.unlink()
            return
        if not target.parent.exists():
            make_subfolder(target.parent)
            flush_directory(target.parent.parent)
        give_like_folder(path, target.parent)
        flush_file(path)
        path.replace(target)
        flush_directory(target.parent)
        self.stored += 1

    def _commit(self, rows: Sequence[tuple[_Link, tuple[Any, ...]]]) -> None:
        if not rows:
            return
        now = self.store.now()
        names = [name for name, _ in FILES_COLUMNS]
        tried = [
            (link.user_id, link.message_id, link.url, link.name, *row, link.tried + 1, now)
            for link, row in rows
        ]
        kinds = ", ".join(map(" ".join, FILES_COLUMNS))
        with self.store.transaction():
            self.store.rows(
                "CREATE OR REPLACE TEMP TABLE tried AS "
                f"SELECT unnest(?::STRUCT({kinds})[], recursive := true)",
                [[dict(zip(names, each, strict=True)) for each in tried]],
            )
            self.store.rows(
                "DELETE FROM files WHERE (user_id, message_id) IN "
                "(SELECT (user_id, message_id) FROM tried)"
            )
            self.store.rows("INSERT INTO files BY NAME FROM tried")
            self.store.count_change()

    def _tell(self, total: int) -> None:
        if self.on_progress is not None:
            done, seconds = self.fetched + self.failures, monotonic() - self.began
            self.on_progress(FilesProgress(done, total, self.failures, self.bytes, seconds))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name, or the media type that its suffix stands for, matches one of the patterns."""
    name = name.lower()
    media_type = guess_type(name)[0] or ""
    return any(fnmatchcase(media_type if "/" in each else name, each) for each in patterns)
