"""One library in one situation; prints what came of it as one line of JSON.

Usage: ``python situations.py LIBRARY SITUATION SECONDS``, with the settings in the environment
(`settings.py`). After so many seconds it says that it hangs, and ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import importlib
import io
import json
import logging
import os
import pickle
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import FunctionType, ModuleType
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
    return len(os.listdir("/proc/self/fd"))


def control(settings: Settings, what: str) -> None:
    """Asks the server itself, by other means than the library's."""
    connection = http.client.HTTPConnection(urlsplit(settings.base_url).netloc)
    connection.request("GET", f"/control/{what}")
    connection.getresponse().read()
    connection.close()


def error_of(error: BaseException) -> Outcome:
    """An error, in words and numbers."""
    return {"kind": "error", "error": type(error).__name__, "text": f"{error} {error!r}"}


def described(user: Any) -> Outcome:
    """A value: whether it is the user that was sent, and what it has where a case is odd."""
    if not isinstance(user, dict):
        return {"kind": "value", "is_user": False, "odd": type(user).__name__}
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
        return "text that no encoding takes"
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


class Guarded:
    """Says how long it took, how much memory, and that it hangs where it takes too long."""

    def __init__(self, limit: float) -> None:
        self._began = time.monotonic()
        self._held = megabytes("VmRSS")
        self._said = threading.Lock()
        timer = threading.Timer(limit, self._give_up)
        timer.daemon = True
        timer.start()

    def say(self, outcome: Outcome) -> None:
        """Prints the outcome, once."""
        if self._said.acquire(blocking=False):
            seconds = time.monotonic() - self._began
            more = megabytes("VmHWM") - self._held
            print(json.dumps({"seconds": seconds, "mb": more, **outcome}), flush=True)

    def _give_up(self) -> None:
        self.say({"kind": "hangs"})
        os._exit(0)


# --- one call -------------------------------------------------------------------------------------


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


def answer(face: Any, settings: Settings) -> Outcome:
    """One call."""
    return asyncio.run(awaited(face, settings))


def twice(face: Any, settings: Settings) -> Outcome:
    """Two calls on one connection."""
    return asyncio.run(awaited(face, settings, calls=2))


# --- processes and threads ------------------------------------------------------------------------


def in_child(call: Callable[[], Outcome], seconds: float = 5.0) -> Outcome:
    """What the call gives in a forked child; that it hangs, if it takes longer."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.write(writer, json.dumps(call()).encode())
        os._exit(0)
    os.close(writer)
    timer = threading.Timer(seconds, os.kill, (child, 9))
    timer.start()
    with open(reader, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    timer.cancel()
    if said:
        return dict(json.loads(said))
    code = os.waitstatus_to_exitcode(status)
    return {"kind": "hangs"} if code == -9 else {"kind": "error", "error": f"exit code {code}"}


def callers(face: Any, settings: Settings) -> tuple[Callable[[], Outcome], Any]:
    """A call that waits, of one client; for a library that has none, of one event loop."""
    if face.SYNC:
        client = face.client(settings)

        def call() -> Outcome:
            try:
                return described(face.get(client, settings))
            except Exception as error:
                return error_of(error)

        return call, client
    loop = asyncio.new_event_loop()
    session = loop.run_until_complete(face.async_client(settings))

    async def get() -> Outcome:
        try:
            return described(await face.async_get(session, settings))
        except Exception as error:
            return error_of(error)

    return lambda: loop.run_until_complete(get()), session


def fork(face: Any, settings: Settings) -> Outcome:
    """A fork after a call: each of both makes three calls at the same time."""
    call, _ = callers(face, settings)
    call()

    def thrice() -> Outcome:
        return [call() for _ in range(3)][-1]

    here: list[Outcome] = []
    if face.SYNC:
        thread = threading.Thread(target=lambda: here.append(thrice()))
        child = in_child(thrice)
        thread.start()
        thread.join()
    else:
        child = in_child(thrice)
        here.append(thrice())
    return {"kind": "both", "child": child, "parent": here[0]}


def fork_busy(face: Any, settings: Settings) -> Outcome:
    """A fork while four calls of the client are under way, in threads or tasks; then all go on."""
    if face.SYNC:
        call, _ = callers(face, settings)
        results: list[Outcome] = []
        threads = [threading.Thread(target=lambda: results.append(call())) for _ in range(4)]
        for thread in threads:
            thread.start()
        control(settings, "asked")
        time.sleep(0.2)
        child = in_child(lambda: (control(settings, "release"), call())[1])
        control(settings, "release")
        for thread in threads:
            thread.join()
    else:
        child, results = asyncio.run(fork_in_loop(face, settings))
    bad = [result for result in results if result["kind"] != "value"]
    return {"kind": "both", "child": child, "parent": (bad or results)[0]}


async def fork_in_loop(face: Any, settings: Settings) -> tuple[Outcome, list[Outcome]]:
    """The same with tasks."""
    client = await face.async_client(settings)

    async def get() -> Outcome:
        try:
            return described(await face.async_get(client, settings))
        except Exception as error:
            return error_of(error)

    tasks = [asyncio.create_task(get()) for _ in range(4)]
    await asyncio.sleep(0.5)
    child = in_child(lambda: (control(settings, "release"), asyncio.run(get()))[1])
    control(settings, "release")
    results = await asyncio.gather(*tasks)
    await closed(client)
    return child, results


def two_loops(face: Any, settings: Settings) -> Outcome:
    """One awaited client, in one event loop after another."""
    made: list[Any] = []

    async def first() -> None:
        made.append(await face.async_client(settings))
        await face.async_get(made[0], settings)

    async def second() -> Any:
        return await face.async_get(made[0], settings)

    asyncio.run(first())
    try:
        return described(asyncio.run(second()))
    except Exception as error:
        return error_of(error)


def fail(library: str) -> None:
    """Raises what the library raises; called in a worker."""
    face = importlib.import_module(f"{library}_face")
    settings = Settings.told()

    async def call() -> None:
        client = await face.async_client(settings)
        try:
            await face.async_get(client, settings)
        finally:
            await closed(client)

    asyncio.run(call())


def worker(face: Any, settings: Settings) -> Outcome:
    """An error that is raised in a worker of a pool of processes."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        library = face.__name__.removesuffix("_face")
        error = pool.submit(fail, library).exception()
        return {"kind": "none"} if error is None else error_of(error)


