"""What importing backread costs, and how large the wheel is.

Usage: ``python benches/import_and_size.py FOLDER``; the folder holds the wheel. The cost is the
median time of fresh interpreters that import it, less the median of bare ones, all taken in turns
in one run, so that the machine's mood falls on each. Isolated mode (-I): only what is
installed counts.
"""

import statistics
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROUNDS = 41
# Names are loaded when they are first used, so the second is what a program pays.
IMPORTS = ("import backread", "from backread import Client")


def milliseconds(code: str) -> float:
    """Runs code in a fresh interpreter, and gives the milliseconds from its start to its end."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", code], check=True)
    return (time.perf_counter() - started) * 1_000


def measure_imports() -> None:
    """Prints the cost of each import, with the medians it is the difference of."""
    samples: dict[str, list[float]] = {code: [] for code in ("pass", *IMPORTS)}
    for code in samples:
        milliseconds(code)  # the first start reads the files from disk
    for _ in range(ROUNDS):
        for code, times in samples.items():
            times.append(milliseconds(code))
    bare = statistics.median(samples.pop("pass"))
    print(f"bare interpreter: {bare:.1f} ms (medians of {ROUNDS})")
    for code, times in samples.items():
        whole = statistics.median(times)
        print(f"{code}: {whole - bare:.1f} ms more ({whole:.1f} ms)")


def measure_wheels(folder: Path) -> None:
    """Prints each wheel's size as it is downloaded, unpacked, and of its native module."""
    for wheel in sorted(folder.glob("backread-*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            members = archive.infolist()
        native = [m for m in members if m.filename.endswith((".so", ".pyd"))]
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB", end="")
        print(f" (unpacked {sum(m.file_size for m in members) / 1e6:.2f} MB", end="")
        print(f", the native module {sum(m.file_size for m in native) / 1e6:.2f} MB)")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python benches/import_and_size.py FOLDER")
    measure_imports()
    measure_wheels(Path(sys.argv[1]))
