"""What importing backread costs, and how large the wheel is.

Usage: ``python benches/import_and_size.py FOLDER``; the folder holds the wheel. The cost is the
median time of fresh interpreters that import it, less the median of bare ones, all taken in turns
in one run, so that the machine's mood falls on each. Isolated mode (-I): only what is
installed counts.
"""

import random
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROUNDS = 41
# Names are loaded when they are first used, so the second is what a program pays, and the third
# what it has paid once it has made a client, which imports the dataclasses.
CLIENT = "from backread import Client"
IMPORTS = ("import backread", CLIENT, "from backread import Client, User")


def milliseconds(python: str, code: str) -> float:
    """Runs code in a fresh interpreter, and gives the milliseconds from its start to its end."""
    started = time.perf_counter()
    subprocess.run([python, "-I", "-c", code], check=True)
    return (time.perf_counter() - started) * 1_000


def import_costs(programs: Sequence[tuple[str, str]], rounds: int) -> dict[tuple[str, str], float]:
    """The median milliseconds of each interpreter with its code, over those of its bare start."""
    bare = [(python, "pass") for python in {python for python, _ in programs}]
    samples: dict[tuple[str, str], list[float]] = {each: [] for each in (*bare, *programs)}
    for python, code in samples:
        milliseconds(python, code)  # the first start reads the files from disk
    for _ in range(rounds):
        # What ran just before is still in the caches, or has emptied them.
        for python, code in random.sample([*samples], len(samples)):
            samples[python, code].append(milliseconds(python, code))
    medians = {each: statistics.median(times) for each, times in samples.items()}
    return {each: medians[each] - medians[each[0], "pass"] for each in programs}


def measure_imports() -> None:
    """Prints the cost of each import."""
    costs = import_costs([(sys.executable, code) for code in IMPORTS], ROUNDS)
    for (_, code), cost in costs.items():
        print(f"{code}: {cost:.1f} ms more than a bare interpreter (medians of {ROUNDS})")


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
