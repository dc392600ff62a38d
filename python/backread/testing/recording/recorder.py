"""Reads a service into a record, with GETs only and with fakes for all values."""

from __future__ import annotations

import io
import re
import secrets
import shutil
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
    create,
    give_folder,
    make_folder_above,
)
from backread._files.paths import local_path
from backread._files.unfinished import private_folder
from backread.testing.recording.draws import Key
from backread.testing.recording.recorded import ABOUT, PROFILE, WORLD, About, Record
from backread.testing.recording.rows import (
    DOCUMENTED,
    NO_ID,
    askable,
    fake_message,
    fake_user,
    line,
)
from backread.testing.recording.values import Fakes

if TYPE_CHECKING:
    from concurrent.futures import Future

    from backread._client.client import Client
    from backread._client.listing import Listing
    from backread.models import WalkReport
    from backread.profile import ServiceProfile

__all__ = ["check_place", "record"]

USERS = 1_000
READERS = 8
"""Lists of messages that are read concurrently; the client's rate limit also applies."""
MOMENT = 0.01
NOT_HERE = "name a folder here, and copy the record there"
GONE = "the user was gone when the messages were asked for"


OpenNew = Callable[[str], IO[str]]
"""Opens a file of the new record, by its name, to be written."""


@dataclass(frozen=True, slots=True)
class Messages:
    """One user's list of messages, as sent; None if the user was gone."""

    rows: list[Any] | None
    report: WalkReport


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
    before sharing the record. docs/recording.md says what remains of each value.

    - ``users``: how many to record, with their messages; None for all. With ``spread`` they are
      spaced evenly over the whole list, which is read to its end; without, they are the first.
    - ``messages_per_user``: how many of each list, from its start; None for all.
    - ``probe``: also measures the service (`Client.probe`), so that the mock can imitate it.
    - ``key``: derives the fakes, 16 bytes or more. Records made with the same key have the same
      fakes. Keep it as secret as the data: anyone who has it can test whether a known value is in
      the record. By default it is random and discarded.
    - ``replace``: whether to replace an existing record in ``folder``.

    Raises, before anything is sent, FileExistsError if something else is there, ValueError for an
    invalid argument, and OSError if the folder cannot be created; later the errors of
    `backread.errors`, and OSError if a file cannot be written. The record appears atomically.
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
    # Before anything is sent: a folder that cannot be made costs no request.
    with _placed(target) as open_new:
        profile = client.probe() if probe else None
        if profile is not None:
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
    # The mock turns the lists of such a service around, and adds rows at the right end then.
    newest_first = profile is not None and learn(profile).dialect.order == "newest"
    chosen, listed, report = _users(client, most_users, spread)
    askables = [user for user in chosen if askable(user) is not None]
    left_out[NO_ID] += len(chosen) - len(askables)
    if newest_first:
        askables.reverse()
    requests, kept, messages = report.requests, 0, 0
    with (
        open_new(WORLD) as world,
        closing(_messages(client, askables, most_messages)) as lists,
    ):
        for user, found in lists:
            requests += found.report.requests
            faked = fake_user(user, fakes)
            if found.rows is None or faked is None:
                left_out[GONE] += 1
                continue
            rows = [fake_message(each, fakes) for each in found.rows]
            held = [each for each in rows if each is not None]
            left_out[NO_ID] += len(rows) - len(held)
            if newest_first:
                held.reverse()
            world.write(line(faked, held))
            certificates[found.report.certificate] += 1
            kept += 1
            messages += len(held)
    return About(
        backread=__version__,
        recorded_at=recorded_at,
        requests=requests,
        users=kept,
        messages=messages,
        total_users=listed,
        users_certificate=report.certificate,
        certificates=dict(sorted(certificates.items())),
        ids="text" if askables and all(isinstance(u["id"], str) for u in askables) else "integer",
        left_out={reason: count for reason, count in sorted(left_out.items()) if count},
        kept_names=_kept_names(fakes, profile),
    )


def _kept_names(fakes: Fakes, profile: ServiceProfile | None) -> tuple[str, ...]:
    """The names, in the rows and in the profile, that are the service's own choice."""
    kept = fakes.kept
    if profile is not None:
        kept.update(*profile.fields.values(), profile.sender_types or ())
    # The probe has a sign, in brackets, for names that it does not show.
    return tuple(sorted(name for name in kept - DOCUMENTED if not name.startswith("(")))


