"""Which service a mirror holds: a second one would mix its users with those of the first."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from backread.errors import MirrorError
from backread.mirror.source import Source

__all__ = ["Service", "refuse_other_service", "service_of"]


@dataclass(frozen=True, slots=True)
class Service:
    """A service as its clients name it: base URL and vendor word."""

    base_url: str
    vendor: str

    def __str__(self) -> str:
        return f"{self.base_url} (vendor {self.vendor})"

    @property
    def on_loopback(self) -> bool:
        """True where the host is this machine's own, by the rule that the client has for it."""
        host = urlsplit(self.base_url).hostname or ""
        if host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return False


def service_of(source: Source) -> Service:
    """The service that a client reads."""
    return Service(source.base_url, source.vendor)


def refuse_other_service(folder: Path, held: Service | None, given: Service, moved: bool) -> None:
    """`MirrorError` where the mirror holds another service than the one to be read.

    With ``moved`` the two are one service. Two on loopback pass: a mock has a new port each time.
    """
    if held is None or held == given or moved or (held.on_loopback and given.on_loopback):
        return
    raise MirrorError(
        f"the mirror in {folder} holds the service at {held}, and this client reads the one at "
        f"{given}; sync into another folder or, if it is the same service at a new address, sync "
        "with moved=True (on the command line: --moved)"
    )
