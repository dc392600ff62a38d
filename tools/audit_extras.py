"""Looks whether what an extra brings is known to be vulnerable, as of now and from PyPI.

Usage: ``python tools/audit_extras.py [EXTRA...]``; all extras without one. pip resolves each and
installs nothing; pip-audit is asked about just those files, by their hashes. Exit code 1 if an
extra does not resolve, brings what is known to be vulnerable, or cannot be looked up.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
# PySpark comes as a source archive only.
FETCH = ["--dry-run", "--ignore-installed", "--only-binary", ":all:", "--no-binary", "pyspark"]
AUDIT = [sys.executable, "-m", "pip_audit", "--strict", "--progress-spinner", "off"]
AUDIT += ["--disable-pip", "--require-hashes", "--requirement"]


def resolve(requirements: list[str]) -> list[str]:
    """Gives what pip would install, as pins with their hashes."""
    command = [*PIP, *FETCH, "--report", "-", *requirements]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    pins = []
    for item in report["install"]:
        metadata, digest = item["metadata"], item["download_info"]["archive_info"]["hashes"]
        pins.append(f"{metadata['name']}=={metadata['version']} --hash=sha256:{digest['sha256']}")
    return sorted(pins, key=str.lower)


def audit(extra: str, requirements: list[str]) -> bool:
    """Resolves one extra and asks about it; True if nothing is known against it."""
    try:
        pins = resolve(requirements)
    except subprocess.CalledProcessError:
        print(f"{extra}: does not resolve", flush=True)
        return False
    print(f"{extra}: {len(pins)} packages", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{extra}.txt"
        file.write_text("\n".join(pins), encoding="utf-8")
        return subprocess.run([*AUDIT, str(file)]).returncode == 0


def main(wanted: list[str]) -> int:
    """Audits the extras of pyproject.toml; gives the exit code."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    if unknown := sorted(set(wanted) - set(extras)):
        print(f"no such extra: {', '.join(unknown)}; there are {', '.join(extras)}")
        return 1
    audited = [audit(extra, extras[extra]) for extra in wanted or extras]
    return 0 if all(audited) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
