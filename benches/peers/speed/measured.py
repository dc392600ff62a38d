"""What a reader costs: rows, seconds, CPU seconds and the peak of memory, as one line of JSON."""

from __future__ import annotations

import gc
import json
import re
import resource
import sys
import time
from collections.abc import Callable, Sized
from pathlib import Path


def cpu_seconds() -> float:
    """User and system seconds of this process so far; no reader has children."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def memory_megabytes(name: str) -> float:
    """``VmHWM`` (the peak) or ``VmRSS`` (now) of this process.

    Not ``ru_maxrss``, which in a fresh process begins with what the one that started it held.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    [kilobytes] = re.findall(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    return int(kilobytes) * 1024 / 1e6


def measure(read: Callable[[], Sized], **more: object) -> None:
    """Reads, keeps what was read, and prints what that took. Imports are not counted.

    With ``uncollected`` as an argument, Python's garbage collector is off meanwhile.
    """
    gc.collect()
    if "uncollected" in sys.argv:
        gc.disable()
    began, cpu = time.perf_counter(), cpu_seconds()
    kept = read()
    seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu
    report(len(kept), seconds, cpu, **more)


def report(rows: int, seconds: float, cpu: float, **more: object) -> None:
    """Prints one measurement."""
    peak = memory_megabytes("VmHWM")
    print(json.dumps({"rows": rows, "seconds": seconds, "cpu": cpu, "peak_mb": peak, **more}))
