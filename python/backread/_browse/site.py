"""Who may see the page: whoever has the token, on this machine, in a browser tab of its own."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from hmac import compare_digest
from importlib.resources import files
from pathlib import Path
from socket import inet_aton, socket
from time import monotonic
from urllib.parse import parse_qs, urlsplit

from backread._browse.api import Api
from backread._browse.files import Reply
from backread._display.style import CHAT_RULES, TABLES_RULES
from backread.errors import MirrorError
from backread.mirror.published.snapshot_reader import InterruptibleReader

ROOT = 0

CONNECTIONS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""The connections of a Linux machine, with the user of each (proc(5)).

A socket of IPv6 that connects to ``::ffff:127.0.0.1`` is in the second.
"""

SECONDS_OF_A_TICKET = 60

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types backread"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}

TYPES = {
    "index.html": "text/html; charset=utf-8",
    "browse.css": "text/css; charset=utf-8",
    "browse.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
BUBBLES = "bubbles.css"

REFUSALS = {
    400: "This is not a request for this page.",
    403: "Open the address that backread browse printed: it has the token that shows this page. If "
    "you clicked it on another page, copy it into the address bar instead.",
    404: "There is nothing at this address.",
    405: "This page can only be read.",
    421: "This page has another address: open the one that backread browse printed, with the same "
    "host and port.",
}


class Site:
    """Answers requests for the page, its files and its data; thread-safe."""

    def __init__(
        self, reader: InterruptibleReader, port: int, on_error: Callable[[str], object]
    ) -> None:
        self.token = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self._tickets: dict[str, float] = {}
        self._port = port
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._on_error = on_error
        # Browsers send a cookie to every port of a host. A path of its own keeps it from servers
        # of other people on this machine; the same for a mirror, so that links can be kept.
        own = reader.snapshot().manifest.mirror_id
        self._path = f"/{sha256(own.encode()).hexdigest()[:12]}/"
        self._cookie = f"backread-{port}"
        folder = files("backread._browse")
        self._files = {
            name: Reply(200, (folder / name).read_bytes(), HEADERS | {"Content-Type": kind})
            for name, kind in TYPES.items()
        }
        self._files[BUBBLES] = Reply(
            200,
            f"{CHAT_RULES}{TABLES_RULES}".encode(),
            HEADERS | {"Content-Type": TYPES["browse.css"]},
        )
        self._files[""] = self._files.pop("index.html")
        self._api = Api(reader)

    def entrance(self, token: str) -> str:
        """The address that lets a browser in."""
        return f"http://127.0.0.1:{self._port}/?token={token}"

    def ticket(self) -> str:
        """A token that is valid once, for a minute."""
        made = secrets.token_urlsafe(32)
        self._tickets[made] = monotonic() + SECONDS_OF_A_TICKET
        return made

    def respond(self, target: str, headers: Mapping[str, str], connection: socket) -> Reply:
        """The reply to a GET request; headers are named as in ``Sec-Fetch-Site``."""
        # A name of another host that leads here is how pages elsewhere read local ones
        # (DNS rebinding).
        if headers.get("Host") not in self._hosts:
            return self.refusal(421)
        if not target.startswith("/"):
            return self.refusal(400)
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/" and "token" in query:
            return self._enter(query["token"].encode(), connection)
        if not self._is_own_page(headers) or not self._has_session(headers):
            return self.refusal(403)
        if not parts.path.startswith(self._path):
            return self.refusal(404)
        name = parts.path.removeprefix(self._path)
        if name.startswith("api/"):
            answer = self._answer(name.removeprefix("api/"), query)
            return replace(answer, headers={**HEADERS, **answer.headers})
        return self._files.get(name) or self.refusal(404)

    def refusal(self, status: int) -> Reply:
        """A page that says why nothing is shown."""
        text = REFUSALS.get(status, REFUSALS[400])
        page = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" '
            f'content="light dark"><title>backread browse</title><p>{text}</p></html>\n'
        )
        headers = HEADERS | {"Content-Type": TYPES["index.html"]}
        if status == 405:
            headers["Allow"] = "GET"
        return Reply(status, page.encode(), headers)

    def _enter(self, given: bytes, connection: socket) -> Reply:
        found = [each for each in list(self._tickets) if compare_digest(each.encode(), given)]
        if found and is_other_user(connection):
            # Who watches the list of processes may be faster than the browser.
            return self.refusal(403)
        # A ticket opens once.
        is_ticket = found and monotonic() < self._tickets.pop(found[0], 0.0)
        if not is_ticket and not compare_digest(self.token.encode(), given):
            return self.refusal(403)
        cookie = f"{self._cookie}={self._session}; Path={self._path}; HttpOnly; SameSite=Strict"
        return Reply(303, b"", HEADERS | {"Location": self._path, "Set-Cookie": cookie})

    def _is_own_page(self, headers: Mapping[str, str]) -> bool:
        """False for what another page asks for; old browsers and other programs do not say."""
        origin = headers.get("Origin")
        return headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none") and (
            origin is None or origin in {f"http://{host}" for host in self._hosts}
        )

    def _has_session(self, headers: Mapping[str, str]) -> bool:
        for pair in headers.get("Cookie", "").split(";"):
            name, _, value = pair.strip().partition("=")
            if name == self._cookie and compare_digest(value.encode(), self._session.encode()):
                return True
        return False

    def _answer(self, name: str, query: Mapping[str, str]) -> Reply:
        status = 200
        try:
            call = self._api.calls.get(name)
            if call is None:
                return self.refusal(404)
            answer = call(query)
            if isinstance(answer, Reply):
                return answer
        except MirrorError as error:
            status, answer = 404, {"error": str(error)}
        except (ValueError, ImportError) as error:
            status, answer = 400, {"error": str(error)}
        except BaseException as error:
            # Also an interrupted query, while the server ends.
            self._on_error(f"bug in backread: {type(error).__name__}: {error}")
            status, answer = 500, {"error": f"a bug in backread: {type(error).__name__}"}
        body = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
        return Reply(status, body, {"Content-Type": "application/json"})


def is_other_user(connection: socket) -> bool:
    """Whether the other end runs as another user; False where no one can know, and for root."""
    rows = [row.split() for table in CONNECTIONS for row in _lines(table)]
    try:
        ours = _written(connection.getsockname())
        theirs = _written(connection.getpeername())
    except OSError:
        # It has gone, so it cannot be the browser.
        return True
    if not _users(rows, ours, theirs):
        # The tables lack our own end too: this system leaves them empty.
        return False
    users = _users(rows, theirs, ours)
    return not users or not users <= {os.geteuid(), ROOT}


def _lines(table: Path) -> list[str]:
    try:
        return table.read_text().splitlines()[1:]
    except OSError:
        return []


def _users(rows: list[list[str]], local: str, remote: str) -> set[int]:
    return {int(row[7]) for row in rows if row[1].endswith(local) and row[2].endswith(remote)}


def _written(address: tuple[str, int]) -> str:
    """An address as the tables write it; those of IPv6 have more digits before it."""
    host = int.from_bytes(inet_aton(address[0]), sys.byteorder)
    return f"{host:08X}:{address[1]:04X}"
