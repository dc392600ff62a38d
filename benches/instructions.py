"""Counts the instructions that decoding takes: the steady figure to compare commits by.

Usage: ``python benches/instructions.py [--json]``. Builds the bench ``decode-counted``, runs each
case under callgrind (Debian's package valgrind) for two numbers of rounds, and prints what one row
costs: the difference, so that start and set-up are left out. The same tree, compiler and machine
give the same figures, whatever else the machine is doing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FEW, MANY = 1, 3
COLLECTED = re.compile(r"Collected\s*:\s*(\d+)")


def build() -> Path:
    """The path of the program, built as a release is."""
    command = ["cargo", "bench", "--locked", "--package", "backread-core", "--no-run"]
    command += ["--bench", "decode-counted", "--message-format", "json"]
    built = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    messages = map(json.loads, built.stdout.splitlines())
    [program] = [
        message["executable"]
        for message in messages
        if message.get("reason") == "compiler-artifact" and message.get("executable")
    ]
    return Path(program)


def cases(program: Path) -> list[tuple[str, int, int]]:
    """Each case's name, and the rows and bytes of one round."""
    listed = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = (line.split("\t") for line in listed.splitlines())
    return [(name, int(rows), int(size)) for name, rows, size in lines]


def instructions(program: Path, case: str, rounds: int) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    # The environment lies on the stack, so a longer one moves what is counted a little.
    counted = subprocess.run(
        [*command, str(program), case, str(rounds)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    found = COLLECTED.search(counted.stderr)
    if found is None:
        sys.exit(f"callgrind counted nothing:\n{counted.stderr}")
    return int(found.group(1))


def main() -> None:
    parser = argparse.ArgumentParser(description="Instructions that decoding takes.")
    parser.add_argument("--json", action="store_true", help="one object, to keep or compare")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("benches/instructions.py needs valgrind: apt-get install valgrind")
    program = build()
    figures = {}
    for name, rows, size in cases(program):
        few, many = (instructions(program, name, rounds) for rounds in (FEW, MANY))
        figures[name] = (many - few) / (MANY - FEW) / rows
        if not arguments.json:
            print(f"{name:26} {figures[name]:8,.0f} instructions a row of {size // rows} bytes")
    if arguments.json:
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
