"""Tries the built wheel where its users will: in an empty environment, the sources out of reach.

Usage: ``python tools/check_wheel.py FOLDER``; the folder holds one wheel. For each CPython of 3.11
to 3.14 on the machine (as ``python3.X`` on PATH, or below pyenv's versions), a new environment
gets the wheel with the extras ``cli`` and ``mirror``, and pytest; then the fast part of the suite,
copied out of the checkout, runs in it. The one that runs this counts only if there is no other,
because ``make test-python`` runs the whole suite with it. All go at once, for they wait more than
they compute; what each printed follows when it ended. Exit code 1 if any failed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
# What the suite reads besides itself: its configuration, and the page whose snippets it runs.
COMPANIONS = ("pyproject.toml", "README.md")
# Free-threaded builds have no stable ABI, so not this wheel: sys.abiflags says "t".
IDENTIFY = (
    "import sys; print('%s %d.%d%s' % (sys.implementation.name, *sys.version_info[:2], "
    "getattr(sys, 'abiflags', '')))"
)


def version_of(interpreter: str | Path) -> str | None:
    """Gives ``"3.12"`` for a CPython that starts, else None (a pyenv shim may lead nowhere)."""
    try:
        answer = subprocess.run(
            [str(interpreter), "-c", IDENTIFY], capture_output=True, text=True, timeout=60
        )
    except OSError:
        return None
    name, _, version = answer.stdout.strip().partition(" ")
    return version if answer.returncode == 0 and name == "cpython" else None


def pyenv_versions() -> Path:
    """Gives the folder where pyenv keeps its interpreters; it need not exist."""
    root = os.environ.get("PYENV_ROOT")
    if not root and (pyenv := shutil.which("pyenv")):
        answer = subprocess.run([pyenv, "root"], capture_output=True, text=True)
        root = answer.stdout.strip()
    return Path(root or Path.home() / ".pyenv") / "versions"


def find_interpreters() -> dict[str, Path]:
    """Gives one interpreter for each version found, by version."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {running: Path(sys.executable)}
    for version in VERSIONS:
        candidates = [Path(path)] if (path := shutil.which(f"python{version}")) else []
        candidates += sorted(pyenv_versions().glob(f"{version}.*/bin/python"), reverse=True)
        for candidate in candidates:
            if version not in found and version_of(candidate) == version:
                found[version] = candidate
    return found


def check(wheel: Path, version: str, interpreter: Path) -> tuple[bool, str]:
    """Runs the fast part of the suite under one interpreter; whether it passed, and its output."""
    with tempfile.TemporaryDirectory(prefix="backread-wheel-") as folder:
        return check_in(Path(folder), wheel, version, interpreter)


def check_in(folder: Path, wheel: Path, version: str, interpreter: Path) -> tuple[bool, str]:
    """Does so in a folder of its own."""
    environment = folder / "environment"
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    suite = folder / "suite"
    shutil.copytree(ROOT / "tests", suite / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for name in COMPANIONS:
        shutil.copy(ROOT / name, suite / name)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "BACKREAD_"))}
    clean |= {"PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
    clean.pop("VIRTUAL_ENV", None)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    pins = ["--constraint", str(ROOT / "constraints.txt")]
    commands = [
        [str(interpreter), "-m", "venv", str(environment)],
        [*pip, *pins, f"{wheel}[cli,mirror]", "pytest"],
        [str(python), "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"],
    ]
    started = time.monotonic()
    output = f"\nPython {version}: {wheel.name}\n"
    for command in commands:
        done = subprocess.run(
            command,
            cwd=suite,
            env=clean,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        output += done.stdout
        if done.returncode != 0:
            return False, f"{output}Python {version}: failed at {' '.join(command[1:4])}"
    return True, f"{output}Python {version}: well, in {time.monotonic() - started:.1f} s"


def main(wheels: Path) -> int:
    """Checks the wheel under every interpreter found; gives the exit code."""
    built = sorted(wheels.glob("backread-*.whl"))
    if len(built) != 1:
        print(f"{wheels} holds {len(built)} wheels of backread, not one; run: make build")
        return 1
    interpreters = find_interpreters()
    others = {each: path for each, path in interpreters.items() if path != Path(sys.executable)}
    for version in VERSIONS:
        if version not in interpreters:
            print(f"Python {version}: not on this machine, so not checked")
    well = True
    tried = others or interpreters
    with ThreadPoolExecutor(len(tried)) as pool:
        wheel = built[0].resolve()
        checks = [pool.submit(check, wheel, *found) for found in sorted(tried.items())]
        for done in as_completed(checks):
            passed, output = done.result()
            print(output, flush=True)
            well &= passed
    return 0 if well else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/check_wheel.py FOLDER")
    sys.exit(main(Path(sys.argv[1])))
