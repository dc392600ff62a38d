"""``files``: fetches the files that messages link to."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from backread._display.words import amount, size
from backread._progress.bar import shown_files
from backread._progress.output import files_parts
from backread.cli.arguments import Folder, TextOrJson, byte_size, value, with_document
from backread.cli.connection import Connection, with_connection
from backread.cli.exits import INCOMPLETE
from backread.cli.output import Format, Target, write_document
from backread.cli.stderr import Verbosity, every_few_seconds, say, tell

if TYPE_CHECKING:
    from backread._client.client import Client
    from backread.mirror import FilesProgress, FilesReport, Mirror


@with_connection
@with_document(TextOrJson)
def files(
    connection: Connection,
    as_json: bool,
    folder: Folder,
    max_bytes: Annotated[
        int | None, value("SIZE", "Stop after this much, such as 2GB.", parser=byte_size)
    ] = None,
    max_file_bytes: Annotated[
        int | None,
        value("SIZE", "The largest file to fetch; 100MiB by default.", parser=byte_size),
    ] = None,
    only: Annotated[
        list[str] | None,
        value("PATTERN", "Only names like *.pdf, or types like 'image/*'; may be repeated."),
    ] = None,
) -> None:
    """Fetches the files that messages of the mirror in FOLDER link to, before the links die.

    Files are stored in FOLDER/files by their content; the table files says which message has which,
    and why one could not be fetched. Files that are stored are not fetched again. The secret is
    never sent, and links to private addresses are refused. Exit code 6: some could not be fetched.

    Examples:
        backread files chats
        backread files chats --only 'image/*' --max-bytes 2GB
        backread sql chats "SELECT name, reason FROM files WHERE reason IS NOT NULL"
    """
    from backread.mirror import Mirror

    with connection.client() as client:
        done = fetch(Mirror(folder), client, max_bytes, max_file_bytes, only)
    if as_json:
        write_document(done.to_dict(), Target(Format.JSON))
    else:
        tell(summary(done))
    if done.failures:
        raise typer.Exit(INCOMPLETE)


def fetch(
    mirror: Mirror,
    client: Client,
    max_bytes: int | None = None,
    max_file_bytes: int | None = None,
    only: list[str] | None = None,
) -> FilesReport:
    """Fetches with progress on stderr, and names what failed there."""
    from backread.mirror.attachments import MAX_FILE_BYTES

    try:
        with shown_files(None) if not Verbosity.quiet else nullcontext() as show:
            done = mirror.fetch_files(
                client,
                max_bytes=max_bytes,
                max_file_bytes=max_file_bytes or MAX_FILE_BYTES,
                only=only or None,
                on_progress=show or every_few_seconds(_line),
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; files that were stored are kept") from None
    for each in done.failed:
        failed = f"message {each.message_id} of user {each.user_id}: {each.name}: {each.reason}"
        say(failed, error=True)
    if done.failures > len(done.failed):
        say(f"and {done.failures - len(done.failed):,} more, see the table `files`", error=True)
    return done


def _line(now: FilesProgress) -> str:
    return f"files: {', '.join(files_parts(now))}"


def summary(done: FilesReport) -> str:
    """One line about what was fetched and what is missing."""
    parts = [
        f"{amount(done.fetched, 'file')} fetched ({size(done.bytes)})",
        f"{done.failures:,} failed" if done.failures else "",
        f"{done.left:,} left for the next time" if done.left else "",
        f"stopped: {done.ended_by}" if done.ended_by else "",
        f"{done.held:,} of {amount(done.files, 'file')} stored",
    ]
    return "; ".join(filter(None, parts))
