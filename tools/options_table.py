"""Writes what is derived from the table of client options: Client's signature, docstring, pages.

`--write` brings the files up to date; without it, exits with 1 and names those that are not.
"""

import argparse
import ast
import re
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from backread._client.options import ARGUMENTS, Option, Service  # noqa: E402
from backread.integrations.airflow.connection import FIELDS  # noqa: E402

SOURCE = ROOT / "python/backread/_client/options.py"
WIDTH = 100


def annotations() -> dict[str, str]:
    """The type of each argument as the source writes it."""
    fields = [
        statement
        for node in ast.parse(SOURCE.read_text()).body
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    ]
    return {
        field.target.id: written(field.annotation.slice.elts[0])
        for field in fields
        if isinstance(field.target, ast.Name)
        and isinstance(field.annotation, ast.Subscript)
        and isinstance(field.annotation.slice, ast.Tuple)
    }


def written(kind: ast.expr) -> str:
    """A type as it is in a signature: one that is quoted in the table, without its quotes."""
    if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
        return kind.value
    return ast.unparse(kind).replace("'", '"')


def default(option: Option) -> str:
    if type(option.default) is int:
        return f"{option.default:_}"
    return repr(option.default).replace("'", '"')


def meaning(option: Option) -> str:
    parts = [option.help, option.if_none and f"`None` means {option.if_none}", option.note]
    return "; ".join(part for part in parts if part)


def signature() -> str:
    types = annotations()
    lines = [f"{name}: {types[name]} = {default(option)}," for name, option in ARGUMENTS.items()]
    lines.insert(len(Service.__annotations__), "*,")
    return textwrap.indent("\n".join(["self,", *lines]), " " * 8)


def docstring() -> str:
    paragraphs = []
    for name, option in ARGUMENTS.items():
        text = f"{name}: {meaning(option)}.".replace("`", "``")
        paragraphs += textwrap.wrap(
            text, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 12, break_on_hyphens=False
        )
    return "\n".join(paragraphs)


def airflow() -> str:
    return ", ".join(f"`{name}`" for name in FIELDS)


def spark(*, guards_secret: bool) -> str:
    names = [
        f"`{name}`"
        for name, option in ARGUMENTS.items()
        if option.in_spark and option.guards_secret == guards_secret
    ]
    return ", ".join(names)


# The file, a pattern whose second group is the part to write, and its text.
PARTS: list[tuple[str, str, Callable[[], str]]] = [
    (
        "python/backread/_client/client.py",
        r"(    @_sets_up\n    def __init__\(\n)(.*?)(\n    \) -> None:)",
        signature,
    ),
    (
        "python/backread/_client/client.py",
        r"(class Client\(_BaseClient\):\n.*?    Args:\n)(.*?)(\n\n    Raises:)",
        docstring,
    ),
    ("docs/how-to/airflow.md", r"(\nThe fields of the extra are )([^\n]*?)(\.\n)", airflow),
    (
        "docs/how-to/spark.md",
        r"(\n\| )([^|\n]*)( \| those of `Client` \| as for)",
        partial(spark, guards_secret=False),
    ),
    (
        "docs/how-to/spark.md",
        r"(\n\| )([^|\n]*)( \| those of `Client` \| only in `register`)",
        partial(spark, guards_secret=True),
    ),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    stale = []
    for name, pattern, part in PARTS:
        file = ROOT / name
        before = file.read_text(encoding="utf-8")
        found = re.search(pattern, before, re.DOTALL)
        if found is None:
            raise LookupError(f"{name} has no place for {part}: it must match {pattern}")
        after = before[: found.start(2)] + part() + before[found.end(2) :]
        if after != before:
            stale.append(name)
            if write:
                file.write_text(after, encoding="utf-8")
    if stale and not write:
        names = ", ".join(dict.fromkeys(stale))
        print(f"{names}: run tools/options_table.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
