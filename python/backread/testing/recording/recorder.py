"""Reads a service into a record, with GETs only and with fakes for all values."""

from __future__ import annotations

import io
import re
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from dataclasses import replace as replaced
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from threading import Event
from typing import IO, TYPE_CHECKING, Any

from backread._files.access import (
    RefusedFileError,
    check_folder,
    check_private,
    create,
    give_folder,
    make_folder_above,
)
from backread._files.paths import local_path
from backread._files.removal import remove_folder
from backread._files.unfinished import private_folder
from backread._profile.vendor import without_vendor
from backread.testing.recording.draws import Key
from backread.testing.recording.recorded import ABOUT, PROFILE, WORLD, About, Record
from backread.testing.recording.rows import (
    DOCUMENTED,
    NO_ID,
    fake_message,
    fake_user,
    line,
    row_id,
)
from backread.testing.recording.values import Fakes

if TYPE_CHECKING:
    from concurrent.futures import Future

    from backread._client.client import Client
    from backread._client.listing import Listing
    from backread.errors import BackreadError
    from backread.models import WalkReport
    from backread.profile import ServiceProfile

__all__ = ["check_place", "record"]

USERS = 1_000
READERS = 8
"""Lists of messages that are read concurrently; the client's rate limit also applies."""
STOP_INTERVAL = 0.01
NOT_HERE = "record into a local folder and copy the record there"
GONE = "the user was gone when the messages were requested"
UNREAD = "the messages of the user could not be read"


OpenNew = Callable[[str], IO[str]]
"""Creates a file of the new record by name."""


@dataclass(frozen=True, slots=True)
class Messages:
    """One user's messages as sent; None if they could not be read, and the error, unless the user
    no longer exists.
    """

    rows: list[Any] | None
    report: WalkReport
    error: BackreadError | None = None


def record(
    client: Client,
    folder: str | PathLike[str],
    *,
    users: int | None = USERS,
    spread: bool = True,
    messages_per_user: int | None = None,
    probe: bool = True,
    key: bytes | str | None = None,
    replace: bool = False,
) -> Record:
    """Reads a service and writes a `Record` of it, with fake values, to ``folder``.

    Sends only GETs, through the client and within its rate limit. Names, addresses, texts, ids,
    times and all other values are replaced before anything is written; equal values get equal fakes
    throughout the record. Names of fields and attributes stay: review them in `About.kept_names`
    before sharing the record. docs/reference/recording.md says what remains of each value.

    The record appears atomically.

    Args:
        client: The service to record.
        folder: The folder of the record; it is created if it does not exist.
        users: How many to record, with their messages; None for all.
        spread: Choose users spaced evenly over the whole list, which is read to its end; without
            it, the first ones.
        messages_per_user: How many of each list, from its start; None for all.
        probe: Also measure the service (`Client.probe`), so that the mock can imitate it.
        key: Derives the fakes, 16 bytes or more. Records made with the same key have the same
            fakes. Keep it as secret as the data: anyone who has it can test whether a known value
            is in the record. By default it is random and discarded.
        replace: Replace an existing record in ``folder``.

    Returns:
        The record.

    Raises:
        FileExistsError: ``folder`` has other files, or a record and ``replace`` is not set.
        ValueError: An argument is invalid. Like FileExistsError, before anything is sent.
        OSError: The folder cannot be created (before anything is sent), or a file not written.
        BackreadError: The client's errors.

    Example:
        >>> with Client() as client:
        ...     world = record(client, "record/", users=200).world()
    """
    from backread._client.client import Client

    if not isinstance(client, Client):
        raise TypeError(f"client: a Client, not {type(client).__name__}")
    for name, number in (("users", users), ("messages_per_user", messages_per_user)):
        if number is not None and (isinstance(number, bool) or number < 1):
            raise ValueError(f"{name}: must be 1 or more, or None for all, not {number!r}")
    target = local_path(folder, NOT_HERE)
    try:
        fakes = Fakes(Key(key))
    finally:
        # Traceback tools print local variables.
        del key
    _refuse_other(target, replace)
    # First, so that a folder that cannot be created costs no request.
    with _replacing(target) as open_new:
        profile = client.probe() if probe else None
        if profile is not None:
            profile = without_vendor(profile, client.vendor)
            profile = replaced(profile, measured_at=fakes.moment(profile.measured_at))
        about = _read(client, open_new, fakes, profile, users, spread, messages_per_user)
        if profile is not None:
            with open_new(PROFILE) as file:
                file.write(profile.to_json(indent=2) + "\n")
        with open_new(ABOUT) as file:
            file.write(about.to_json())
    return Record(target)