def _users(
    client: Client, most: int | None, spread: bool
) -> tuple[list[dict[str, Any]], int | None, WalkReport]:
    """The users to keep, the number of all where they were listed to the end, and the report."""
    if most is not None and not spread:
        listing = client.users.list(as_dict=True, max_items=most)
        first: list[Any] = listing.to_list()
        return first, None if len(first) == most else len(first), listing.report
    listing = client.users.list(as_dict=True)
    held: list[Any] = []
    count, step = 0, 1
    for user in listing:
        if count % step == 0:
            held.append(user)
            if most is not None and len(held) == 2 * most:
                # Every second one goes, so that there are never more than that in memory.
                del held[1::2]
                step *= 2
        count += 1
    if most is not None and len(held) > most:
        held = [held[at * len(held) // most] for at in range(most)]
    return held, count, listing.report


def _messages(
    client: Client, users: list[dict[str, Any]], most: int | None
) -> Generator[tuple[dict[str, Any], Messages], None, None]:
    """Each user with the list of messages, in order; some lists are read ahead side by side."""
    from concurrent.futures import ThreadPoolExecutor

    from backread.errors import NotFoundError

    stopped = Event()
    listings: set[Listing[Any]] = set()

    def read(user: dict[str, Any]) -> Messages:
        listing: Listing[Any] = client.messages.list(
            askable(user) or 0, as_dict=True, max_items=most
        )
        rows: list[Any] = []
        listings.add(listing)
        try:
            if not stopped.is_set():
                rows = listing.to_list()
        except NotFoundError:
            return Messages(None, listing.report)
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
        # A list that waits for an answer, or to ask again, is not waited for: Ctrl-C ends it too.
        while listings:
            for walk in [each._walk for each in list(listings)]:
                if walk is not None:
                    walk.stop()
            time.sleep(MOMENT)


# --- the folder -----------------------------------------------------------------------------------


def check_place(folder: Path, replace: bool) -> None:
    """What `record` raises where a record cannot be made there; nothing is sent or left behind."""
    _refuse_other(folder, replace)
    with _beside(folder.absolute()):
        pass


def _refuse_other(folder: Path, replace: bool) -> None:
    """FileExistsError where a folder holds what a new record must not take the place of."""
    for each in (folder, *folder.parents):
        if each.is_file():
            raise FileExistsError(f"{each} is a file; name a folder")
    if folder.is_symlink():
        raise RefusedFileError(f"{folder} is a symbolic link; name the folder itself")
    _put_killed_back(folder.absolute())
    try:
        held = next(folder.iterdir(), None)
    except FileNotFoundError:
        return
    check_folder(folder)
    if held is None:
        return
    try:
        Record(folder)
    except ValueError:
        raise FileExistsError(f"{folder} holds other files; name a folder of its own") from None
    if not replace:
        raise FileExistsError(
            f"{folder} holds a record; name another folder, or replace it (replace=True, --replace)"
        )


@contextmanager
def _placed(folder: Path) -> Iterator[OpenNew]:
    """Opens files of a new record, which takes its place once all is written; else it is gone."""
    place = folder.absolute()
    with _beside(place) as unfinished:

        def open_new(name: str) -> IO[str]:
            file = create(unfinished / name, like=place / name)
            return io.TextIOWrapper(file, encoding="utf-8", newline="\n")

        yield open_new
        former = _former(place)
        try:
            if place.exists():
                place.rename(former)
            unfinished.rename(place)
        finally:
            if former.exists() and not place.exists():
                _put_back(former, place)
            else:
                shutil.rmtree(former, ignore_errors=True)


@contextmanager
def _beside(place: Path) -> Iterator[Path]:
    """A folder beside the record's, with the access of the one before, or for this user alone."""
    with ExitStack() as made:
        try:
            make_folder_above(place.parent)
            # A name that would be too long when it is needed is too long now.
            with suppress(FileNotFoundError):
                _former(place).lstat()
            unfinished = made.enter_context(private_folder(place.parent, place.name))
            if place.exists():
                give_folder(unfinished, place)
        except RefusedFileError:
            raise
        except OSError as error:
            why = f"{place} cannot be made: {error.strerror}; name another folder"
            raise type(error)(why) from error
        yield unfinished


def _former(place: Path) -> Path:
    """What the record is called while another takes its place."""
    return place.with_name(f".{place.name}.{secrets.token_hex(8)}.former")


def _put_killed_back(place: Path) -> None:
    """Undoes what a recording had begun that was killed while it took the place of another."""
    if not place.parent.is_dir():
        return
    name = re.compile(rf"\.{re.escape(place.name)}\.[0-9a-f]{{16}}\.former", re.DOTALL)
    for former in [each for each in place.parent.iterdir() if name.fullmatch(each.name)]:
        if place.exists():
            shutil.rmtree(former, ignore_errors=True)
        else:
            former.rename(place)


def _put_back(former: Path, place: Path) -> None:
    try:
        former.rename(place)
    except OSError as error:
        raise OSError(
            f"the new record could not take its place, and the one before is in {former} now; "
            f"move it back to {place} ({error})"
        ) from error
