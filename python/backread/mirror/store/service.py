"""Ties a mirror to one service and to one choice of privacy.

The users of a second service would mix with the first's, and names with pseudonyms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from backread._client.privacy import Choice, why_refused
from backread.errors import MirrorError
from backread.mirror.store.schema import Table

if TYPE_CHECKING:
    from backread.mirror.store.store import ArrowTable, Store

__all__ = [
    "Service",
    "refuse_other_privacy",
    "refuse_other_service",
    "refuse_other_world",
]

MOCK = "mock"
"""The mark of the secrets of all mocks."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service as clients identify it: base URL and vendor word.

    ``secret_mark`` tells that the secret is another, see `Source`.
    """

    base_url: str
    vendor: str
    secret_mark: str = field(compare=False)

    def __str__(self) -> str:
        return f"{self.base_url} (vendor {self.vendor})"

    @property
    def on_loopback(self) -> bool:
        """Whether the host is this machine, by the client's rule."""
        host = urlsplit(self.base_url).hostname or ""
        if host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def is_mock(self) -> bool:
        """Whether it is a mock, by its secret."""
        return self.secret_mark == MOCK

    def has_other_secret(self, held: Service | None) -> bool:
        """Whether the mirror that holds ``held`` was last synced with another secret."""
        return held is not None and held.secret_mark != self.secret_mark

    def may_have_moved_from(self, held: Service) -> bool:
        """Whether it may be the same service, whose port on this machine has changed.

        Mocks and forwarded ports often have another one each time. The path stays: a gateway has
        several services by their paths.
        """
        given, before = urlsplit(self.base_url), urlsplit(held.base_url)
        return (
            self.on_loopback
            and held.on_loopback
            and (given.scheme, given.path) == (before.scheme, before.path)
            and self.vendor == held.vendor
            and not self.has_other_secret(held)
        )


def refuse_other_service(folder: Path, held: Service | None, given: Service, moved: bool) -> None:
    """Raises `MirrorError` if the mirror holds another service than the one to be read.

    With ``moved`` they count as the same.
    """
    if held is None or held == given or moved or given.may_have_moved_from(held):
        return
    raise MirrorError(
        f"the mirror in {folder} is a copy of the service at {held}, but this client reads "
        f"{given}; sync into another folder or, if it is the same service at a new address, sync "
        "with moved=True (on the command line: --moved)"
    )


def refuse_other_world(store: Store, table: Table, rows: ArrowTable) -> None:
    """Raises `MirrorError` if a mock's rows are not those that the mirror holds by these ids.

    Neither address nor secret tells one mock from another, but rows keep the time of creation.
    """
    key = ", ".join(table.key)
    with store.registered(table.name, rows) as source:
        [(known, others)] = store.rows(
            "SELECT count(*), count(*) FILTER (held.created_at <> given.created_at) "
            f"FROM {table.name} AS held JOIN {source} AS given USING ({key}) "
            "WHERE held.created_at IS NOT NULL AND given.created_at IS NOT NULL"
        )
    # A test may have changed some rows.
    if 2 * others > known:
        raise MirrorError(
            f"the mirror in {store.folder} is a copy of a mock with another world: {others:,} of "
            f"{known:,} {table.name} that it holds were created at other times here; sync into "
            "another folder or, if that is meant, sync with moved=True (on the command "
            "line: --moved)"
        )


def refuse_other_privacy(folder: Path, stored: str | None, given: Choice | None) -> None:
    """Raises `MirrorError` if a mirror that holds rows made them private in another way.

    ``stored`` is the JSON in ``meta``.
    """
    why = why_refused(stored, given, "sync into a new folder")
    if why is not None:
        raise MirrorError(f"the mirror in {folder} {why}")