def _read(
    client: Client,
    open_new: OpenNew,
    fakes: Fakes,
    profile: ServiceProfile | None,
    most_users: int | None,
    spread: bool,
    most_messages: int | None,
) -> About:
    from backread._backread import __version__
    from backread.testing.learning import learn

    recorded_at = fakes.moment(datetime.now(UTC).replace(microsecond=0))
    left_out: Counter[str] = Counter()
    certificates: Counter[str] = Counter()
    # With this order the mock reverses its lists, and adds rows at the right end.
    newest_first = profile is not None and learn(profile).dialect.order == "newest"
    chosen, listed, report = _users(client, most_users, spread)
    usable = [user for user in chosen if row_id(user) is not None]
    left_out[NO_ID] += len(chosen) - len(usable)
    if newest_first:
        usable.reverse()
    requests, recorded_users, messages = report.requests, 0, 0
    error: BackreadError | None = None
    with (
        open_new(WORLD) as world,
        closing(_messages(client, usable, most_messages)) as lists,
    ):
        for user, found in lists:
            requests += found.report.requests
            faked = fake_user(user, fakes)
            if found.error is not None:
                error = found.error
                left_out[f"{UNREAD} ({type(error).__name__})"] += 1
                continue
            if found.rows is None or faked is None:
                left_out[GONE] += 1
                continue
            rows = [fake_message(each, fakes) for each in found.rows]
            kept = [each for each in rows if each is not None]
            left_out[NO_ID] += len(rows) - len(kept)
            if newest_first:
                kept.reverse()
            world.write(line(faked, kept))
            certificates[found.report.certificate] += 1
            recorded_users += 1
            messages += len(kept)
    if error is not None and not recorded_users:
        raise error
    return About(
        backread=__version__,
        recorded_at=recorded_at,
        requests=requests,
        users=recorded_users,
        messages=messages,
        total_users=listed,
        users_certificate=report.certificate,
        certificates=dict(sorted(certificates.items())),
        ids="text" if usable and all(isinstance(u["id"], str) for u in usable) else "integer",
        left_out={reason: count for reason, count in sorted(left_out.items()) if count},
        kept_names=_kept_names(fakes, profile),
    )


def _kept_names(fakes: Fakes, profile: ServiceProfile | None) -> tuple[str, ...]:
    """The undocumented names in the rows and in the profile."""
    kept = fakes.kept
    if profile is not None:
        kept.update(*profile.fields.values(), profile.sender_types or ())
    # The probe hides names that may contain data behind a placeholder in brackets.
    return tuple(sorted(name for name in kept - DOCUMENTED if not name.startswith("(")))


