"""Runs the tests of one integration in an environment of its own, which is kept between runs.

Usage: ``python tools/run_integration.py NAME FOLDER [ARGUMENT...]``; NAME is a folder of
``tests/integrations``, FOLDER has the wheel, the arguments are pytest's. The environment holds what
``pip install "backread[NAME]"`` brings, if there is an extra of that name, and the dependency group
``test-NAME``, at the versions that the folder's constraints.txt pins. It stands below the user's
cache folder (or where BACKREAD_INTEGRATIONS says), is made anew where pins, extra or group have
changed, and gets the wheel each time.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STAMP = "made"


def cache() -> Path:
    """Where environments are kept."""
    if named := os.environ.get("BACKREAD_INTEGRATIONS"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "backread" / "integrations"


def project() -> dict[str, Any]:
    """What pyproject.toml says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def extra_of(name: str) -> list[str]:
    """What the extra of that name brings, if there is one."""
    extras: dict[str, list[str]] = project()["project"]["optional-dependencies"]
    return extras.get(name, [])


def fingerprint(name: str, constraints: Path) -> str:
    """Some digits that change with whatever an environment is made of."""
    group = project()["dependency-groups"][f"test-{name}"]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    parts = [
        version,
        sys.base_prefix,
        *extra_of(name),
        *group,
        constraints.read_text(encoding="utf-8"),
    ]
    return f"{name}-{version}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:12]}"


def pip(python: Path, *arguments: str) -> None:
    """Runs pip in the environment; what fails ends the program."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    subprocess.run(command, cwd=ROOT, check=True)


def environment(name: str, wheel: Path) -> Path:
    """The interpreter of the environment, which is made if it is not there, with the wheel."""
    constraints = ROOT / "tests" / "integrations" / name / "constraints.txt"
    folder = cache() / fingerprint(name, constraints)
    python = folder / "bin" / "python"
    if not (folder / STAMP).exists():
        started = time.monotonic()
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip(python, "install", "--constraint", str(ROOT / "constraints.txt"), "pip")
        pinned = ["--constraint", str(constraints)]
        wanted = f"{wheel}[{name}]" if extra_of(name) else str(wheel)
        pip(python, "install", *pinned, wanted, "--group", f"test-{name}")
        pip(python, "check")
        (folder / STAMP).touch()
        print(f"{folder.name}: made in {time.monotonic() - started:.0f} s", flush=True)
    pip(python, "install", "--no-deps", "--force-reinstall", str(wheel))
    return python


def main(name: str, wheels: str, *arguments: str) -> int:
    """Runs the tests; gives pytest's exit code."""
    [wheel] = Path(wheels).resolve().glob("backread-*.whl")
    python = environment(name, wheel)
    # Their packages are told of one another by PATH, and nothing of the checkout's environment.
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)])
    kept = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    command = [str(python), "-m", "pytest", f"tests/integrations/{name}", *arguments]
    return subprocess.run(command, cwd=ROOT, env={**kept, "PATH": path}).returncode


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
