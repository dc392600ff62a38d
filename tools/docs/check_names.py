"""Every public name is in the reference, with words on each argument and each attribute.

Usage: ``python tools/docs/check_names.py``. Reads the sources without importing them; prints what
is missing, one line each, and fails.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import griffe
from docstrings import is_constructed, public_objects

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs/reference"

DIRECTIVE = re.compile(r"^::: (\S+)$", re.MULTILINE)

SAME_AS = re.compile(r"(async version of|arguments of|like) `")
"""What a docstring says instead of describing the same arguments again."""

SELF_EXPLANATORY = {"self", "cls", "arguments", "user_id", "message_id"}

CALLED_BY_AIRFLOW = {"execute", "read"}
"""Methods and attributes that a framework calls, and whose arguments it defines."""

CALLED_BY_SPARK = {"name", "reader", "schema", "streamReader"}


def load() -> griffe.Module:
    """The package, from its sources."""
    loader = griffe.GriffeLoader(search_paths=[ROOT / "python"], allow_inspection=False)
    package = loader.load("backread", try_relative_path=False)
    loader.resolve_aliases(implicit=True, external=False)
    assert isinstance(package, griffe.Module)
    return package


def described(package: griffe.Module) -> dict[str, list[str]]:
    """The pages that describe an object, by its real path."""
    found: dict[str, list[str]] = {}
    for page in sorted(PAGES.rglob("*.md")):
        for path in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            member = package[path.removeprefix("backread.")]
            target = member.final_target if member.is_alias else member
            found.setdefault(target.path, []).append(page.relative_to(ROOT).as_posix())
    return found


def is_named(name: str, text: str) -> bool:
    """Whether a docstring has the name as a word."""
    return re.search(rf"\b{re.escape(name.lstrip('*'))}\b", text) is not None


def problems_of(owner: griffe.Object) -> Iterator[str]:
    """What the reference would show of an object without words."""
    text = owner.docstring.value if owner.docstring else ""
    if not text:
        yield f"{owner.path} has no docstring"
    if isinstance(owner, griffe.Function):
        yield from problems_of_arguments(owner, text)
    if not isinstance(owner, griffe.Class):
        return
    constructor = owner.members.get("__init__")
    # The fields of a dataclass are attributes.
    is_plain = is_constructed(owner) and "dataclass" not in owner.labels
    if is_plain and isinstance(constructor, griffe.Function):
        yield from problems_of_arguments(constructor, text)
    for name, member in owner.members.items():
        if name.startswith("_") or member.is_alias or is_elsewhere(owner, name):
            continue
        if member.is_attribute:
            if not member.docstring and not is_named(name, text) and not is_json(owner):
                yield f"{member.path} has no docstring, and that of its class does not name it"
        else:
            yield from problems_of(member)


def problems_of_arguments(function: griffe.Function, text: str) -> Iterator[str]:
    """The arguments that the docstring does not name.

    The async version of a method names the sync one instead. A fixture's arguments are pytest's,
    and what the constructor of an operator passes on is Airflow's.
    """
    if SAME_AS.search(text) or function.name in ("from_dict", "from_json"):
        return
    if any("fixture" in str(each.value) for each in function.decorators):
        return
    for parameter in function.parameters:
        if parameter.name in SELF_EXPLANATORY or parameter.name.startswith("_"):
            continue
        if not is_named(parameter.name, text):
            yield f"{function.path} does not describe its argument {parameter.name}"


def is_json(owner: griffe.Object) -> bool:
    """Whether this is a dictionary as the service sends it; the model has words on its keys."""
    return owner.path.startswith("backread.typed_dicts.")


def is_elsewhere(owner: griffe.Object, name: str) -> bool:
    """Whether a framework defines the member; its own reference describes it."""
    if ".integrations.airflow." in owner.path:
        member = owner.members[name]
        return name in CALLED_BY_AIRFLOW or (member.is_attribute and not member.has_docstring)
    return ".integrations.spark." in owner.path and name in {*CALLED_BY_SPARK, "defaults"}


def main() -> int:
    """Prints what is missing; the exit code."""
    package = load()
    pages = described(package)
    public = {target.path: (name, target) for name, target in reversed([*public_objects(package)])}
    problems = [
        f"{name} is on no page of docs/reference"
        for path, (name, _) in sorted(public.items())
        if path not in pages
    ]
    for path, where in pages.items():
        if len(where) > 1:
            problems.append(f"{path} is described more than once: {', '.join(where)}")
        problems += problems_of(package[path.removeprefix("backread.")])
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(pages)} objects described, {len(public)} of them public; {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
