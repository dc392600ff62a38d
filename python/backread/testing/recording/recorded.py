"""A record of a service in a folder: fake rows, a profile, and metadata."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from backread._backread import World
from backread.testing.dialect import Dialect
from backread.testing.learning import Learned, learn

if TYPE_CHECKING:
    from backread.profile import ServiceProfile

__all__ = ["ABOUT", "PROFILE", "WORLD", "About", "Record"]

WORLD, PROFILE, ABOUT = "world.jsonl", "profile.json", "about.json"

RECORD_VERSION = 1
"""Incremented when a file of a record changes its meaning."""


@dataclass(frozen=True, slots=True)
class About:
    """How a record was made: counts, a time, and the names that were not replaced.

    - ``recorded_at`` is UTC, shifted into the past like all times of the record and the profile's.
      ``backread`` is the version, ``requests`` the number sent by the walks.
    - ``users`` and ``messages`` are the rows in the record, ``total_users`` the users that the
      service listed, ``None`` if the list was not read to its end.
    - ``users_certificate`` is that of the list of users, ``certificates`` the number of message
      lists by certificate.
    - ``ids``: whether the service sends them as numbers or as text.
    - ``left_out``: the number of rows that the record lacks, by reason.
    - ``kept_names``: undocumented names of fields and attributes, and types of senders, that were
      not replaced. Check whether one is personal data.
    """

    backread: str
    recorded_at: datetime
    requests: int
    users: int
    messages: int
    total_users: int | None
    users_certificate: str
    certificates: dict[str, int] = field(hash=False)
    ids: Literal["integer", "text"]
    left_out: dict[str, int] = field(hash=False)
    kept_names: tuple[str, ...]

    def to_json(self) -> str:
        """The text of ``about.json``."""
        instant = self.recorded_at.isoformat().replace("+00:00", "Z")
        record = {"record_version": RECORD_VERSION, **asdict(self), "recorded_at": instant}
        return json.dumps(record, indent=2) + "\n"


class Record:
    """A record of a service, which the mock can serve; `record` creates one.

    Args:
        folder: The record's folder.

    Raises:
        ValueError: The folder has no record, or one of a newer version.
        OSError: The record cannot be read.

    Example:
        >>> recorded = Record("record/")
        >>> server = MockServer(recorded.world(), dialect=recorded.dialect)
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self._folder = Path(folder)
        self._about = _about(self._folder / ABOUT)

    @property
    def folder(self) -> Path:
        """The record's folder."""
        return self._folder

    @property
    def about(self) -> About:
        """How the record was made."""
        return self._about

    @cached_property
    def profile(self) -> ServiceProfile | None:
        """The probe's results at the time of recording; None without a probe."""
        from backread.profile import ServiceProfile

        file = self._folder / PROFILE
        if not file.exists():
            return None
        try:
            return ServiceProfile.from_json(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None

    @cached_property
    def learned(self) -> Learned | None:
        """The result of `learn` for the profile, with what the mock cannot imitate."""
        if self.profile is None:
            return None
        return learn(self.profile, total_users=self._about.total_users)

    @property
    def dialect(self) -> Dialect:
        """The service's behaviour, except for switches that the recorded rows already reflect."""
        learned = self.learned
        dialect = Dialect() if learned is None else learned.dialect
        return dialect.with_(
            nulls="documented",
            sender_type="documented",
            extra_fields=False,
            ids=self._about.ids,
        )

    def world(self) -> World:
        """The fake rows; with `dialect`, in the service's order."""
        return World.from_jsonl(self._folder / WORLD)

    def __repr__(self) -> str:
        users, messages = self._about.users, self._about.messages
        return f"<Record {str(self._folder)!r}: {users} users, {messages} messages>"


def _about(file: Path) -> About:
    try:
        document: Any = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(
            f"{file.parent} is not a record: it has no {ABOUT}; create one with "
            "backread mock record FOLDER"
        ) from None
    except ValueError as error:
        raise ValueError(f"{file} is damaged: it is not JSON ({error})") from None
    version = document.get("record_version") if isinstance(document, dict) else None
    if not isinstance(version, int):
        raise ValueError(f"{file} is not the description of a record: it has no record_version")
    if version > RECORD_VERSION:
        raise ValueError(
            f"the record in {file.parent} has version {version}, but this backread reads at most "
            f"{RECORD_VERSION}; install a newer backread, or record again"
        )
    try:
        found = {each.name: document[each.name] for each in fields(About)}
        found["kept_names"] = tuple(found["kept_names"])
        found["recorded_at"] = datetime.fromisoformat(found["recorded_at"]).astimezone(UTC)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{file} is damaged: {error} is missing or invalid") from None
    return About(**found)
