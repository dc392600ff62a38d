"""What the installed distribution holds and says of itself, and the names that it offers."""

import ast
import importlib.metadata
import json
import re
import subprocess
import sys
import sysconfig
import tomllib
from importlib.resources import files

import pytest

import backread
from backread import AsyncClient, Client
from helpers.doc_pages import IN_CHECKOUT, ROOT

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
    extras = "airflow all cli mcp mirror report spark spark-delta xlsx"
    assert set(METADATA.get_all("Provides-Extra", [])) == set(extras.split())


def test_the_version_is_one_and_airflow_finds_the_documentation():
    assert backread.__version__ == METADATA["Version"]
    assert METADATA["Requires-Python"] == ">=3.11"
    assert METADATA["License-Expression"] == "MIT"
    # Its page of providers shows this URL.
    [url] = METADATA.get_all("Project-URL", [])
    assert url.startswith("Documentation, https://")


def test_one_wheel_serves_every_python_from_311_on_that_has_a_gil():
    wheel = importlib.metadata.distribution("backread").read_text("WHEEL")
    assert wheel is not None
    own = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{own}-{own}t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "cp311-abi3"
    assert re.findall(rf"^Tag: ({tag})-", wheel, re.MULTILINE)


def test_the_wheel_lists_its_crates():
    """In a CycloneDX SBOM, where PEP 770 has tools look for one."""
    installed = importlib.metadata.distribution("backread").files or []
    [path] = [each for each in installed if each.parent.match("backread-*.dist-info/sboms")]
    bom = json.loads(path.read_text(encoding="utf-8"))
    assert bom["bomFormat"] == "CycloneDX"
    root = bom["metadata"]["component"]
    assert (root["name"], root["version"]) == ("backread", backread.__version__)
    crates = {
        (each["name"], each["version"]): each["hashes"][0]["content"]
        for each in bom["components"]
        if not each["name"].startswith("backread-")
    }
    assert {name for name, _ in crates} >= {"pyo3", "reqwest", "ring", "rustls", "tokio"}
    if IN_CHECKOUT:
        lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
        locked = {(each["name"], each["version"]): each.get("checksum") for each in lock}
        assert crates.items() <= locked.items()


def test_the_command_and_the_pytest_plugin_are_registered():
    points = importlib.metadata.distribution("backread").entry_points
    assert {(point.group, point.name) for point in points} == {
        ("apache_airflow_provider", "provider_info"),
        ("console_scripts", "backread"),
        ("pytest11", "backread"),
    }
    for point in points.select(group="pytest11"):
        assert point.load()


def test_programs_that_freeze_python_find_what_the_native_module_imports():
    """PyInstaller and similar tools read the imports of Python code only."""
    imported = re.compile(r'import\("(backread[\w.]+)"')
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src/py").rglob("*.rs")]
    needed = {name for source in sources for name in imported.findall(source)}
    assert "backread._client.telemetry" in needed
    named = set()
    package = ROOT / "python/backread"
    # Only imports of the client count, and for the mock those of its package: a frozen program may
    # not reach those of other parts.
    for path in [*(package / "_client").rglob("*.py"), package / "testing/__init__.py"]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                named |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                named |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    assert needed - named == set()


# --- what an interactive shell offers -------------------------------------------------------------


HERE = {"base_url": "http://127.0.0.1:1", "api_secret": "mock_s3cret", "vendor": "example"}


def test_an_import_of_everything_brings_the_public_names_only():
    program = (
        "before = {*globals(), 'before'}\n"
        "from backread import *\n"
        "import sys\n"
        "print(sorted({*globals()} - before - {'sys'}) == sorted(sys.modules['backread'].__all__))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("True", "")
    assert dir(backread) == sorted(backread.__all__)


@pytest.mark.parametrize("make", [Client, AsyncClient])
def test_a_listing_is_completed_before_it_is_made(make):
    jedi = pytest.importorskip("jedi")
    expression = "client.messages.list(42)."
    offered = jedi.Interpreter(expression, [{"client": make(**HERE)}]).complete()
    names = {each.name for each in offered}
    assert {"pages", "report", "to_arrow", "to_list", "to_pandas", "to_polars"} <= names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import backread\nbackread.", {"Client", "Mirror", "errors", "plan"}),
        ("from backread import Client\nClient().messages.list(42).", {"report", "to_list"}),
        ("from backread import Mirror\nMirror('chats').", {"search", "sync"}),
        ("from backread.integrations.airflow import BackreadHook\nBackreadHook.", {"get_conn"}),
    ],
)
def test_an_editor_completes_a_file_that_never_runs(text, expected):
    jedi = pytest.importorskip("jedi")
    assert expected <= {each.name for each in jedi.Script(text).complete()}


def test_an_objects_names_are_those_of_the_api():
    with Client(**HERE) as client:
        for thing, expected in (
            (client.messages, "all get list page"),
            (
                client.users.list(),
                "count first pages report to_arrow to_list to_pandas to_polars",
            ),
        ):
            assert [name for name in dir(thing) if not name.startswith("_")] == expected.split()


def test_importing_a_client_loads_no_models():
    """Schedulers import a file with a client again and again, and read nothing."""
    code = (
        "import sys; from backread import Client; "
        "print({'dataclasses', 'pathlib', 'backread.models'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")
