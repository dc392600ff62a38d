"""What the sources keep to, beyond what a compiler and cargo-deny look at."""

import ast
import re
import tomllib
from collections.abc import Iterator

import pytest

from documents import IN_CHECKOUT, ROOT

if not IN_CHECKOUT:
    pytest.skip("the wheel check takes no sources along", allow_module_level=True)

# What C's interface to Python asks for, text that has just been checked, SSE2, a handler for forks,
# and a symbol that jemalloc reads.
UNSAFE = {
    "src/allocator.rs",
    "src/core/arrow/columns/texts.rs",
    "src/core/decode/json/cursor/special.rs",
    "src/core/decode/json/utf8.rs",
    "src/core/process/id.rs",
    "src/py/capsule.rs",
    "src/py/convert/c_interface.rs",
}
BUILT = {"target", ".venv", "fuzz-found"}
CRATES = [ROOT / "Cargo.toml", ROOT / "fuzz/Cargo.toml", *ROOT.glob("benches/peers/*/Cargo.toml")]


def rust() -> Iterator[tuple[str, str]]:
    """Gives the name and the code of each Rust file, without what its comments say."""
    for path in sorted(ROOT.rglob("*.rs")):
        name = path.relative_to(ROOT)
        if BUILT.isdisjoint(name.parts):
            code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
            yield name.as_posix(), code


def test_what_the_compiler_cannot_check_stands_in_the_named_files():
    files = dict(rust())
    assert len(files) > 100
    word = re.compile(r"\bunsafe\b|unsafe_code")
    assert {name for name, code in files.items() if word.search(code)} == UNSAFE


def test_each_use_of_it_must_give_its_reason():
    lints = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["lints"]
    assert lints["rust"]["unsafe_code"] == "deny"
    assert lints["clippy"]["undocumented_unsafe_blocks"] == "deny"
    assert [name for name, code in rust() if "undocumented_unsafe" in code] == []


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.parent.name)
def test_no_script_of_ours_runs_in_a_build(crate):
    package = tomllib.loads(crate.read_text(encoding="utf-8"))["package"]
    # Without the key, cargo runs a build.rs wherever one lies.
    assert package.get("build") is False


def test_programs_that_freeze_python_find_what_the_native_module_imports():
    """PyInstaller and its like read the imports of Python code alone."""
    imported = re.compile(r'import\("(backread[\w.]+)"')
    needed = {name for _, code in rust() for name in imported.findall(code)}
    assert "backread._client.telemetry" in needed
    named = set()
    # Imports elsewhere do not count: a program that only has a client may not reach them.
    for path in (ROOT / "python/backread/_client").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                named |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                named |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    assert needed - named == set()


def test_the_core_has_no_python_names():
    """Classes and arguments of Python are named in src/py/convert/errors.rs."""
    words = r"python|pyo3|dataclass|pip install|interpreter|as_dict|=True|=False|=None"
    classes = r"(?<![A-Za-z])(?!Error\b)[A-Z][A-Za-z]*Error\b"
    names = "timeout|deadline|rate_limit|outage_patience|max_\\w+|proxy|ca_bundle|strict"
    found = re.compile(rf"(?i:{words}|\b(?:{names})=(?![{{\d]))")
    named = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sorted((ROOT / "src/core").rglob("*.rs"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if found.search(line) or re.search(rf'"[^"]*{classes}', line)
    ]
    assert named == []
