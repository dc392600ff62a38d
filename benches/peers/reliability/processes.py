"""Situations of several processes, threads and event loops."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from outcomes import Outcome, closed, control, described, error_of
from settings import Settings


def callers(face: Any, settings: Settings) -> Callable[[], Outcome]:
    """A call of one client that waits; of a library that has none, within one event loop."""
    if face.SYNC:
        client = face.client(settings)

        def call() -> Outcome:
            try:
                return described(face.get(client, settings))
            except Exception as error:
                return error_of(error)

        return call
    loop = asyncio.new_event_loop()
    session = loop.run_until_complete(face.async_client(settings))

    async def get() -> Outcome:
        try:
            return described(await face.async_get(session, settings))
        except Exception as error:
            return error_of(error)

    return lambda: loop.run_until_complete(get())


def in_child(call: Callable[[], Outcome]) -> Outcome:
    """What the call gives in a forked child; that it hangs, if it takes five seconds."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.write(writer, json.dumps(call()).encode())
        os._exit(0)
    os.close(writer)
    timer = threading.Timer(5.0, os.kill, (child, 9))
    timer.start()
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    timer.cancel()
    if said:
        return dict(json.loads(said))
    code = os.waitstatus_to_exitcode(status)
    return {"kind": "hangs"} if code == -9 else {"kind": "error", "error": f"exit code {code}"}


def fork(face: Any, settings: Settings) -> Outcome:
    """A fork after a call: each of both makes three calls at the same time."""
    call = callers(face, settings)
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
        call = callers(face, settings)
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
