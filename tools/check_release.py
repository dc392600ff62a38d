"""Checks what a release publishes, as far as one machine can: its wheels and its source archive.

Usage: ``python tools/check_release.py WHEELS [SDIST]``, folders: of one wheel, and of one source
archive. With WHEELS alone it only looks into the wheels, of which there may be many, of any
platform. Prints a line for each check; exit code 1 and a message at the first that fails.
check_wheel.py tries the wheel.
"""

import email
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

from elftools.elf.elffile import ELFFile
from packaging.metadata import Metadata
from packaging.utils import parse_sdist_filename, parse_wheel_filename

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
MANIFEST = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
VERSION = MANIFEST["workspace"]["package"]["version"]
# One file has all of musl's C library; how it is called depends on what linked the module.
MUSL = r"libc(\.musl-(x86_64|aarch64)\.so\.1|\.so)"


def fail(why: str) -> None:
    """Ends the check."""
    sys.exit(f"release-check: {why}")


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Runs a program and returns what it printed; ends the check if it fails."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, encoding="utf-8"
    )
    if done.returncode != 0:
        words = " ".join(str(part) for part in command)
        fail(f"{words}\n{done.stdout}{done.stderr}")
    return done.stdout


def tracked(*folders: str) -> set[str]:
    """Gives the paths of the files that Git knows, in the whole checkout or in folders."""
    return set(run("git", "ls-files", "-z", "--", *folders).split("\0")) - {""}


def check_version() -> None:
    """The version is one, and the changelog has a section for it."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    if not re.search(rf'^version: "?{re.escape(VERSION)}"?$', citation, re.MULTILINE):
        fail(f"Cargo.toml has version {VERSION}, CITATION.cff another")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(VERSION)}\b", changelog, re.MULTILINE):
        fail(f"CHANGELOG.md has no section {VERSION}")
    print(f"version {VERSION}: Cargo.toml, CITATION.cff and CHANGELOG.md agree")


def check_wheel(path: Path) -> None:
    """The wheel has the files of the checkout, valid metadata, an SBOM, and the ABI of its name."""
    name, version, _, tags = parse_wheel_filename(path.name)
    if (name, str(version)) != ("backread", VERSION):
        fail(f"{path.name} is not of version {VERSION}")
    with zipfile.ZipFile(path) as wheel:
        packed = {each for each in wheel.namelist() if each.startswith("backread/")}
        details = f"backread-{VERSION}.dist-info"
        check_metadata(path.name, wheel.read(f"{details}/METADATA"))
        boms = [each for each in wheel.namelist() if each.startswith(f"{details}/sboms/")]
        if len(boms) != 1:
            fail(f"{path.name} has {len(boms)} SBOMs, not one")
        root = json.loads(wheel.read(boms[0]))["metadata"]["component"]
        if (root["name"], root["version"]) != ("backread", VERSION):
            fail(f"the SBOM of {path.name} is not of backread {VERSION}")
        modules = {each: wheel.read(each) for each in packed if each.endswith((".so", ".pyd"))}
    sources = {each.removeprefix("python/") for each in tracked("python/backread")}
    others = packed - set(modules)
    if len(modules) != 1 or others != sources:
        fail(f"{path.name} is not one module and python/: {sorted(others ^ sources)}")
    platform = next(iter(tags)).platform
    words = [f"{len(packed)} files, an SBOM"]
    if platform.startswith("manylinux"):
        words.append(audit_linux(path, platform))
    if platform.startswith("musllinux"):
        words.append(audit_musl(path.name, *modules.values()))
    if any(tag.abi == "abi3" for tag in tags):
        run(BIN / "abi3audit", "--strict", path)
        words.append("only the stable ABI")
    print(f"{path.name}: {', '.join(words)}")


def check_metadata(name: str, text: bytes) -> None:
    """PyPI refuses what does not follow the specification of the metadata."""
    Metadata.from_email(text, validate=True)
    if not str(email.message_from_bytes(text).get_payload()).startswith("# backread"):
        fail(f"{name} does not have README.md as its description")


def audit_linux(path: Path, platform: str) -> str:
    """The module needs no newer C library than the wheel's name says."""
    said = " ".join(run(BIN / "auditwheel", "show", path).split())
    if f'platform tag: "{platform}"' not in said:
        fail(said)
    return f"libraries as {platform} allows"


def audit_musl(name: str, module: bytes) -> str:
    """The module needs no library but musl; auditwheel cannot say so where libc is another."""
    tags = ELFFile(io.BytesIO(module)).get_section_by_name(".dynamic").iter_tags("DT_NEEDED")
    needed = sorted(tag.needed for tag in tags)
    if strange := [library for library in needed if not re.fullmatch(MUSL, library)]:
        fail(f"the module of {name} needs {', '.join(strange)}, which musl does not have")
    return "no library but musl"


def check_sdist(path: Path, wheel: Path, work: Path) -> None:
    """The archive has no file that Git does not know, and builds a wheel with the same files."""
    if parse_sdist_filename(path.name)[0] != "backread":
        fail(f"{path.name} is not the source archive of backread")
    top = path.name.removesuffix(".tar.gz")
    with tarfile.open(path) as archive:
        names = {str(PurePosixPath(each).relative_to(top)) for each in archive.getnames()}
        archive.extractall(work, filter="data")
    if unknown := names - tracked() - {"PKG-INFO"}:
        fail(f"{path.name} has files that Git does not know: {sorted(unknown)}")
    check_metadata(path.name, (work / top / "PKG-INFO").read_bytes())
    # Unoptimised: it shows only that nothing is missing. One target folder: what both need is
    # compiled once.
    os.environ.setdefault("CARGO_TARGET_DIR", str(ROOT / "target"))
    run(
        *(BIN / "maturin", "build", "--locked", "--offline", "--profile", "ci"),
        *("--interpreter", sys.executable, "--out", work / "wheel"),
        cwd=work / top,
    )
    [rebuilt] = (work / "wheel").glob("*.whl")
    contents = [sorted(zipfile.ZipFile(each).namelist()) for each in (wheel, rebuilt)]
    if contents[0] != contents[1]:
        fail(f"a wheel built from {path.name} has other files than {wheel.name}")
    print(f"{path.name}: {len(names)} files, all known to Git; builds a wheel of the same files")


def main(wheels: Path, sdists: Path | None = None) -> None:
    """Runs all checks."""
    check_version()
    built = sorted(wheels.resolve().glob("*.whl"))
    if not built:
        fail(f"{wheels} has no wheel; run: make build")
    for wheel in built:
        check_wheel(wheel)
    if sdists is None:
        return
    [wheel], [sdist] = built, sorted(sdists.resolve().glob("*.tar.gz"))
    check_sdist(sdist, wheel, sdist.parent)


if __name__ == "__main__":
    folders = [Path(each) for each in sys.argv[1:]]
    if len(folders) not in (1, 2):
        sys.exit("usage: python tools/check_release.py WHEELS [SDIST]")
    main(*folders)
