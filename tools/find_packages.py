"""Makes sure that the programs from Debian that some integration tests need are installed.

Usage: ``python tools/find_packages.py [browser] [calc] [java] [services]``; without a name, all.
Installs what is missing, in one go, if this is root on a system with apt-get, without starting a
service; otherwise names the missing packages and how to install them, with exit code 1.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Package: its program, by path, or by name where any on PATH will do. Selenium would look further
# for a program that is not named so, and download one; PostgreSQL's folder has its version in it.
PACKAGES = {
    "browser": {"chromium": "usr/bin/chromium", "chromium-driver": "usr/bin/chromedriver"},
    "calc": {"libreoffice-calc": "usr/bin/localc"},
    "java": {"default-jre-headless": "java"},
    "services": {
        "haproxy": "usr/sbin/haproxy",
        "nginx": "usr/sbin/nginx",
        "postgresql": "usr/lib/postgresql/*/bin/postgres",
    },
}
# Maintainer scripts ask this program whether a service may be started; 101 means no.
POLICY = Path("/usr/sbin/policy-rc.d")


def missing(programs: dict[str, str]) -> list[str]:
    """The packages whose program is not installed."""
    return [package for package, program in programs.items() if not is_installed(program)]


def is_installed(program: str) -> bool:
    """Whether a program is there, by its path below / or its name."""
    if "/" not in program:
        return shutil.which(program) is not None
    return any(os.access(found, os.X_OK) for found in Path("/").glob(program))


@contextlib.contextmanager
def services_stay_stopped() -> Iterator[None]:
    """Keeps maintainer scripts from starting services, unless the system has its own policy."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n", encoding="utf-8")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


def install(packages: list[str]) -> None:
    """Runs apt-get; what it could not install is still missing afterwards."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    if subprocess.run(command, env=environment).returncode != 0:
        # The package lists may be old or absent.
        subprocess.run(["apt-get", "update"], env=environment)
        subprocess.run(command, env=environment)


def main(groups: list[str]) -> int:
    """Installs what is missing if possible; returns the exit code."""
    programs = {name: path for group in groups for name, path in PACKAGES[group].items()}
    packages = missing(programs)
    if packages and shutil.which("apt-get") and os.geteuid() == 0:
        print(f"installing {', '.join(packages)}", flush=True)
        with services_stay_stopped():
            install(packages)
        packages = missing(programs)
    for package in packages:
        print(f"{programs[package]} is missing", file=sys.stderr)
    if packages:
        print(f"on Debian, as root: apt-get install {' '.join(packages)}", file=sys.stderr)
    return 1 if packages else 0


if __name__ == "__main__":
    if not set(sys.argv[1:]) <= PACKAGES.keys():
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:] or list(PACKAGES)))
