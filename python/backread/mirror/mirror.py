"""`Mirror`: the folder as its users see it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from backread._client.arguments import seconds
from backread._files.paths import local_path
from backread.errors import MirrorError
from backread.mirror.conversation import Conversation, read_conversation
from backread.mirror.queries import check_reads_only, named_restriction
from backread.mirror.report import Mode, SyncProgress, SyncReport
from backread.mirror.snapshot import SnapshotReader
from backread.mirror.table import MirrorTable, TableName

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

    from backread._client.arguments import Duration
    from backread._client.client import Client
    from backread.profile import ServiceProfile

__all__ = ["Mirror"]

NOT_HERE = "keep the mirror on a disk and copy it there, or land there with backread.landing"


class Mirror:
    """A local copy of every user and every message, kept in ``folder``.

    Making one touches nothing; `sync` makes the folder and fills it, `sql` and `conversation` read
    what a sync published. Reading and syncing never wait for each other, in one process or in
    several. Any number of mirrors may look at one folder. Needs DuckDB:
    ``pip install "backread[mirror]"``; `MirrorError` says so where it is missing.
    """

    __slots__ = ("__weakref__", "_folder", "_reader")

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            self._folder = local_path(folder, NOT_HERE).absolute()
        except ValueError as error:
            raise MirrorError(f"a mirror's folder: {error}") from None
        self._reader = SnapshotReader(self._folder)

    @property
    def folder(self) -> Path:
        """The folder; a relative path is below the working directory of when this was made."""
        return self._folder

    def sync(
        self,
        client: Client,
        *,
        mode: Mode = "incremental",
        max_staleness: Duration | None = timedelta(days=30),
        on_progress: Callable[[SyncProgress], object] | None = None,
        progress: bool = False,
        moved: bool = False,
        profile: ServiceProfile | None = None,
    ) -> SyncReport:
        """Reads the service into the mirror and publishes the result.

        Rows are committed in batches together with the state of the run. A sync that was killed,
        interrupted or ended by an error leaves the mirror whole, and the next one resumes its run:
        what it finished in the last 24 hours is not read again, and a list that it left half-read
        goes on where it was. Readers see nothing of a run before its end.

        - ``mode="incremental"`` adds what is new and updates what differs; it removes nothing. The
          list of users is read whole. So is each user's list of messages, unless it is long and
          its growing end is known: then that end is read, in one request as a rule, and whatever
          does not link up makes it read whole.
        - ``mode="full"`` reads every list whole and marks with ``deleted_at`` what is gone: what a
          list certified as ``snapshot`` or ``counted`` does not show, and what a ``linked`` one
          does not show and the service does not find by its id either; the messages of users that
          are gone, too. A row that comes back loses the mark. A record that does not fit is there
          all the same: the row held of it stays, and where it has no id nothing of its list is
          marked. If either the unfinished run or this call is ``full``, the resumed run is.
        - ``max_staleness`` (seconds or a timedelta; ``None``: never) is how long a list may go
          without being read whole, 30 days by default: an edit of an old message of a long list is
          noticed then. Lists fall due spread over the second half of it.
        - ``on_progress`` is called after each commit, in this thread; what it raises ends the sync.
        - ``progress=True`` shows how far the sync has come: as a bar in a notebook, as a line on
          stderr in a terminal, elsewhere not at all.
        - ``moved=True`` says that the service is the one that the mirror holds, at a new base URL
          or with a new vendor word; the new ones are kept. A mirror holds one service, that of the
          first sync that read anything; without ``moved`` another is refused before anything is
          read. Services on loopback, as mocks are, are not told apart.
        - ``profile``: what `Client.probe` found out about the service. It is kept in the place of
          the one before, and this sync and later ones use it.

        Raises the errors of `backread.errors` that the client raises, after what had been fetched
        was committed; `MirrorError` where another sync of the folder runs (with its pid, its start,
        and its machine if that is another), where the folder holds something else or another
        service (both are named), is damaged or cannot be written, or was written by a newer
        backread; TypeError for anything but a `Client`, and where ``profile``, ``on_progress`` or a
        duration is something else; ValueError for another mode or a negative duration. A mirror of
        an earlier backread is brought to this version.
        """
        from backread._client.client import Client
        from backread.mirror.synchronize import Options, synchronize
        from backread.profile import ServiceProfile

        if mode not in get_args(Mode):
            raise ValueError(f"mode is 'incremental' or 'full', not {mode!r}")
        if not isinstance(client, Client):
            raise TypeError(
                f"Mirror.sync takes a Client, not {_article(type(client).__name__)}: make a "
                "Client with the same arguments, and call sync from a thread if you await elsewhere"
            )
        if on_progress is not None and not callable(on_progress):
            raise TypeError(
                "on_progress is a function that takes a SyncProgress, or None, not "
                f"{_article(type(on_progress).__name__)}"
            )
        if profile is not None and not isinstance(profile, ServiceProfile):
            raise TypeError(
                f"profile is a ServiceProfile, not {_article(type(profile).__name__)}: give what "
                "Client.probe() or ServiceProfile.from_json(text) gives"
            )
        stale_after = seconds("max_staleness", max_staleness)
        if stale_after is not None and not stale_after >= 0:
            raise ValueError(f"max_staleness is 0 seconds or more, or None, not {max_staleness}")
        options = Options(
            mode=mode,
            max_staleness=stale_after,
            on_progress=on_progress,
            moved=moved,
            profile=None if profile is None else profile.to_json(),
        )
        if not progress:
            return synchronize(self._folder, client, options)
        from backread._progress.bar import shown_sync

        with shown_sync(on_progress) as tell:
            return synchronize(self._folder, client, replace(options, on_progress=tell))

    @property
    def profile(self) -> ServiceProfile | None:
        """The service's profile as of the last finished sync, None where none was given one.

        `MirrorError` where the snapshot cannot be read, ValueError where a newer backread made the
        profile.
        """
        kept = self._reader.profile()
        if kept is None:
            return None
        from backread.profile import ServiceProfile

        return ServiceProfile.from_json(kept)

    def sql(
        self,
        query: str,
        params: Sequence[object] | Mapping[str, object] | None = None,
        *,
        unrestricted: bool = False,
    ) -> DuckDBPyRelation:
        """A query over the published snapshot, as a DuckDB relation that is run when it is read.

        ``params`` are the values of ``?``, ``$1`` or ``$name`` in it; a query with parameters is
        run at once. It is one SELECT or EXPLAIN and reads the snapshot alone: no other files, no
        network, no settings. ``unrestricted=True`` runs any statement with the rights of this
        process, as needed to join other files and to write a relation to a file; what it changes
        stays in memory and never reaches the mirror.

        ``relation.df()``, ``.pl()``, ``.to_arrow_table()`` and ``.fetchall()`` read it; in a
        notebook it draws itself. It keeps to the snapshot that was the newest when it was made;
        the files of that snapshot stay for at least 15 minutes after they are replaced. All times
        are UTC (``AT TIME ZONE 'Europe/Berlin'`` gives another), ids are those of the service. The
        tables:

        - ``users``, ``messages`` (key: ``user_id, id``): the fields of the service, a message's
          sender in the columns ``sender_…``, fields that the interface does not name as JSON in
          ``extra`` and ``sender_extra``. Besides them ``first_seen_at`` (when the row was first
          committed), ``last_seen_at`` (the end of the last finished run that read the row, or that
          proved its list complete without reading all of it) and
          ``deleted_at`` (when a full sync found it gone; null while it is there).
        - ``conversations``, one row a user that is not gone, counting messages that are not gone:
          ``user_id, name, email, messages, user_messages, operator_messages`` (automatic
          invitations apart), ``auto_invitations, files, first_message_at, last_message_at,
          last_sender_type, first_response_seconds`` (from the user's first message to the first
          operator message after it that is no automatic invitation; null where there is none),
          ``unread_by_user`` (operator messages), ``unread_by_operator`` (user messages).
        - ``lists``, one row a user: how the user's message list was last read (``kind``: ``whole``,
          ``end`` for its growing end alone, ``gone`` with its user, ``unread`` where it could not
          be read), its certificate with the ``reason`` where there is none, and what the next
          sync goes by.
        - ``rejects``: records that did not fit, with their id where they have one, their JSON and
          the reason.
        - ``runs``: the finished runs, with the counts of `SyncReport`.
        - ``profile``: the service's profile as JSON, if a sync was given one.

        Raises `MirrorError` where nothing is published yet, and for any other statement unless
        ``unrestricted``; the query's own errors are DuckDB's.
        """
        cursor = self._reader.cursor(restricted=not unrestricted)
        if not unrestricted:
            check_reads_only(cursor, query)
        with named_restriction(unrestricted):
            relation: DuckDBPyRelation = cursor.sql(query, params=params)
        return relation

    def table(self, name: TableName) -> MirrorTable:
        """A table of the published snapshot as an Arrow stream, for polars, pandas and others.

        The names are those of `sql` but for ``profile``; ValueError for any other. Nothing is
        opened before the table is read.
        """
        return MirrorTable(self, self._reader, name)

    def conversation(self, user_id: int) -> Conversation:
        """One user and the user's messages in the order of time, from the published snapshot.

        Raises `MirrorError` where nothing is published yet or there is no such user in it.
        """
        return read_conversation(self._reader, user_id)

    def __repr__(self) -> str:
        return f"Mirror({str(self._folder)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mirror) and other._folder == self._folder

    def __hash__(self) -> int:
        return hash((Mirror, self._folder))

    def __reduce__(self) -> tuple[Any, ...]:
        return Mirror, (self._folder,)


def _article(name: str) -> str:
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"
