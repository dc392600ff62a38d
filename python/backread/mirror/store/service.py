"""Ties a mirror to one service: the users of a second one would mix with the first's."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from backread.errors import MirrorError

if TYPE_CHECKING:
    from backread._client.client import Client


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


def service_of(client: Client, mirror_id: str | None) -> Service:
    """The service that a client reads, as the mirror with this id stores it."""
    key = hashlib.blake2s((mirror_id or "").encode(), digest_size=16).digest()
    return Service(client.base_url, client.vendor, client._secret_mark(key))


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
