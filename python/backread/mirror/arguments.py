"""Checks of the arguments of `Mirror`, made before anything is read or written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from backread._client.arguments import LARGEST, identifiers, whole
from backread._client.option_kinds import SECONDS
from backread._files.paths import local_path
from backread.errors import MirrorError
from backread.mirror.sync.report import Mode

if TYPE_CHECKING:
    from backread._client.client import Client
    from backread._client.option_kinds import Duration
    from backread.profile import ServiceProfile

NOT_HERE = "sync to a local disk and copy the mirror, or use backread.landing"


def mirror_folder(folder: str | os.PathLike[str]) -> Path:
    """The absolute path of a mirror's folder; `MirrorError` if it is not a local path."""
    try:
        return local_path(folder, NOT_HERE).absolute()
    except ValueError as error:
        raise MirrorError(f"a mirror's folder: {error}") from None


def seconds(name: str, given: Duration | None, *, positive: bool = False) -> float | None:
    """A duration in seconds; None for no limit."""
    found: float | None = SECONDS.check(name, given)
    if found is not None and not (0 <= found < LARGEST and (found > 0 or not positive)):
        least = "more than 0 seconds" if positive else "0 seconds or more"
        raise ValueError(f"{name} must be {least}, or None for no limit, not {given}")
    return found


def check_client(method: str, client: Client) -> None:
    """Raises TypeError for anything but a `Client`."""
    from backread._client.client import Client

    if not isinstance(client, Client):
        name = method.rpartition(".")[2]
        raise TypeError(
            f"{method} takes a Client, not {_kind(client)}: make a "
            f"Client with the same arguments, and in async code call {name} in a thread"
        )


def check_sync(client: Client, mode: Mode, profile: ServiceProfile | None) -> None:
    """Checks the type of what `Mirror.sync` reads, and how."""
    from backread.profile import ServiceProfile

    if mode not in get_args(Mode):
        raise ValueError(f"mode must be 'incremental', 'full' or 'quick', not {mode!r}")
    check_client("Mirror.sync", client)
    if profile is not None and not isinstance(profile, ServiceProfile):
        raise TypeError(
            f"profile must be a ServiceProfile, not {_kind(profile)}: pass "
            "the result of Client.probe() or ServiceProfile.from_json(text)"
        )


def check_callback(on_progress: Callable[..., object] | None, given: str) -> None:
    """Raises TypeError unless ``on_progress`` is a function, or None; ``given`` is its argument."""
    if on_progress is not None and not callable(on_progress):
        raise TypeError(
            f"on_progress must be a function that takes {given}, or None, not {_kind(on_progress)}"
        )


def name_patterns(only: str | Iterable[str] | None) -> tuple[str, ...]:
    """The patterns that `Mirror.fetch_files` was given, in lower case; empty for all files."""
    if only is None:
        return ()
    given = (only,) if isinstance(only, str) else tuple(only)
    if not given or "" in given:
        raise ValueError("only must be a pattern such as '*.pdf' or 'image/*', or several")
    return tuple(each.lower() for each in given)


def users_to_forget(user_ids: tuple[int, ...]) -> tuple[int, ...]:
    """The ids that `Mirror.forget` was given, at least one."""
    if not user_ids:
        raise ValueError("give the id of at least one user to forget")
    return tuple(whole("user_ids", each, 0, LARGEST, then="") for each in user_ids)


def landing_folders(
    landings: Iterable[str | os.PathLike[str]],
) -> tuple[str | os.PathLike[str], ...]:
    """The folders; TypeError for one folder instead of several."""
    if isinstance(landings, (str, bytes, os.PathLike)):
        raise TypeError(f"landings must be a list of folders, not {_kind(landings)}")
    return tuple(landings)


def users_to_read(users: Iterable[int] | None, mode: Mode) -> tuple[int, ...] | None:
    """The ids that `Mirror.sync` was given, at least one; None for all users."""
    user_ids = identifiers("users", users)
    if user_ids is not None and mode != "incremental":
        raise ValueError(f"users cannot be given for a {mode} run, which is about all users")
    if user_ids == ():
        raise ValueError("users is empty; give at least one user id, or None for all users")
    return user_ids


def _kind(value: Any) -> str:
    """The name of the value's type, with its article."""
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"
