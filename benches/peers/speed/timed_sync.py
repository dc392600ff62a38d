"""One run of a program of benches/peers/mirror, timed without its imports.

Usage: ``python timed_sync.py URL PROGRAM [again] FOLDER``. The run is the first, or with ``again``
the second, which finds nothing new; another process does the first then. Counted are the messages
that the program says it holds at the end.
"""

import importlib
import inspect
import io
import json
import os
import subprocess
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

from measured import cpu_seconds, memory_megabytes

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "mirror"))


def main(url: str, program: str, again: bool, folder: Path) -> None:
    """Runs, and prints what that took."""
    if again:
        command = [sys.executable, __file__, url, program, folder]
        subprocess.run(command, check=True, capture_output=True)
    os.environ |= {
        "BACKREAD_BASE_URL": url,
        "BACKREAD_API_SECRET": "bench",
        "BACKREAD_VENDOR": "bench",
    }
    module = importlib.import_module(program)
    options = {"updated": False} if "updated" in inspect.signature(module.sync).parameters else {}
    began, cpu = time.perf_counter(), cpu_seconds()
    with redirect_stdout(io.StringIO()):
        module.sync(folder, **options)
    measured = {
        "seconds": time.perf_counter() - began,
        "cpu": cpu_seconds() - cpu,
        "peak_mb": memory_megabytes("VmHWM"),
    }
    with redirect_stdout(io.StringIO()) as printed:
        module.held(folder)
    rows = len(json.loads(printed.getvalue())["messages"])
    print(json.dumps({"rows": rows, **measured}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "again" in sys.argv, Path(sys.argv[-1]))
