"""Situations in which a secret may be seen."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import pickle
import traceback
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from outcomes import Outcome, awaited, error_of
from settings import Settings


def pieces(value: Any) -> Iterator[str]:
    """The texts that hang on an object by its attributes, and in what those hold, four deep."""
    seen = {id(value)}
    layer = [value]
    for _ in range(5):
        yield from map(repr, layer)
        inner = [each for one in layer for each in held_by(one) if id(each) not in seen]
        seen |= {id(each) for each in inner}
        layer = inner


def held_by(value: Any) -> list[Any]:
    """What an object holds, where Python can see it."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, type | ModuleType | FunctionType | asyncio.AbstractEventLoop):
        return []
    held = list(getattr(value, "__dict__", {}).values())
    for kind in type(value).__mro__:
        slots = getattr(kind, "__slots__", ())
        names = [slots] if isinstance(slots, str) else slots
        held += [getattr(value, name, None) for name in names]
    return held


def shows(texts: Iterator[str] | list[str]) -> bool:
    """Whether the secret is in one of them."""
    secret = os.environ["RELIABILITY_SECRET"]
    return any(secret in text for text in texts)


def attributes(client: Any) -> Iterator[str]:
    """The texts of all public attributes."""
    for name in dir(client):
        if not name.startswith("_"):
            with contextlib.suppress(Exception):
                value = getattr(client, name)
                if not callable(value):
                    yield repr(value)
                    with contextlib.suppress(Exception):
                        yield repr(dict(value))


async def objects(face: Any, settings: Settings) -> tuple[Any, Any]:
    """A client and what a call of it gives."""
    if face.SYNC:
        client = face.client(settings)
        return client, face.response(client, settings)
    session = await face.async_client(settings)
    return session, await face.async_response(session, settings)


def shown(face: Any, settings: Settings) -> Outcome:
    """Where the secret of a client and of what it gives can be seen."""

    async def look() -> list[str]:
        client, response = await objects(face, settings)
        seen = []
        for name, one in (("client", client), ("response", response)):
            if shows([repr(one), str(one)]):
                seen.append(f"repr of the {name}")
            if shows(pieces(one)):
                seen.append(f"vars of the {name}")
            if shows(attributes(one)):
                seen.append(f"attributes of the {name}")
        return seen

    return {"kind": "shown", "places": asyncio.run(look())}


def raised(face: Any, settings: Settings) -> Outcome:
    """Where the secret can be seen once a call has failed."""

    async def look() -> list[str]:
        client = await face.async_client(settings)
        try:
            await face.async_get(client, settings)
        except Exception as error:
            seen = []
            if shows([repr(error), str(error)]):
                seen.append("repr of the error")
            if shows(pieces(error)):
                seen.append("vars of the error")
            report = traceback.TracebackException.from_exception(error, capture_locals=True)
            if shows(list(report.format())):
                seen.append("traceback with locals")
            with contextlib.suppress(Exception):
                if os.environ["RELIABILITY_SECRET"].encode() in pickle.dumps(error):
                    seen.append("the pickled error")
            return seen
        return ["no error"]

    return {"kind": "shown", "places": asyncio.run(look())}


def pickled(face: Any, settings: Settings) -> Outcome:
    """A client that is pickled."""

    async def look() -> Outcome:
        client = face.client(settings) if face.SYNC else await face.async_client(settings)
        try:
            data = pickle.dumps(client)
        except Exception as error:
            return error_of(error)
        return {"kind": "pickled", "inside": os.environ["RELIABILITY_SECRET"].encode() in data}

    return asyncio.run(look())


def logged(face: Any, settings: Settings) -> Outcome:
    """What the standard logging hears of a call."""
    heard = io.StringIO()
    logging.basicConfig(level=logging.DEBUG, stream=heard)
    asyncio.run(awaited(face, settings))
    lines = [line for line in heard.getvalue().splitlines() if "asyncio" not in line]
    return {
        "kind": "logged",
        "request": any(settings.path in line for line in lines),
        "secret": shows(lines),
    }
