"""`Mirror`: the public interface of a mirror's folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, SupportsIndex

from backread._client.arguments import LARGEST, known_options, whole
from backread._client.columns import Resource
from backread._client.option_kinds import SWITCH
from backread._client.privacy import Privacy, loaded
from backread.mirror.arguments import (
    check_callback,
    check_client,
    check_sync,
    landing_folders,
    mirror_folder,
    name_patterns,
    seconds,
    users_to_forget,
    users_to_read,
)
from backread.mirror.attachments import (
    MAX_FILE_BYTES,
    FilesProgress,
    FilesReport,
    fetch_files,
)
from backread.mirror.published.changes import Changes
from backread.mirror.published.conversation import Conversation, Printer, read_window
from backread.mirror.published.queries import check_reads_only, named_restriction
from backread.mirror.published.snapshot_reader import SnapshotReader
from backread.mirror.published.table import MirrorTable, MirrorTables, TableName
from backread.mirror.rights.forget import ForgetReport
from backread.mirror.store.database import read_memory_limit
from backread.mirror.summary import mirror_title, summarize
from backread.mirror.sync.progress import UnfinishedRun, read_unfinished_run
from backread.mirror.sync.report import Mode, SyncProgress, SyncReport

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

    from backread._client.client import Client
    from backread._client.option_kinds import Duration
    from backread.mirror.export import Codec, ExportFormat, ExportProgress, ExportReport
    from backread.mirror.figures import Figures, FiguresProgress
    from backread.mirror.published.period import Moment
    from backread.mirror.published.search import SearchResults
    from backread.mirror.published.status import MirrorStatus
    from backread.profile import ServiceProfile


class Mirror:
    """A local copy of all users and messages in ``folder``.

    The constructor does not touch the disk; `sync` creates and fills the folder, `sql` and
    `conversation` read what a sync published. Readers and syncs never wait for each other, even in
    different processes. Any number of mirrors may use one folder. Requires DuckDB
    (``pip install "backread[mirror]"``); raises `MirrorError` if it is missing.

    Args:
        folder: The path of the folder.
        memory_limit: The memory that a sync's database may use, in bytes or as text such as
            ``"2GB"``; what exceeds it is put into a file in the folder. The rows being read take
            some 100 MB more. Default: a quarter of the memory, or of the cgroup's limit if that is
            less, and at most 4 GB.
        retention: How long `sync` keeps rows that are marked as deleted, in seconds or as a
            timedelta. At its end, each sync removes those marked longer ago, as `forget` does, and
            with a user all that is theirs, unless a clock is wrong (``retention_problem`` of its
            report). None keeps them. The mirror does not store this: a sync without it removes
            nothing.
        pseudonymise: A key file. `sync` stores names, addresses and references as pseudonyms, equal
            for equal values. The file holds 32 random bytes or more, as base64, hexadecimal or raw,
            and only its owner and their group may read it. The mirror stores the key's
            fingerprint, not the key.
        drop_bodies: `sync` stores no text of messages.
        redact: `sync` blanks e-mail addresses, phone numbers and card numbers in messages.

    In a notebook it renders as a card: the folder, the data's age, what was proved, the rows of
    each table, and what to try next.

    Every sync of a mirror must have the choice of the first one; reading needs none of the three.
    ``docs/how-to/privacy.md`` says what they do not protect.

    Raises:
        ConfigurationError: For a ``pseudonymise`` that is no local path.
        MirrorError: For a folder that is no local path.
        ValueError: For a ``memory_limit`` below 100 MB, or a negative ``retention``.
    """

    @known_options
    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        memory_limit: int | str | None = None,
        retention: Duration | None = None,
        pseudonymise: str | os.PathLike[str] | None = None,
        drop_bodies: bool = False,
        redact: bool = False,
    ) -> None:
        self._folder = mirror_folder(folder)
        self._memory_limit = None if memory_limit is None else read_memory_limit(memory_limit)
        self._retention = seconds("retention", retention)
        self._privacy = Privacy.of(pseudonymise, drop_bodies, redact)
        self._reader = SnapshotReader(self._folder)

    @property
    def folder(self) -> Path:
        """The folder; relative paths were resolved when this mirror was constructed."""
        return self._folder

    @known_options
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
        max_requests: int | None = None,
        max_seconds: Duration | None = None,
        users: Iterable[int] | None = None,
        publish: bool = True,
    ) -> SyncReport:
        """Reads the service into the mirror and publishes the result.

        Rows are committed in batches together with the state of the run. A sync that is killed,
        interrupted or ended by an error leaves the mirror intact, and the next one resumes its run:
        finished lists are not read again, and half-read lists continue where they stopped, however
        much time has passed. Readers see a run when it ends, or when its budget does
        (``max_requests``, ``max_seconds``, the client's ``deadline``); if a first run was killed,
        the next sync publishes what it had read.

        Args:
            client: The service to read. A mirror holds one service, that of the first sync that
                read anything.
            mode: ``"incremental"`` adds new rows and updates changed ones; it removes nothing. The
                list of users is read in full, and so are the message lists, except for long ones
                whose growing end is known: only that end is read, usually in one request, and if it
                does not link up with the stored rows, the whole list.
                ``"quick"`` does so, too, but skips the lists of users whose ``updated_at`` and
                ``online_at`` did not move since their list was last read, except for 2 % of them,
                at least 50, which are drawn at random and read: the audit. It needs evidence, from
                earlier runs, that these hints announce changes; without it, or from a miss on, the
                run is incremental, and its report says so. A list that is due by
                ``max_staleness``, or was not certified, is always read. Changes of read flags alone
                are not noticed in a list that is skipped.
                ``"full"`` reads every list in full and sets ``deleted_at`` on deleted rows: those
                missing from a list certified ``snapshot`` or ``counted``, unless one newer than all
                that a list of messages showed is found by id; those missing from a ``linked`` list
                and not found by id; and the messages of deleted users. A row that
                reappears loses the mark. A record that was rejected still counts as present: its
                stored row stays, and if it has no id, no row of its list is marked. A resumed run
                has the more thorough mode of the unfinished run and this call.
            max_staleness: How long a list may go without being read in full, in seconds or as a
                timedelta; None for no limit. Edits of old messages in long lists are noticed then.
                Lists fall due spread over the second half of this time.
            on_progress: Called after each commit, in this thread; an exception ends the sync.
            progress: Shows the sync's progress: a bar in a notebook, a line on stderr in a
                terminal, nothing elsewhere.
            moved: Declares that this is the mirror's service at a new base URL or with a new vendor
                word, which replace the old ones. Without it another service is refused before
                anything is read. On loopback another port is the same service if the secret is the
                same, or a mock's.
            profile: A result of `Client.probe`. It replaces the stored one, and this sync and later
                ones use it.
            max_requests: Ends the reading after this many requests, retries included.
            max_seconds: Ends the reading after this time, in seconds or as a timedelta. With either
                the users are read first, then the lists of users with the newest hints. The run
                ends as ``partial``: what was read is published, and the next sync continues the
                run. It reads the list of users again while that takes at most 4 % of the run's
                requests.
            users: Reads only these users, by their ids, and their message lists, in a run of its
                own, which no later sync continues; an unfinished run is left as it is. A user whom
                the service does not know (404) is marked as deleted, with all messages. Only with
                ``mode="incremental"``.
            publish: False leaves publishing to a later sync; for frequent syncs.

        Returns:
            What this sync read and changed; its ``run`` has the figures of the whole run.

        Raises:
            BackreadError: The client's errors, after committing what was fetched.
            ConfigurationError: The key file is missing, too short, or not private.
            MirrorError: Another sync of the folder is running (with its pid, its start, and its
                machine if that is another); or the folder contains something else, the rows of
                ``backread demo``, another service, or rows with another choice of
                ``pseudonymise``, ``drop_bodies`` and ``redact``; or it is damaged or not writable,
                or has another format.
            TypeError: For anything but a `Client`, or an argument of a wrong type.
            ValueError: For another mode, a negative ``max_staleness``, a budget that is not
                positive, or ``users`` that are empty, negative or given with another mode than
                ``"incremental"``.

        Example:
            >>> with Client() as client:
            ...     report = Mirror("chats").sync(client, progress=True)
        """
        from backread._progress.bar import shown_sync
        from backread.mirror.sync.synchronize import Options, synchronize

        check_sync(client, mode, profile)
        check_callback(on_progress, "a SyncProgress")
        options = Options(
            mode=mode,
            max_staleness=seconds("max_staleness", max_staleness),
            moved=moved,
            profile=None if profile is None else profile.to_json(),
            max_requests=None
            if max_requests is None
            else whole("max_requests", max_requests, 1, LARGEST),
            max_seconds=seconds("max_seconds", max_seconds, positive=True),
            users=users_to_read(users, mode),
            publish=SWITCH.check("publish", publish),
            memory_limit=self._memory_limit,
            retention=self._retention,
            privacy=loaded(self._privacy),
        )
        with shown_sync(on_progress) if progress else nullcontext(on_progress) as tell:
            return synchronize(self._folder, client, replace(options, on_progress=tell))

    @known_options
    def fetch_files(
        self,
        client: Client | None = None,
        *,
        max_bytes: int | None = None,
        max_file_bytes: int = MAX_FILE_BYTES,
        only: str | Iterable[str] | None = None,
        on_progress: Callable[[FilesProgress], object] | None = None,
        progress: bool = False,
    ) -> FilesReport:
        """Downloads the files that messages link to into ``files/``, before their links die.

        Files are stored by their content, equal ones once; the table ``files`` of `sql` has a row
        for each message whose link was tried, with the file's hash or the reason why there is none.
        A file that is stored is not fetched again if only the query of its link changed. New
        messages come first. A link that failed is tried again by later calls, five times in all,
        and again once it changes. A call that is killed leaves what it had committed, and the next
        one goes on. Not for mirrors with ``pseudonymise``, ``drop_bodies`` or ``redact``.

        Links come from strangers: the secret is never sent, at most five redirects are followed,
        and each connection goes to an address that was checked to be public, unless scheme, host
        and port are the service's own. A relative link is one of the service.

        Args:
            client: The service's client, whose proxy, TLS certificates and timeout are used; by
                default one from the environment.
            max_bytes: No more files are requested once this many bytes have arrived.
            max_file_bytes: The largest file, in bytes.
            only: Patterns of the files' names, such as ``"*.pdf"``, or of the media types that the
                names' suffixes stand for, such as ``"image/*"``.
            on_progress: Called after each commit, in this thread; an exception ends the call.
            progress: Shows the progress: a bar in a notebook, a line on stderr in a terminal.

        Returns:
            What was fetched, what failed and why, and how many files the mirror holds now.

        Raises:
            ConfigurationError: Without a client, if the environment names no service.
            MirrorError: The folder has no mirror, one of another service or one that keeps
                personal data out; or a sync is running.
            TypeError: For anything but a `Client`.
            ValueError: For a limit below 1, or an empty ``only``.

        Example:
            >>> mirror.fetch_files(only="image/*").held
        """
        from backread._client.client import Client
        from backread._progress.bar import shown_files

        check_callback(on_progress, "a FilesProgress")
        most = None if max_bytes is None else whole("max_bytes", max_bytes, 1, LARGEST)
        largest = whole("max_file_bytes", max_file_bytes, 1, LARGEST)
        patterns = name_patterns(only)
        with ExitStack() as held:
            if client is None:
                client = held.enter_context(Client())
            check_client("Mirror.fetch_files", client)
            tell = held.enter_context(
                shown_files(on_progress) if progress else nullcontext(on_progress)
            )
            return fetch_files(
                self._folder,
                client,
                max_bytes=most,
                max_file_bytes=largest,
                only=patterns,
                on_progress=tell,
                memory_limit=self._memory_limit,
            )

    @known_options
    def forget(
        self,
        *user_ids: int,
        landings: Iterable[str | os.PathLike[str]] = (),
        missing_ok: bool = False,
    ) -> ForgetReport:
        """Removes users for good, and keeps only their ids, so that no sync brings them back.

        All that is stored of them is removed: their rows and messages, their rejected records, the
        state of unfinished runs, and the texts of errors. The database is written anew, since
        DuckDB does not overwrite deleted rows, and all earlier snapshots are removed at once:
        queries that are running may fail because a file is not found, and succeed when repeated.
        Copies elsewhere are out of reach, such as backups and exports.

        A kill leaves the users either in the mirror or removed; if traces are left in its files,
        the next `forget` or `sync` removes them. Forgetting a user again is not an error.

        Args:
            user_ids: The users' ids.
            landings: Landing folders (`backread.landing`) from whose files the users' rows are
                removed, too, before those of the mirror. Workers that land meanwhile are refused.
            missing_ok: Also accepts ids of which nothing is stored.

        Returns:
            What was removed.

        Raises:
            MirrorError: The folder has no mirror, or nothing about one of the users; a sync is
                running; or there is no space for a second copy of the database. Nothing is changed
                then.
            LandingError: One of ``landings`` is no landing folder, or cannot be read or written.
            ValueError: For no ids, or a negative one.

        Example:
            >>> mirror.forget(42).messages
        """
        from backread.mirror.rights.forget import forget

        return forget(
            self._folder,
            users_to_forget(user_ids),
            landing_folders(landings),
            missing_ok=missing_ok,
            memory_limit=self._memory_limit,
        )

    @known_options
    def status(self, *, max_staleness: Duration | None = None) -> MirrorStatus:
        """What the published snapshot proves, what not, how old each part is, and what to do.

        Args:
            max_staleness: Lists that were last read in full longer ago are overdue, in seconds or
                as a timedelta. By default as in the last sync.

        Raises:
            MirrorError: Nothing is published yet, or no run has read anything.
            ValueError: For a negative ``max_staleness``.

        Example:
            >>> mirror.status().ok
        """
        from backread.mirror.published.status import read_status
        from backread.mirror.store.folder import lock_holder

        stale_after = seconds("max_staleness", max_staleness)
        return read_status(self._reader, lock_holder(self._folder), stale_after)

    @property
    def unfinished_run(self) -> UnfinishedRun | None:
        """The run that is going on or was killed, as of its last seconds; None if there is none.

        Also None of a run that its budget ended, which the table ``runs`` has, and of a run over
        given users, which no later sync continues.
        """
        return read_unfinished_run(self._folder)

    @property
    def profile(self) -> ServiceProfile | None:
        """The service's profile as of the last finished sync, None if no sync was given one.

        Raises:
            MirrorError: The snapshot cannot be read.
            ValueError: Another version of backread made the profile; probe the service again.
        """
        kept = self._reader.profile()
        if kept is None:
            return None
        from backread.profile import ServiceProfile

        return ServiceProfile.from_json(kept)

    @known_options
    def sql(
        self,
        query: str,
        params: Sequence[object] | Mapping[str, object] | None = None,
        *,
        unrestricted: bool = False,
    ) -> DuckDBPyRelation:
        """Queries the published snapshot; returns a lazy DuckDB relation.

        Read the relation with ``relation.df()``, ``.pl()``, ``.to_arrow_table()`` or
        ``.fetchall()``; it renders in a notebook. DuckDB then runs the query: Ctrl-C ends it, often
        as DuckDB's ``RuntimeError: Query interrupted``. It stays on the snapshot that was newest
        when it was created, whose files remain for at least 15 minutes after they are replaced. All
        times are UTC (convert with ``AT TIME ZONE 'Europe/Berlin'``), ids are those of the service.
        The tables:

        - ``users``, ``messages`` (key: ``user_id, id``): the fields of the service, a message's
          sender in the columns ``sender_…``, undocumented fields as JSON in ``extra`` and
          ``sender_extra``. Also ``first_seen_at`` (when the row was first committed),
          ``last_seen_at`` (the end of the last finished run that read the row, or that proved its
          list complete without reading all of it) and ``deleted_at`` (when a full sync, or
          one of given users that the service does not know, found it deleted, else null),
          ``changed_at`` and ``changed_in_run`` (the time and the run of the last change of any
          other column).
        - ``conversations``, one row per user that is not deleted, counting messages that are not
          deleted: ``user_id, name, email, messages, user_messages, operator_messages`` (without
          automatic invitations), ``auto_invitations, files, first_message_at, last_message_at,
          last_sender_type, first_response_seconds`` (from the user's first message to the first
          later operator message that is not an automatic invitation, else null),
          ``unread_by_user`` (operator messages), ``unread_by_operator`` (user messages),
          ``checked_at`` (when the last reading of the list began),
          ``complete`` (all messages of the user were read: also false for a list that is not
          proved and has fewer rows than its total; there is then no ``first_response_seconds``).
        - ``lists``, one row per user: how the user's message list was last read (``kind``:
          ``whole``, ``end`` for its growing end only, ``gone`` with its user, ``unread`` if it
          could not be read), its certificate, or the ``reason`` why it has none, and state for the
          next sync.
        - ``rejects``: records that did not fit the schema, with their id if any, their JSON and the
          reason.
        - ``runs``: the finished runs and a partial one, with the counts of `SyncReport`.
        - ``files``: one row per message whose link `fetch_files` tried: ``user_id, message_id,
          file_url, name, sha256`` (null unless the file is stored), ``bytes, media_type, reason``
          (why it is not), ``attempts, tried_at``.
        - ``forgotten``: ids of users that `forget` removed, and when.
        - ``profile``: the service's profile as JSON, if a sync was given one.

        Args:
            query: One SELECT or EXPLAIN. It can only read the snapshot: no other files, no
                network, no settings.
            params: The values of ``?``, ``$1`` or ``$name``; a query with parameters is executed
                immediately.
            unrestricted: Runs any statement with the rights of this process, for example to join
                other files or to write to a file. The tables are views, which cannot be changed;
                what you create stays in memory and never reaches the mirror.

        Returns:
            A lazy relation: its rows are read when they are used.

        Raises:
            MirrorError: Nothing is published yet, or the statement is not allowed without
                ``unrestricted``.
            duckdb.Error: For an error in the query.

        Example:
            >>> mirror.sql("SELECT count(*) FROM messages WHERE user_id = ?", [42]).fetchall()
        """
        cursor = self._reader.cursor(restricted=not unrestricted)
        if not unrestricted:
            check_reads_only(cursor, query)
        with named_restriction(unrestricted):
            relation: DuckDBPyRelation = cursor.sql(query, params=params)
        return relation

    def table(self, name: TableName) -> MirrorTable:
        """A table of the published snapshot as an Arrow stream, for polars, pandas and others.

        Nothing is opened until the table is read.

        Args:
            name: A table of `sql` except ``forgotten`` and ``profile``.

        Raises:
            ValueError: For another name.
        """
        return MirrorTable(self._reader, name)

    @property
    def tables(self) -> MirrorTables:
        """All tables of `table` by name; a mapping that shows their rows and columns."""
        return MirrorTables(self._reader)

    @known_options
    def export(
        self,
        target: str | os.PathLike[str],
        *,
        format: ExportFormat | None = None,  # noqa: A002
        tables: Iterable[TableName] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        users: int | Iterable[int] | None = None,
        deleted: bool = False,
        everything: bool = False,
        raw_csv: bool = False,
        excel: bool = False,
        codec: Codec | None = None,
        replace: bool = False,
        on_progress: Callable[[ExportProgress], object] | None = None,
        progress: bool = False,
    ) -> ExportReport:
        """Writes the newest published snapshot to a file or folder for other tools.

        The target is created complete or not at all. Files get the access of their folder, or of
        the file they replace; a new folder is private to this user. Memory does not grow with the
        number of rows. Rows are sorted by their key, and messages by ``user_id``,
        ``created_at`` and ``id``. Without ``users``, messages are unordered in Parquet, CSV,
        JSON lines and DuckDB: several threads write them; an order would take time and memory.

        Args:
            target: A file or folder. With ``parquet``, ``csv`` and ``jsonl`` a folder with one
                file per table, or if it has the format's suffix, a file of one table; with
                ``xlsx``, ``sqlite`` and ``duckdb`` one file.
            format: By default that of the target's suffix. ``xlsx`` needs XlsxWriter.
            tables: Names of `table`; by default ``users``, ``messages`` and ``conversations``.
            since: Only messages created at this time or later, and users and conversations with
                such a message; a conversation's figures are those of the whole conversation. A
                date, a datetime or ISO 8601 text, in UTC unless it names another zone.
            until: Only messages created before this time; a date is its beginning.
            users: Only rows about these users.
            deleted: Includes users and messages that are marked as deleted.
            everything: Writes all that the snapshot holds about one person, deleted rows and
                rejected records too: ``users`` names the person. The target is a JSON file if it
                ends in ``.json``, else a folder with that, the conversation as text, and the
                attachments that `fetch_files` stored.
            raw_csv: Writes texts to CSV unchanged, even if a spreadsheet takes them for formulas.
            excel: Writes CSV with a byte order mark, without which Excel does not expect UTF-8, and
                with times that it reads as times: ``2026-11-30 08:15:00``, UTC, to the second.
            codec: How Parquet is compressed: ``"zstd"`` (the default), ``"snappy"`` for readers
                that lack zstd, ``"gzip"`` or ``"uncompressed"``.
            replace: Replaces an existing file, or a folder that has only files of an export, once
                the new one is complete. By default an existing target is refused.
            on_progress: Called several times a second, in this thread, or if that is not the main
                one after each statement; an exception ends the export.
            progress: Shows the progress: a bar in a notebook, a line on stderr in a terminal.

        Returns:
            What was written.

        Raises:
            MirrorError: Nothing is published yet, a user is unknown, the target exists, may
                not be replaced or cannot be written, or the disk is full; it is as before.
            ImportError: The format's library is not installed.
            ValueError: For arguments that contradict each other or make no sense.

        Example:
            >>> mirror.export("chats.xlsx", since="2024-01-01", until="2024-02-01")
        """
        from backread._progress.bar import shown_export
        from backread.mirror.export.plan import Selection
        from backread.mirror.export.run import ExportOptions, export_mirror

        check_callback(on_progress, "an ExportProgress")
        selection = Selection.parse(tables, since, until, users, deleted)
        with shown_export(on_progress) if progress else nullcontext(on_progress) as tell:
            return export_mirror(
                self._reader,
                target,
                selection,
                ExportOptions(format, raw_csv, excel, codec),
                everything=everything,
                replaces=replace,
                tell=tell,
            )

    @known_options
    def changes(
        self, since: SupportsIndex | str | None = None, *, table: Resource | None = None
    ) -> Changes:
        """The rows that changed since an earlier read, as an Arrow stream with a ``cursor``.

        It is fixed to the snapshot that is newest now: apply its rows elsewhere, store its
        ``cursor``, and pass that as ``since`` the next time. Each row is delivered again only after
        it changed in a column other than ``last_seen_at``. Rows come in no particular order, each
        at most once; apply them by key.

        The columns are ``table`` (``users`` or ``messages``), ``change``, ``user_id`` and ``id``
        (both are the id of a user), the columns of both tables (null where a table lacks one), and
        at the end ``changed_at``, the time of the commit, and ``changed_in_run``. ``change`` is

        - ``added``: insert the row. It is also later than ``since`` in the mirror;
        - ``changed``: replace the row;
        - ``deleted``: the service no longer has the row, which is given with its ``deleted_at``;
        - ``forgotten``: delete everything of ``user_id`` from that table. All other columns are
          null, except the ``id`` of a user and ``changed_at``.

        Args:
            since: None for all rows; the ``cursor`` of an earlier read; or the id of a run, for the
                changes after its end. A partial run continues under its id, so its own rows come
                again once it was resumed: prefer the cursor.
            table: ``"users"`` or ``"messages"``, for only that table's rows and columns.

        Raises:
            MirrorError: Nothing is published yet; ``since`` is an unknown run, a damaged cursor,
                one of another mirror, or one of a snapshot that was lost when a backup was
                restored.
            ValueError: For another table.

        Example:
            >>> changes = mirror.changes(since=None)
            >>> frame, cursor = changes.to_polars(), changes.cursor
        """
        return Changes(self._reader, since, table)

    @known_options
    def search(
        self,
        words: str,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
        user: int | None = None,
        limit: int = 50,
    ) -> SearchResults:
        """The newest messages whose body contains all words, from the published snapshot.

        Case and accents do not count: ``resume`` finds ``Résumé``. Body and words are compared as
        DuckDB's ``strip_accents(lower(text))``, so ``strasse`` does not find ``Straße``. A word may
        be any part of a body. Every character is literal, ``%`` and ``*`` too. Deleted messages are
        left out. It reads all bodies; there is no index.

        Args:
            words: Words between blanks, at most 1,000 characters; ``"a phrase"`` in double quotes
                is one word.
            since: Only messages created at this time or later: a date, a datetime or ISO 8601
                text, in UTC unless it names another zone.
            until: Only messages created before this time; a date is its beginning.
            user: Only messages of this user's conversation, by the user's id.
            limit: The maximum number of hits.

        Returns:
            The hits, newest first; those without a time last.

        Raises:
            MirrorError: Nothing is published yet.
            ValueError: For blank or too long words, a limit below 1, or a ``since`` that is not
                before ``until``.

        Example:
            >>> for hit in mirror.search('invoice "not paid"', since="2024-03-01"):
            ...     print(hit)
        """
        from backread.mirror.published.period import Period
        from backread.mirror.published.search import search_messages

        period = Period.parse(since, until)
        return search_messages(self._reader, words, period, user=user, limit=limit)

    @known_options
    def figures(
        self,
        *,
        timezone: str | None = None,
        opening_hours: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        on_progress: Callable[[FiguresProgress], object] | None = None,
    ) -> Figures:
        """Volume, response times, workload and more, computed from the published snapshot.

        Deleted messages and users are in no figure. Some seconds for millions of messages, in the
        memory that DuckDB may use.

        Args:
            timezone: The IANA name of the time zone of days, weekdays, hours and opening hours,
                such as ``"Europe/Berlin"``; UTC by default.
            opening_hours: When somebody answers, such as ``"mon-fri 9-17"`` or
                ``"mon-fri 9:00-12:30 13:30-18, sat 10-14"``. Only the time within them counts as
                response time: a question asked outside of them waits from the next opening on. One
                that is answered before then is counted in ``answered_outside_hours``, and in no
                response time.
            since: Only messages created at this time or later, conversations that have such a
                message, and responses to questions since then: a date, a datetime or ISO 8601
                text, in ``timezone`` unless it names another zone.
            until: The same for messages created before this time; a date is its beginning.
            on_progress: Called before each step, in this thread; an exception ends the computation.

        Returns:
            The figures as one dict of JSON values: pass it to ``json.dumps``. A notebook renders
            the main ones as a card.

        Raises:
            MirrorError: Nothing is published yet.
            ValueError: For an unknown time zone, opening hours that are not understood, or a
                period that ends before it begins.

        Example:
            >>> figures = mirror.figures(timezone="Europe/Berlin", opening_hours="mon-fri 9-17")
            >>> figures["responses"]["p50_seconds"]
        """
        from backread.mirror.figures.compute import Scope, compute_figures

        scope = Scope(timezone, opening_hours, since, until)
        return compute_figures(self._reader, scope, on_progress)

    @known_options
    def report(
        self,
        path: str | os.PathLike[str],
        *,
        timezone: str | None = None,
        opening_hours: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        on_progress: Callable[[FiguresProgress], object] | None = None,
    ) -> Path:
        """Writes `figures` with charts to an HTML file, which loads nothing and runs no script.

        The file is written completely or not at all, and gets the access of its folder. It has the
        names of operators, and of the users with the longest conversations, but no messages.

        Args:
            path: The file, outside the mirror. An earlier report is replaced.
            timezone: As in `figures`; so are all others.
            opening_hours: When somebody answers.
            since: The beginning of the period, whose main figures are then shown beside those of
                the period of the same length before.
            until: The end of the period.
            on_progress: Called before each step.

        Returns:
            The absolute path of the file.

        Raises:
            MirrorError: Nothing is published yet, or the file cannot be written, or exists and is
                no report.
            ValueError: As in `figures`, or for a name that ends in another suffix than ``.html``.

        Example:
            >>> mirror.report("report.html", since="2024-01-01", until="2024-02-01")
        """
        from backread._report.page import report_html
        from backread.mirror.export.target import report_target
        from backread.mirror.figures.compute import Scope, compute_figures

        target = report_target(path)
        scope = Scope(timezone, opening_hours, since, until)
        figures = compute_figures(self._reader, scope, on_progress)
        with target.unfinished() as folder:
            page = report_html(figures, self._folder.name).encode("utf-8", "replace")
            (folder / target.path.name).write_bytes(page)
        return target.path

    def conversation(self, user_id: int) -> Conversation:
        """One user and the user's messages in chronological order, from the published snapshot.

        Args:
            user_id: The user's id.

        Raises:
            MirrorError: Nothing is published yet, or the snapshot has no such user.
            TypeError: If the id is no int.
            ValueError: If it is negative.
        """
        user_id = whole("user_id", user_id, 0, LARGEST, then="")
        return read_window(self._reader, user_id).conversation

    def __repr__(self) -> str:
        return mirror_title(self._folder)

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        printer.text(str(summarize(self._folder, self._reader)))

    def _repr_html_(self) -> str:
        return summarize(self._folder, self._reader).to_html()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mirror) and other._folder == self._folder

    def __hash__(self) -> int:
        return hash((Mirror, self._folder))
