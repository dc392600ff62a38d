"""Looks that pip finds versions that go together, on a clean machine, for each extra of the wheel.

Usage: ``python tools/resolve_extras.py FOLDER``; the folder holds one wheel. Nothing is installed,
and nothing is pinned: this is what a user gets today. The wheel alone must bring no other package.
Exit code 1 if an extra does not resolve.
"""

import json
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
DRY = ["--dry-run", "--ignore-installed", "--report", "-"]


def resolve(requirement: str) -> list[str] | None:
    """The names of the packages that pip would install, None where none go together."""
    done = subprocess.run([*PIP, *DRY, requirement], stdout=subprocess.PIPE)
    if done.returncode != 0:
        return None
    return sorted(item["metadata"]["name"] for item in json.loads(done.stdout)["install"])


def main(folder: str) -> int:
    """Resolves the wheel without and with each extra; gives the exit code."""
    [wheel] = Path(folder).resolve().glob("backread-*.whl")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    well = True
    for extra in ("", *project["optional-dependencies"]):
        started = time.monotonic()
        packages = resolve(f"{wheel}[{extra}]" if extra else str(wheel))
        name = f"backread[{extra}]" if extra else "backread"
        if packages is None:
            print(f"{name}: does not resolve", flush=True)
            well = False
            continue
        took = time.monotonic() - started
        print(f"{name}: installs {len(packages)}, resolved in {took:.1f} s", flush=True)
        if not extra and packages != ["backread"]:
            print(f"{name} brings {', '.join(packages)}", flush=True)
            well = False
    return 0 if well else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
