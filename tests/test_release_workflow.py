"""What the release workflow builds is what is tried, published, audited and documented."""

import tomllib
from typing import Any

import pytest

from documents import IN_CHECKOUT, ROOT, Document

if not IN_CHECKOUT:
    pytest.skip("the wheel check takes no workflow along", allow_module_level=True)

yaml = pytest.importorskip("yaml")

JOBS = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]


def matrix(job: str) -> dict[str, list[dict[str, Any]]]:
    return JOBS[job]["strategy"]["matrix"]


def names(job: str, axis: str) -> list[str]:
    return [each["name"] for each in matrix(job)[axis]]


@pytest.mark.parametrize("axis", ["abi", "platform"])
def test_each_wheel_is_tried_and_published(axis):
    [gathering] = [step["env"] for step in JOBS["gather"]["steps"] if "env" in step]
    assert names("wheels", axis) == names("try", axis) == gathering[f"{axis.upper()}S"].split()


def test_each_wheel_is_tried_where_it_runs():
    """Only wheels for musl on arm64 are built elsewhere: that image runs on x86-64."""
    built = {each["name"]: each["runner"] for each in matrix("wheels")["platform"]}
    tried = {each["name"]: each["runner"] for each in matrix("try")["platform"]}
    assert {name for name in built if built[name] != tried[name]} == {"musllinux-aarch64"}


def test_licences_and_build_scripts_are_checked_for_each_platform():
    deny = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
    targets = [each["target"] for each in matrix("wheels")["platform"]]
    assert sorted(targets) == sorted(deny["graph"]["targets"])


def test_the_page_on_installing_has_a_row_for_each_platform():
    rows = list(Document(ROOT / "docs/how-to/install.md").table("platform"))
    words = {"manylinux": "glibc", "musllinux": "musl", "macos": "macOS", "windows": "Windows"}
    for name in names("wheels", "platform"):
        system, machine = name.split("-")
        machine = "x86-64" if machine == "x86_64" else "arm64"
        assert len([row for row in rows if words[system] in row and machine in row]) == 1
    assert len(rows) == len(names("wheels", "platform"))