# --- interrupts and ends --------------------------------------------------------------------------


def interrupt(face: Any, settings: Settings) -> Outcome:
    """A call that waits, while the parent sends SIGINT."""
    if not face.SYNC:
        return {"kind": "none"}
    client = face.client(settings)
    try:
        face.get(client, settings)
    except KeyboardInterrupt:
        return {"kind": "interrupted", "at": time.monotonic()}
    except Exception as error:
        return {**error_of(error), "at": time.monotonic()}
    return {"kind": "value", "is_user": False}


def exit_thread(face: Any, settings: Settings) -> Outcome:
    """The end of the interpreter while a daemon thread is within a call."""

    def call() -> None:
        if face.SYNC:
            face.get(face.client(settings), settings)
        else:
            asyncio.run(awaited(face, settings))

    threading.Thread(target=call, daemon=True).start()
    control(settings, "asked")
    return {"kind": "ends"}


def exit_task(face: Any, settings: Settings) -> Outcome:
    """The end of the event loop and of the interpreter while a task is within a call."""

    async def main() -> None:
        client = await face.async_client(settings)
        task = asyncio.create_task(face.async_get(client, settings))
        await asyncio.to_thread(control, settings, "asked")
        main.task = task  # type: ignore[attr-defined]

    asyncio.run(main())
    return {"kind": "ends"}


def cancel(face: Any, settings: Settings) -> Outcome:
    """10,000 tasks, cancelled in the middle of a call; then a call that is answered."""

    async def main() -> Outcome:
        client = await face.async_client(settings)

        async def rounds(count: int) -> None:
            for _ in range(count):
                gets = [asyncio.ensure_future(face.async_get(client, settings)) for _ in range(100)]
                await asyncio.sleep(0.02)
                for each in gets:
                    each.cancel()
                await asyncio.gather(*gets, return_exceptions=True)

        await rounds(10)
        await asyncio.sleep(0.5)
        open_before, held_before = descriptors(), megabytes("VmRSS")
        await rounds(90)
        for _ in range(20):
            await asyncio.sleep(0.1)
            if descriptors() <= open_before:
                break
        open_after, held_after = descriptors(), megabytes("VmRSS")
        control(settings, "release")
        try:
            last = described(await face.async_get(client, settings))
        except Exception as error:
            last = error_of(error)
        await closed(client)
        return {
            "kind": "cancelled",
            "open": open_after - open_before,
            "held": held_after - held_before,
            "last": last,
        }

    return asyncio.run(main())


# --- secrets --------------------------------------------------------------------------------------


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
                seen.append("its text")
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


def main(library: str, situation: str, limit: float) -> None:
    """Runs the situation and prints what came of it."""
    face = importlib.import_module(f"{library}_face")
    settings = Settings.told()
    guarded = Guarded(limit)
    guarded.say(globals()[situation](face, settings))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
