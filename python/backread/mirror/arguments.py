"""Checks of the arguments of `Mirror`, made before anything is read or written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from backread._client.arguments import LARGEST, whole
from backread._client.option_kinds import SECONDS
from backread._client.privacy import Privacy, loaded
from backread._files.paths import local_path
from backread.errors import MirrorError
from backread.mirror.sync.report import Mode

if TYPE_CHECKING:
    from backread._client.client import Client
    from backread._client.option_kinds import Duration
    from backread.mirror.sync.report import SyncProgress
    from backread.mirror.sync.synchronize import Options
    from backread.profile import ServiceProfile

__all__ = [
    "check_callback",
    "kept_for",
    "landing_folders",
    "mirror_folder",
    "sync_options",
    "users_to_forget",
]

NOT_HERE = "sync to a local disk and copy the mirror, or use backread.landing"


def mirror_folder(folder: str | os.PathLike[str]) -> Path:
    """The absolute path of a mirror's folder; `MirrorError` if it is not a local path."""
    try:
        return local_path(folder, NOT_HERE).absolute()
    except ValueError as error:
        raise MirrorError(f"a mirror's folder: {error}") from None


def kept_for(retention: Duration | None) -> float | None:
    """How long deleted rows stay, in seconds; None for no limit."""
    seconds: float | None = SECONDS.check("retention", retention)
    if seconds is not None and not seconds >= 0:
        raise ValueError(f"retention must be 0 seconds or more, or None, not {retention}")
    return seconds


def sync_options(
    client: Client,
    *,
    mode: Mode,
    max_staleness: Duration | None,
    on_progress: Callable[[SyncProgress], object] | None,
    moved: bool,
    profile: ServiceProfile | None,
    max_requests: int | None,
    max_seconds: Duration | None,
    users: Iterable[int] | None,
    publish: bool,
    memory_limit: int | None,
    retention: float | None,
    privacy: Privacy | None,
) -> Options:
    """The checked arguments of `Mirror.sync`; the key file of ``privacy`` is read."""
    from backread._client.client import Client
    from backread.mirror.sync.synchronize import Options
    from backread.profile import ServiceProfile

    if mode not in get_args(Mode):
        raise ValueError(f"mode must be 'incremental', 'full' or 'quick', not {mode!r}")
    if not isinstance(client, Client):
        raise TypeError(
            f"Mirror.sync takes a Client, not {_kind(client)}: make a "
            "Client with the same arguments, and in async code call sync in a thread"
        )
    check_callback(on_progress, "a SyncProgress")
    if profile is not None and not isinstance(profile, ServiceProfile):
        raise TypeError(
            f"profile must be a ServiceProfile, not {_kind(profile)}: pass "
            "the result of Client.probe() or ServiceProfile.from_json(text)"
        )
    stale_after = staleness(max_staleness)
    seconds = SECONDS.check("max_seconds", max_seconds)
    if seconds is not None and not 0 < seconds < LARGEST:
        raise ValueError(
            f"max_seconds must be more than 0 seconds, or None for no limit, not {max_seconds}"
        )
    if max_requests is not None:
        max_requests = whole("max_requests", max_requests, 1, LARGEST)
    if not isinstance(publish, bool):
        raise TypeError(f"publish must be True or False, not {type(publish).__name__}")
    return Options(
        mode=mode,
        max_staleness=stale_after,
        on_progress=on_progress,
        moved=moved,
        profile=None if profile is None else profile.to_json(),
        max_requests=max_requests,
        max_seconds=seconds,
        users=None if users is None else _users_to_read(users, mode),
        publish=publish,
        memory_limit=memory_limit,
        retention=retention,
        privacy=loaded(privacy),
    )


def staleness(given: Duration | None) -> float | None:
    """The argument ``max_staleness`` in seconds."""
    seconds: float | None = SECONDS.check("max_staleness", given)
    if seconds is not None and not 0 <= seconds < LARGEST:
        raise ValueError(
            f"max_staleness must be 0 seconds or more, or None for no limit, not {given}"
        )
    return seconds


def check_callback(on_progress: Callable[..., object] | None, given: str) -> None:
    """Raises TypeError unless ``on_progress`` is a function, or None; ``given`` is its argument."""
    if on_progress is not None and not callable(on_progress):
        raise TypeError(
            f"on_progress must be a function that takes {given}, or None, not {_kind(on_progress)}"
        )


def users_to_forget(user_ids: tuple[int, ...]) -> tuple[int, ...]:
    """The ids that `Mirror.forget` was given, at least one."""
    if not user_ids:
        raise ValueError("give the id of at least one user to forget")
    if isinstance(user_ids[0], Iterable) and not isinstance(user_ids[0], str):
        raise TypeError("forget takes ids, not a list of them; write forget(*user_ids)")
    return _ids(user_ids, "user_ids")


def landing_folders(
    landings: Iterable[str | os.PathLike[str]],
) -> tuple[str | os.PathLike[str], ...]:
    """The folders; TypeError for one folder instead of several."""
    if isinstance(landings, (str, bytes, os.PathLike)):
        raise TypeError(f"landings must be a list of folders, not {_kind(landings)}")
    return tuple(landings)


def _users_to_read(users: Iterable[int], mode: Mode) -> tuple[int, ...]:
    if mode == "full":
        raise ValueError(
            "users cannot be given with mode='full', which marks the deleted rows of all users"
        )
    if mode == "quick":
        raise ValueError("users cannot be given with mode='quick', because all of them are read")
    if isinstance(users, (str, bytes, int)):
        raise TypeError(f"users must be a list of user ids, not {_kind(users)}")
    user_ids = _ids(users, "users")
    if not user_ids:
        raise ValueError("users is empty; give at least one user id, or None for all users")
    return user_ids


def _ids(given: Iterable[int], name: str) -> tuple[int, ...]:
    return tuple(
        whole(f"{name}[{place}]", user_id, 0, LARGEST, then="")
        for place, user_id in enumerate(given)
    )


def _kind(value: Any) -> str:
    """The name of the value's type, with its article."""
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"
