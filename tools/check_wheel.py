"""Tries the built wheel as users will install it: in empty environments, away from the sources.

Usage: ``python tools/check_wheel.py FOLDER``; the folder holds one wheel. For each CPython of 3.11
to 3.14 on the machine (as ``python3.X`` on PATH, or below pyenv's versions), a new environment
gets the wheel with the extras ``cli`` and ``mirror``, and pytest; then try_wheel.py runs in it. The
environments are made side by side. Exit code 1 if any failed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
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
    """Tries the wheel with one interpreter; returns whether it works, and what was printed."""
    started = time.monotonic()
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "BACKREAD_"))}
    clean.pop("VIRTUAL_ENV", None)
    with tempfile.TemporaryDirectory(prefix="backread-wheel-") as folder:
        environment = Path(folder) / "environment"
        python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        # This pip installs into it, which spares a copy of pip for each environment.
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
        pins = ["--constraint", str(ROOT / "constraints.txt")]
        commands = [
            [str(interpreter), "-m", "venv", "--without-pip", str(environment)],
            [*pip, "--quiet", "install", *pins, f"{wheel}[cli,mirror]", "pytest"],
            [str(python), "-I", str(ROOT / "tools" / "try_wheel.py")],
        ]
        output = ""
        for command in commands:
            done = subprocess.run(
                command,
                cwd=folder,
                env=clean,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            )
            output += done.stdout
            if done.returncode != 0:
                return False, f"{output}Python {version}: failed at {' '.join(command)}"
    return True, f"{output}Python {version}: ok in {time.monotonic() - started:.1f} s"


def main(wheels: Path) -> int:
    """Checks the wheel with every interpreter found; returns the exit code."""
    built = sorted(wheels.glob("backread-*.whl"))
    if len(built) != 1:
        print(f"{wheels} holds {len(built)} wheels of backread, not one; run: make build")
        return 1
    interpreters = find_interpreters()
    for version in VERSIONS:
        if version not in interpreters:
            print(f"Python {version}: not on this machine, so not checked")
    wheel = built[0].resolve()
    with ThreadPoolExecutor(len(interpreters)) as pool:
        results = list(pool.map(lambda found: check(wheel, *found), sorted(interpreters.items())))
    for _, output in results:
        print(output, flush=True)
    return 0 if all(passed for passed, _ in results) else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/check_wheel.py FOLDER")
    sys.exit(main(Path(sys.argv[1])))
