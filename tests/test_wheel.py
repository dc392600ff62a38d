"""What the installed distribution holds and says of itself."""

import importlib.metadata
import json
import re
import sys
import sysconfig
from importlib.resources import files

import backread

METADATA = importlib.metadata.metadata("backread")


def test_the_package_brings_its_types_and_the_interface():
    package = files("backread")
    assert (package / "py.typed").is_file()
    assert (package / "_backread.pyi").is_file()
    document = json.loads((package / "openapi.json").read_text(encoding="utf-8"))
    assert document["openapi"].startswith("3.1")


def test_nothing_is_required_and_the_extras_are_there():
    required = importlib.metadata.requires("backread") or []
    assert [line for line in required if "extra ==" not in line] == []
    assert set(METADATA.get_all("Provides-Extra", [])) == {
        "airflow",
        "all",
        "cli",
        "delta",
        "mcp",
        "mirror",
        "report",
        "spark",
        "spark-delta",
        "xlsx",
    }


def test_the_version_is_one():
    assert backread.__version__ == METADATA["Version"]
    assert METADATA["Requires-Python"] == ">=3.11"
    assert METADATA["License-Expression"] == "MIT"


def test_airflow_finds_the_documentation():
    """Its page of providers shows this URL."""
    [url] = METADATA.get_all("Project-URL", [])
    assert url.startswith("Documentation, https://")


def test_one_wheel_serves_every_python_from_311_on_that_has_a_gil():
    wheel = importlib.metadata.distribution("backread").read_text("WHEEL")
    assert wheel is not None
    own = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{own}-{own}t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "cp311-abi3"
    assert re.findall(rf"^Tag: ({tag})-", wheel, re.MULTILINE)


def test_the_command_and_the_pytest_plugin_are_registered():
    points = importlib.metadata.distribution("backread").entry_points
    assert {(point.group, point.name) for point in points} == {
        ("apache_airflow_provider", "provider_info"),
        ("console_scripts", "backread"),
        ("pytest11", "backread"),
    }
    for point in points.select(group="pytest11"):
        assert point.load()
