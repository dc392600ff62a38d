"""Checks what is installed."""

from __future__ import annotations

import platform
import re
from importlib import metadata

from backread.cli.doctor.findings import Findings
from backread.cli.exits import FAULT
from backread.errors import MirrorError
from backread.mirror.store.engine import load_duckdb

__all__ = ["check_installation"]

# As in `duckdb>=2.0.1 ; extra == "mirror"`.
REQUIREMENT = re.compile(r"""([\w.-]+).*;.*extra *== *['"]([\w.-]+)['"]""", re.ASCII)


def check_installation(findings: Findings) -> None:
    """The versions, the native module, and the extras."""
    findings.begin("installed")
    # The command cannot start without it.
    from backread import __version__

    findings.ok(
        f"backread {__version__} with its native module, {platform.python_implementation()} "
        f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    )
    try:
        installed, extras = metadata.version("backread"), _extras()
    except metadata.PackageNotFoundError:
        findings.warning(
            "backread is imported from a folder and not installed",
            'run: pip install "backread[cli]"',
        )
        return
    if installed != __version__:
        findings.problem(
            f"backread {installed} is installed, but its native module is of {__version__}",
            'run: pip install --force-reinstall "backread[cli]"',
            FAULT,
        )
    # A package of several extras is named once.
    present = {name: _version(name) for packages in extras.values() for name in packages}
    complete = [name for name, packages in extras.items() if all(map(present.get, packages))]
    findings.ok(f"extras: {', '.join(complete)}" if complete else "no extra is complete")
    versions = [f"{name} {version}" for name, version in sorted(present.items()) if version]
    findings.ok(f"packages: {', '.join(versions)}")
    if present.get("duckdb"):
        try:
            load_duckdb()
        except MirrorError as error:
            text, _, advice = str(error).partition("; ")
            findings.problem(text, advice, FAULT)
    lacking = {
        name: [each for each in packages if not present[each]]
        for name, packages in extras.items()
        if name not in complete and name != "all"
    }
    if lacking:
        listed = ", ".join(f"{name} ({', '.join(each)})" for name, each in lacking.items())
        findings.ok(f'not installed: {listed}; to add one: pip install "backread[NAME]"')


def _extras() -> dict[str, list[str]]:
    """The packages of each extra."""
    found: dict[str, list[str]] = {}
    for requirement in metadata.requires("backread") or ():
        if match := REQUIREMENT.match(requirement):
            found.setdefault(match[2], []).append(match[1])
    return found


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
