"""Runs the tests of one integration in an environment that is kept between runs.

Usage: ``python tools/run_integration.py NAME WHEELS [ARGUMENT...]``. NAME is a folder of
``tests/integrations``, WHEELS the folder with the wheel, and the arguments are pytest's.
``python tools/run_integration.py --script FILE WHEELS`` runs a script in the environment that most
integrations share.
``python tools/run_integration.py --prepare [NAME...]`` makes environments, three at a time. It
needs no wheel, so it can run while Rust compiles. Without a name it makes all but that of
``workers``, whose tests are all long.

A folder with a ``constraints.txt`` has its own environment: the extra of its name, if there is
one, and the dependency group ``test-NAME``. The others share one: the extras ``cli`` and ``mirror``
and the group ``test-integrations``, at the versions in ``tests/integrations/constraints.txt``.
Environments are kept below the user's cache folder (or BACKREAD_INTEGRATIONS). When requirements or
versions change, another one is made; what was not used for a month is removed.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests" / "integrations"
SHARED = "integrations"
SHARED_EXTRAS = ("cli", "mirror")
AT_ONCE = 3
"""pip waits for the network half of the time."""
READY, INSTALLED = "ready", "installed"
UNUSED = 30 * 86_400
"""Seconds."""


@dataclass(frozen=True)
class Environment:
    """What is installed, beside the wheel, and by which pins."""

    name: str
    requirements: tuple[str, ...]
    constraints: Path

    @property
    def folder(self) -> Path:
        """Its folder, whose name changes with anything that is installed."""
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        pins = self.constraints.read_text(encoding="utf-8")
        parts = "\n".join([version, sys.base_prefix, *self.requirements, pins])
        digest = hashlib.sha256(parts.encode()).hexdigest()[:12]
        return cache() / f"{self.name}-{version}-{digest}"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"


def cache() -> Path:
    """Where environments are kept."""
    if named := os.environ.get("BACKREAD_INTEGRATIONS"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "backread" / "integrations"


def environment_of(folder: str) -> Environment:
    """The environment in which the tests of a folder run."""
    own = (TESTS / folder / "constraints.txt").is_file()
    name, place = (folder, TESTS / folder) if own else (SHARED, TESTS)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    optional: dict[str, list[str]] = project["project"]["optional-dependencies"]
    group: list[Any] = project["dependency-groups"][f"test-{name}"]
    extras = [optional.get(extra, []) for extra in ((folder,) if own else SHARED_EXTRAS)]
    requirements = dict.fromkeys([each for extra in extras for each in extra] + group)
    return Environment(name, tuple(requirements), place / "constraints.txt")


def folders() -> list[str]:
    """The folders whose tests run without ``-m long``."""
    found = sorted(path.parent.name for path in TESTS.glob("*/test_*.py"))
    return [name for name in dict.fromkeys(found) if name != "workers"]


@contextlib.contextmanager
def locked(environment: Environment) -> Iterator[None]:
    """Keeps other processes from changing an environment."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{environment.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def pip(environment: Environment, *arguments: str) -> None:
    """Runs pip in an environment; raises CalledProcessError if it fails."""
    command = [environment.python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*command, *arguments], cwd=ROOT, check=True)


def prepare(environment: Environment) -> None:
    """Makes an environment if it is not there, without the wheel."""
    ready = environment.folder / READY
    with locked(environment):
        if ready.exists():
            ready.touch()
            return
        started = time.monotonic()
        shutil.rmtree(environment.folder, ignore_errors=True)
        remove_unused(environment)
        subprocess.run([sys.executable, "-m", "venv", environment.folder], check=True)
        pip(environment, "install", "--constraint", "constraints.txt", "pip")
        # Most modules are never imported: compiling them would take a third of the time.
        pinned = ["--no-compile", "--constraint", str(environment.constraints)]
        pip(environment, "install", *pinned, *environment.requirements)
        pip(environment, "check")
        ready.touch()
    print(f"{environment.folder.name}: made in {time.monotonic() - started:.0f} s", flush=True)


def remove_unused(environment: Environment) -> None:
    """Removes environments of the same name that nothing has used for a month."""
    for ready in cache().glob(f"{environment.name}-*/{READY}"):
        if ready.stat().st_mtime < time.time() - UNUSED:
            shutil.rmtree(ready.parent, ignore_errors=True)


def install(environment: Environment, wheel: Path) -> None:
    """Puts the wheel into an environment, once: other tests may be running in it."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    stamp = environment.folder / INSTALLED
    with locked(environment):
        if stamp.exists() and stamp.read_text(encoding="utf-8") == digest:
            return
        stamp.unlink(missing_ok=True)
        pip(environment, "install", "--no-deps", "--force-reinstall", str(wheel))
        stamp.write_text(digest, encoding="utf-8")


def prepare_all(names: list[str]) -> int:
    """Makes the environments of these folders side by side; returns the exit code."""
    wanted = {each.name: each for each in map(environment_of, names or folders())}

    def succeeds(environment: Environment) -> bool:
        try:
            prepare(environment)
        except subprocess.CalledProcessError as error:
            print(f"the environment {environment.name} was not made: {error}", file=sys.stderr)
            return False
        return True

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return 0 if all(list(pool.map(succeeds, wanted.values()))) else 1


def run(name: str, wheels: str, *command: str) -> int:
    """Runs Python in the environment of a folder, with the wheel; returns the exit code."""
    [wheel] = Path(wheels).resolve().glob("backread-*.whl")
    environment = environment_of(name)
    prepare(environment)
    install(environment, wheel)
    # PATH has the environment's programs; nothing is taken from the environment of the checkout.
    path = os.pathsep.join([str(environment.python.parent), os.environ.get("PATH", os.defpath)])
    kept = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    done = subprocess.run([environment.python, *command], cwd=ROOT, env={**kept, "PATH": path})
    return done.returncode


if __name__ == "__main__":
    if sys.argv[1:2] == ["--prepare"]:
        sys.exit(prepare_all(sys.argv[2:]))
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if sys.argv[1] == "--script":
        script, folder = sys.argv[2:]
        sys.exit(run("browser", folder, script))
    name, folder, *arguments = sys.argv[1:]
    sys.exit(run(name, folder, "-m", "pytest", f"tests/integrations/{name}", *arguments))
