"""Makes sure that Debian's Chromium and its driver are there, for the tests in a browser.

Usage: ``python tools/find_chromium.py``. Installs them where they are missing and this is root on a
system with apt-get; otherwise says what is missing and how to install it, with exit code 1.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

# By path: selenium would look further for a program that is not named so, and download one.
PACKAGES = {"chromium": Path("/usr/bin/chromium"), "chromium-driver": Path("/usr/bin/chromedriver")}


def missing() -> list[str]:
    """The packages whose program is not there."""
    return [name for name, program in PACKAGES.items() if not os.access(program, os.X_OK)]


def install(packages: list[str]) -> None:
    """Asks apt-get for them; what it could not do shows in what is missing afterwards."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    get = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    if subprocess.run(get, env=environment).returncode != 0:
        # The lists of packages may be old, or not there yet.
        subprocess.run(["apt-get", "update"], env=environment)
        subprocess.run(get, env=environment)


def main() -> int:
    """Installs what is missing if it can; gives the exit code."""
    packages = missing()
    if packages and shutil.which("apt-get") and os.geteuid() == 0:
        print(f"installing {' and '.join(packages)}", flush=True)
        install(packages)
        packages = missing()
    for package in packages:
        print(f"{PACKAGES[package]} is missing", file=sys.stderr)
    if packages:
        print(f"on Debian, as root: apt-get install {' '.join(packages)}", file=sys.stderr)
    return 1 if packages else 0


if __name__ == "__main__":
    sys.exit(main())
