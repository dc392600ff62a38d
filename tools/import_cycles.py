"""Fails where modules import each other in a circle.

Usage: ``python tools/import_cycles.py``. Python: the modules of ``python/backread``, by every
import that runs, at once or later. Rust: the modules below one parent, each with all that is inside
it, for a parent and its children are one unit. Tests may import what they like.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON, PACKAGE = ROOT / "python", "backread"
RUST = ROOT / "src"

Graph = Mapping[str, set[str]]


def cycles(graph: Graph) -> list[list[str]]:
    """The groups of modules that reach each other (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


# --- Python ---------------------------------------------------------------------------------------


def python_graph() -> Graph:
    files = {_python_name(file): file for file in sorted((PYTHON / PACKAGE).rglob("*.py"))}
    return {
        name: {found for found in _python_imports(file.read_bytes()) if found in files} - {name}
        for name, file in files.items()
    }


def _python_name(file: Path) -> str:
    parts = file.relative_to(PYTHON).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _python_imports(source: bytes) -> Iterator[str]:
    nodes: list[ast.AST] = [ast.parse(source)]
    while nodes:
        node = nodes.pop()
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                nodes += node.orelse
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module)):
                yield module
                # A package's own import of its parts is no import by others.
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case _:
                nodes += ast.iter_child_nodes(node)


# --- Rust -----------------------------------------------------------------------------------------

USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.MULTILINE)
PATH = re.compile(r"\b(?:crate|super)(?:::\w+)+")
TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod \w+ \{.*", re.DOTALL)


def rust_graphs() -> Iterator[Graph]:
    """For each parent, which of its children use which."""
    files = {_rust_name(file): file for file in sorted(RUST.rglob("*.rs")) if _counts(file)}
    graphs: dict[tuple[str, ...], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, file in files.items():
        for used in _rust_paths(name, file.read_text(encoding="utf-8")):
            common = next(
                (at for at, (a, b) in enumerate(zip(name, used, strict=False)) if a != b), None
            )
            if common is not None and used[: common + 1] in files:
                parent = "::".join(name[:common])
                graphs[name[:common]][f"{parent}::{name[common]}"].add(f"{parent}::{used[common]}")
    yield from graphs.values()


def _counts(file: Path) -> bool:
    return not {"tests", "tests.rs"} & set(file.relative_to(RUST).parts)


def _rust_name(file: Path) -> tuple[str, ...]:
    parts = file.relative_to(RUST).with_suffix("").parts
    return ("crate", *(parts[:-1] if parts[-1] in ("mod", "lib") else parts))


def _rust_paths(name: tuple[str, ...], source: str) -> Iterator[tuple[str, ...]]:
    source = TESTS.sub("", source)
    for statement in USE.findall(source):
        for path in _expanded("".join(statement.split())):
            yield _absolute(name, path.split("::"))
    for found in PATH.findall(source):
        yield _absolute(name, found.split("::"))


def _expanded(path: str) -> Iterator[str]:
    """``a::{b, c::{d, e}}`` as its single paths."""
    head, brace, rest = path.partition("{")
    if not brace:
        yield path
        return
    depth, start = 0, 0
    inner = rest.rsplit("}", 1)[0]
    for at, character in enumerate(f"{inner},"):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            if inner[start:at]:
                yield from _expanded(head + inner[start:at])
            start = at + 1


def _absolute(name: tuple[str, ...], path: list[str]) -> tuple[str, ...]:
    base = list(name)
    while path and path[0] in ("self", "super"):
        base = base[:-1] if path[0] == "super" else base
        path = path[1:]
    return tuple(path) if path and path[0] == "crate" else (*base, *path)


if __name__ == "__main__":
    found = cycles(python_graph())
    for graph in rust_graphs():
        found += cycles(graph)
    for cycle in found:
        print("these import each other:", ", ".join(cycle), file=sys.stderr)
    sys.exit(1 if found else 0)