def _users(
    client: Client, most: int | None, spread: bool
) -> tuple[list[dict[str, Any]], int | None, WalkReport]:
    """The users to record, the number of all users if known, and the report."""
    if most is not None and not spread:
        listing = client.users.list(as_dict=True, max_items=most)
        first: list[Any] = listing.to_list()
        return first, None if len(first) == most else len(first), listing.report
    listing = client.users.list(as_dict=True)
    sampled: list[Any] = []
    count, step = 0, 1
    for user in listing:
        if count % step == 0:
            sampled.append(user)
            if most is not None and len(sampled) == 2 * most:
                # Drops every second one, which bounds the memory.
                del sampled[1::2]
                step *= 2
        count += 1
    if most is not None and len(sampled) > most:
        sampled = [sampled[at * len(sampled) // most] for at in range(most)]
    return sampled, count, listing.report


def _messages(
    client: Client, users: list[dict[str, Any]], most: int | None
) -> Generator[tuple[dict[str, Any], Messages], None, None]:
    """Each user with the messages, in order; `READERS` lists are read concurrently."""
    from concurrent.futures import ThreadPoolExecutor

    from backread.errors import (
        BadRequestError,
        DecodeError,
        NotFoundError,
        PermissionDeniedError,
        ResponseTooLargeError,
        ServerError,
        TruncatedBodyError,
    )

    of_one_list = (
        BadRequestError,
        DecodeError,
        PermissionDeniedError,
        ResponseTooLargeError,
        ServerError,
        TruncatedBodyError,
    )
    stopped = Event()
    listings: set[Listing[Any]] = set()

    def read(user: dict[str, Any]) -> Messages:
        listing: Listing[Any] = client.messages.list(
            row_id(user) or 0, as_dict=True, max_items=most
        )
        rows: list[Any] = []
        listings.add(listing)
        try:
            if not stopped.is_set():
                rows = listing.to_list()
        except NotFoundError:
            return Messages(None, listing.report)
        except of_one_list as error:
            # Raises if the service answers nothing else either: then the list is not to blame.
            client.users.page(limit=1)
            return Messages(None, listing.report, error)
        finally:
            listings.discard(listing)
        return Messages(rows, listing.report)

    waiting: deque[tuple[dict[str, Any], Future[Messages]]] = deque()
    left = iter(users)
    pool = ThreadPoolExecutor(READERS, thread_name_prefix="backread-record")
    try:
        while True:
            while len(waiting) < 2 * READERS and (user := next(left, None)) is not None:
                waiting.append((user, pool.submit(read, user)))
            if not waiting:
                return
            user, reading = waiting.popleft()
            yield user, reading.result()
    finally:
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
        # Stops reads that wait for a response or a retry, so that Ctrl-C takes effect at once.
        while listings:
            for walk in [each._walk for each in list(listings)]:
                if walk is not None:
                    walk.stop()
            time.sleep(STOP_INTERVAL)


# --- the folder -----------------------------------------------------------------------------------


def check_place(folder: Path, replace: bool) -> None:
    """Raises what `record` would if the folder cannot be used; sends nothing, leaves nothing."""
    _refuse_other(folder, replace)
    with _temporary_folder(folder.absolute()):
        pass


def _refuse_other(folder: Path, replace: bool) -> None:
    """Raises FileExistsError if the folder has something that must not be replaced."""
    for each in (folder, *folder.parents):
        if each.is_file():
            raise FileExistsError(f"{each} is a file; name a folder")
    if folder.is_symlink():
        raise RefusedFileError(f"{folder} is a symbolic link; name the folder itself")
    _restore_interrupted(folder.absolute())
    try:
        first_file = next(folder.iterdir(), None)
    except FileNotFoundError:
        return
    check_folder(folder)
    if first_file is None:
        return
    try:
        Record(folder)
    except ValueError:
        raise FileExistsError(f"{folder} contains other files; name an empty folder") from None
    if not replace:
        raise FileExistsError(
            f"{folder} contains a record; name another folder, or pass replace=True or --replace"
        )


@contextmanager
def _replacing(folder: Path) -> Iterator[OpenNew]:
    """Yields a function that creates the record's files; at the end, moves them into place."""
    place = folder.absolute()
    with _temporary_folder(place) as unfinished:

        def open_new(name: str) -> IO[str]:
            file = create(unfinished / name, like=place / name)
            return io.TextIOWrapper(file, encoding="utf-8", newline="\n")

        try:
            yield open_new
        except RefusedFileError:
            raise
        except OSError as error:
            # Errors of writes, as on a full disk, name no file; those of the client have no number.
            if error.errno is not None and error.filename is None:
                error.filename = str(place)
            raise
        former = _backup_name(place)
        try:
            if place.exists():
                place.rename(former)
            unfinished.rename(place)
        finally:
            if former.exists() and not place.exists():
                _restore(former, place)
            else:
                remove_folder(former)


@contextmanager
def _temporary_folder(place: Path) -> Iterator[Path]:
    """A temporary folder next to the record's, with the access of an existing record."""
    with ExitStack() as made:
        try:
            make_folder_above(place.parent)
            # Fails now if the backup's name would be too long later.
            with suppress(FileNotFoundError):
                _backup_name(place).lstat()
            unfinished = made.enter_context(private_folder(place.parent, place.name))
            if place.exists():
                give_folder(unfinished, place)
            else:
                check_private(unfinished)
        except RefusedFileError:
            raise
        except OSError as error:
            why = f"{place} cannot be created: {error.strerror}; name another folder"
            raise type(error)(why) from error
        yield unfinished


def _backup_name(place: Path) -> Path:
    """A name for the existing record while it is being replaced."""
    return place.with_name(f".{place.name}.{secrets.token_hex(8)}.former")


def _restore_interrupted(place: Path) -> None:
    """Restores the record that a killed recording was replacing."""
    if not place.parent.is_dir():
        return
    name = re.compile(rf"\.{re.escape(place.name)}\.[0-9a-f]{{16}}\.former", re.DOTALL)
    for former in [each for each in place.parent.iterdir() if name.fullmatch(each.name)]:
        if place.exists():
            remove_folder(former)
        else:
            former.rename(place)


def _restore(former: Path, place: Path) -> None:
    try:
        former.rename(place)
    except OSError as error:
        raise OSError(
            f"the new record could not be moved into place ({error}), and the previous one is now "
            f"in {former}; move it back to {place}"
        ) from error
