"""Checks that pip finds versions for the wheel's extra ``all``, on a clean machine, today.

Usage: ``python tools/resolve_extras.py FOLDER``; the folder holds one wheel. Nothing is installed
and nothing is pinned: this is what a user gets. ``all`` has the requirements of every other extra,
so they resolve if it does. The wheel alone must bring no other package. Exit code 1 otherwise.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
DRY = ["--dry-run", "--ignore-installed", "--report", "-"]


def resolve(requirement: str) -> list[str]:
    """The names of the packages that pip would install; none where no versions go together."""
    done = subprocess.run([*PIP, *DRY, requirement], stdout=subprocess.PIPE)
    if done.returncode != 0:
        return []
    return sorted(item["metadata"]["name"] for item in json.loads(done.stdout)["install"])


def main(folder: str) -> int:
    """Resolves the wheel without and with all extras; returns the exit code."""
    [wheel] = Path(folder).resolve().glob("backread-*.whl")
    alone = resolve(str(wheel))
    print(f"backread: installs {', '.join(alone) or 'nothing, it does not resolve'}", flush=True)
    started = time.monotonic()
    everything = resolve(f"{wheel}[all]")
    took = time.monotonic() - started
    print(f"backread[all]: installs {len(everything)} packages, resolved in {took:.1f} s")
    return 0 if alone == ["backread"] and everything else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
