"""What the release workflow builds is what is tried, published, audited and documented."""

import runpy
import tomllib
from typing import Any

import pytest

from backread.testing import World
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


def test_the_wheel_that_is_measured_is_built_as_it_is_released():
    trained = {
        each["name"]: each["trained"] for each in matrix("wheels")["platform"] if "trained" in each
    }
    assert list(trained) == ["manylinux-x86_64"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--pgo" in trained["manylinux-x86_64"]
    assert "maturin build --release --pgo --locked" in makefile
    assert "bench-speed: target/speed/stamp" in makefile


def test_the_training_of_an_optimised_build_runs():
    pytest.importorskip("pyarrow")
    pytest.importorskip("duckdb")
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    script = package["tool"]["maturin"]["pgo-command"].split()[-1]
    training = runpy.run_path(str(ROOT / script))
    training["train"](World(users=3, messages_per_user=2))
    training["train"](World.from_jsonl(training["escaped"](2, 3, 5)))
