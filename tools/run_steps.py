"""Runs make targets one after the other, and closes with what each took and how many tests ran.

Usage: ``python tools/run_steps.py TARGET...``. Targets joined by ``+`` run at the same time, and
each of their lines begins with its target; ``a,b+c,d`` runs b after a, and d after c, at the same
time. A target that fails does not stop the others; the exit
code is 1 if any failed, or if no test ran at all.
"""

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

# cargo: "test result: ok. 12 passed; 0 failed; 1 ignored; ..."
CARGO = re.compile(r"^test result: \w+\. (.*)$")
# pytest: "=== 3 failed, 12 passed, 1 skipped in 4.20s ===" (without the rules under -q)
PYTEST = re.compile(r"^(?:=+ )?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s")
COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|ignored|xfailed|xpassed)")
FAILED = {"failed": "failed", "error": "failed", "errors": "failed", "xpassed": "failed"}
SKIPPED = {"skipped": "skipped", "ignored": "skipped", "xfailed": "skipped"}


@dataclass(slots=True)
class Step:
    """What one target did: its exit code, seconds, and tests by outcome."""

    target: str
    code: int = 0
    seconds: float = 0.0
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def count(self, line: str) -> None:
        """Adds the tests of one closing line of cargo or pytest; other lines add nothing."""
        match = CARGO.match(line) or PYTEST.match(line)
        if match is None:
            return
        for number, outcome in COUNT.findall(match.group(1)):
            name = FAILED.get(outcome) or SKIPPED.get(outcome) or "passed"
            setattr(self, name, getattr(self, name) + int(number))


def run_together(chains: list[list[str]]) -> list[Step]:
    """Runs chains at the same time; their steps are in the order of the targets."""
    print(f"\n--- {' and '.join(', '.join(chain) for chain in chains)}", flush=True)

    def follow(chain: list[str]) -> list[Step]:
        return [run(target, f"{target}: " if len(chains) > 1 else "") for target in chain]

    with ThreadPoolExecutor(len(chains)) as pool:
        return [step for steps in pool.map(follow, chains) for step in steps]


def run(target: str, prefix: str) -> Step:
    """Runs ``make TARGET``, its output passed on line by line."""
    step = Step(target)
    started = time.monotonic()
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        ["make", "--no-print-directory", target],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=environment,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(prefix + line, end="", flush=True)
            step.count(line.rstrip())
    step.code = process.returncode
    step.seconds = time.monotonic() - started
    return step


def main(targets: list[str]) -> int:
    """Runs the targets and prints the closing table; gives the exit code."""
    groups = [[chain.split(",") for chain in each.split("+")] for each in targets]
    steps = [step for group in groups for step in run_together(group)]
    print()
    for step in steps:
        verdict = "ok" if step.code == 0 else f"FAILED (exit code {step.code})"
        if step.passed or step.failed or step.skipped:
            verdict += f", {step.passed} passed, {step.failed} failed, {step.skipped} skipped"
        print(f"{step.target:12} {step.seconds:7.1f} s  {verdict}")
    passed, failed = sum(s.passed for s in steps), sum(s.failed for s in steps)
    broken = [step.target for step in steps if step.code != 0]
    if passed == 0:
        broken.append("no test ran")
    if broken:
        print(f"failed: {', '.join(broken)}")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if broken or failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
