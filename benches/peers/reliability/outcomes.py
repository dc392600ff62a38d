"""What comes of a call, in words and numbers, and what the processes of a case share."""

from __future__ import annotations

import http.client
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from settings import Settings

Outcome = dict[str, Any]


def megabytes(name: str) -> float:
    """``VmHWM`` (the peak) or ``VmRSS`` (now) of this process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    [kilobytes] = re.findall(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    return int(kilobytes) * 1024 / 1e6


def descriptors() -> int:
    """How many files and sockets are open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def control(settings: Settings, what: str) -> int:
    """Asks the server itself, by other means than the library's; gives its number of requests."""
    connection = http.client.HTTPConnection(urlsplit(settings.base_url).netloc)
    connection.request("GET", f"/control/{what}")
    count = int(connection.getresponse().read())
    connection.close()
    return count


def error_of(error: BaseException) -> Outcome:
    """An error, in words and numbers."""
    return {"kind": "error", "error": type(error).__name__, "text": str(error)}


def described(user: Any) -> Outcome:
    """A value: whether it is the user that was sent, and what it has where a case is odd."""
    if not isinstance(user, dict):
        return {"kind": "value", "is_user": False, "odd": repr(user)[:40]}
    name, more = user.get("name"), user.get("more")
    whole = user.get("id") == 42 and user.get("reference") == "r" * 400
    return {"kind": "value", "is_user": whole, "name": odd_text(name), "more": odd(more)}


def odd_text(name: Any) -> str:
    """A name, or how it is not text."""
    if not isinstance(name, str) or len(name) > 100:
        return type(name).__name__
    try:
        name.encode()
    except UnicodeEncodeError:
        return "a `str` that cannot be encoded"
    return "U+FFFD in its place" if "\ufffd" in name else name


def odd(more: Any) -> str:
    """An unknown field, in words."""
    if isinstance(more, int) and not isinstance(more, bool):
        return "the number" if more == 10**4_999 else "another number"
    if isinstance(more, list):
        levels = 0
        while isinstance(more, list):
            more, levels = (more[0] if more else None), levels + 1
        return f"{levels:,} levels"
    return repr(more)


async def closed(client: Any) -> None:
    """Closes an awaited client by the name that it has for that."""
    close = getattr(client, "aclose", None) or client.close
    result = close()
    if result is not None:
        await result


async def awaited(face: Any, settings: Settings, calls: int = 1) -> Outcome:
    """So many awaited calls of one client, one after another; what came of the last one."""
    try:
        client = await face.async_client(settings)
        for _ in range(calls):
            user = await face.async_get(client, settings)
        await closed(client)
    except Exception as error:
        return error_of(error)
    return described(user)
