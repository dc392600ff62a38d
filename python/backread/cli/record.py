"""``mock record`` and ``mock learn``: the mock's rows and behaviour from a real service."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backread.cli.completion import folders
from backread.cli.connection import Connection, with_connection
from backread.cli.exits import UnusableArgumentError
from backread.cli.paths import folder_to_write, to_read
from backread.cli.stderr import say
from backread.cli.text import plain

if TYPE_CHECKING:
    from backread.profile import ServiceProfile
    from backread.testing import Record

__all__ = ["learn", "read_profile", "record"]

KEY_VARIABLE = "BACKREAD_RECORD_KEY"
USERS = 1_000
"""The default number of users, as for `backread.testing.record`."""
SHOWN_NAMES = 40


@with_connection
def record(
    connection: Connection,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            parser=folder_to_write,
            autocompletion=folders,
            show_default=False,
            help="A new folder for the record.",
        ),
    ],
    users: Annotated[
        int | None,
        typer.Option(
            "--users",
            min=1,
            metavar="NUMBER",
            help="How many users to keep, at most.",
            show_default=str(USERS),
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Keep every user.")] = False,
    first: Annotated[
        bool,
        typer.Option(
            "--first", help="Keep the first users instead of users spaced over the whole list."
        ),
    ] = False,
    messages_per_user: Annotated[
        int | None,
        typer.Option(
            "--messages-per-user",
            min=1,
            metavar="NUMBER",
            help="Keep only the first messages of each user, this many.",
        ),
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe/--no-probe", help="Also measure the service's behaviour.")
    ] = True,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file",
            metavar="FILE",
            parser=to_read,
            help=f"A file with the key of the fakes; default: {KEY_VARIABLE}, or a random key.",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the existing record.")
    ] = False,
) -> None:
    """Records the service, with fakes instead of its data.

    The record is for `mock --record`. Names, texts, addresses, ids and times are replaced before
    anything is written; equal values get equal fakes. Names of fields and attributes are not
    replaced, but printed: check them.
    """
    from backread.testing import record as make
    from backread.testing.recording.recorder import check_place

    if every and users is not None:
        raise UnusableArgumentError(
            f"--all keeps every user, but --users {users} at most {users}; pass only one of them"
        )
    key = _key(key_file)
    check_place(folder, replace)
    with connection.client() as client:
        if probe:
            say(
                "probing the service first, with at most 120 GET requests, one of them with a "
                "made-up secret",
                named=False,
            )
        made = make(
            client,
            folder,
            users=None if every else USERS if users is None else users,
            spread=not first,
            messages_per_user=messages_per_user,
            probe=probe,
            key=key,
            replace=replace,
        )
    _print_summary(made)


def learn(
    profile: Annotated[
        Path,
        typer.Argument(
            metavar="PROFILE",
            parser=to_read,
            show_default=False,
            help="A profile's file, or a record's folder.",
        ),
    ],
) -> None:
    """Prints the mock's dialect nearest to a profile.

    It is for `mock --dialect`. PROFILE is a file of `backread probe --save`, or the folder of a
    record. Findings that no switch of the mock can imitate are listed on stderr.
    """
    from backread.testing import Record
    from backread.testing import learn as learn_from

    if profile.is_dir():
        recorded = Record(profile)
        learned = recorded.learned
        text = str(recorded.dialect)
    else:
        learned = learn_from(read_profile(profile))
        text = str(learned)
    for path, words in {} if learned is None else learned.left_out.items():
        say(f"no switch for {path}: {words}", named=False)
    sys.stdout.write(f"{plain(text)}\n")


def read_profile(path: Path) -> ServiceProfile:
    """The profile in a file, or that of a record in a folder."""
    from backread.profile import ServiceProfile

    if path.is_dir():
        from backread.testing import Record

        found = Record(path).profile
        if found is None:
            raise UnusableArgumentError(
                f"the record {path} has no profile, because it was made with --no-probe; name "
                "another, or a profile's file"
            )
        return found
    try:
        return ServiceProfile.from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnusableArgumentError(
            f"{path} cannot be read: {error.strerror}; name a file that "
            "backread probe --format json wrote"
        ) from None
    except ValueError as error:
        raise UnusableArgumentError(f"{path}: {error}") from None


def _key(file: Path | None) -> bytes | None:
    """The key of the fakes, if the user gave one; no error shows it."""
    if file is None:
        given = os.environ.get(KEY_VARIABLE)
        source, key = KEY_VARIABLE, None if given is None else given.encode()
    else:
        try:
            source, key = f"--key-file {file}", file.read_bytes().strip()
        except OSError as error:
            raise UnusableArgumentError(
                f"--key-file {file} cannot be read: {error.strerror}; name a file that contains "
                "only the key"
            ) from None
    if key is not None and len(key) < 16:
        raise UnusableArgumentError(
            f"{source} has {len(key)} bytes; use a key of 16 or more random bytes"
        )
    return key


def _print_summary(made: Record) -> None:
    about = made.about
    lists = ", ".join(f"{count} {name}" for name, count in about.certificates.items())
    lines = [
        f"recorded {about.users:,} users and {about.messages:,} messages in {made.folder}",
        f"the list of users is {about.users_certificate}; lists of messages: {lists or 'none'}",
        *(f"left out {count:,}: {reason}" for reason, count in about.left_out.items()),
    ]
    if about.kept_names:
        shown = ", ".join(about.kept_names[:SHOWN_NAMES])
        more = len(about.kept_names) - SHOWN_NAMES
        lines.append(
            "names that were not replaced; check whether one is personal data: "
            + (f"{shown}, and {more} more in about.json" if more > 0 else shown)
        )
    for line in lines:
        say(line, named=False)
