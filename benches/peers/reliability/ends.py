"""Situations in which a call, a task or the interpreter is ended."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from outcomes import (
    Outcome,
    awaited,
    closed,
    control,
    described,
    descriptors,
    error_of,
    megabytes,
)
from settings import Settings


def interrupt(face: Any, settings: Settings) -> Outcome:
    """A call that waits, while the parent sends SIGINT."""
    if not face.SYNC:
        return {"kind": "none"}
    client = face.client(settings)
    try:
        try:
            face.get(client, settings)
        except Exception as error:
            # The interrupt may be heard only now.
            return {**error_of(error), "at": time.monotonic()}
    except KeyboardInterrupt:
        return {"kind": "interrupted", "at": time.monotonic()}
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
    return {"kind": "ends", "at": time.monotonic()}


def exit_task(face: Any, settings: Settings) -> Outcome:
    """The end of the event loop and of the interpreter while a task is within a call."""

    async def call() -> None:
        client = await face.async_client(settings)
        try:
            await face.async_get(client, settings)
        finally:
            await closed(client)

    async def main() -> None:
        tasks.append(asyncio.create_task(call()))
        await asyncio.to_thread(control, settings, "asked")

    tasks: list[Any] = []
    asyncio.run(main())
    return {"kind": "ends", "at": time.monotonic()}


def cancel(face: Any, settings: Settings) -> Outcome:
    """2,000 tasks, cancelled in the middle of a call; then a call that is answered.

    Of each hundred so many are within their request as the client has at once; the others wait.
    """

    async def main() -> Outcome:
        client = await face.async_client(settings)

        async def no_more_come() -> None:
            before = count = await asyncio.to_thread(control, settings, "count")
            for _ in range(50):
                await asyncio.sleep(0.01)
                last, count = count, await asyncio.to_thread(control, settings, "count")
                if count == last > before:
                    return

        async def rounds(count: int) -> None:
            for _ in range(count):
                gets = [asyncio.ensure_future(face.async_get(client, settings)) for _ in range(100)]
                await no_more_come()
                for each in gets:
                    each.cancel()
                await asyncio.gather(*gets, return_exceptions=True)

        await rounds(2)
        await asyncio.sleep(0.5)
        open_before, held_before = descriptors(), megabytes("VmRSS")
        await rounds(18)
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
