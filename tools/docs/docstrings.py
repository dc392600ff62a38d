"""A griffe extension: docstrings as the site's reference shows them.

- ``Example:`` becomes the section ``Examples:``, whose ``>>>`` blocks are highlighted.
- The name of a public object between single backticks becomes a link to its description, and that
  of a page (``docs/how-to/privacy.md``) a link to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import griffe

PUBLIC_MODULES = (
    "backread",
    "backread.errors",
    "backread.models",
    "backread.typed_dicts",
    "backread.profile",
    "backread.mirror",
    "backread.sharding",
    "backread.landing",
    "backread.testing",
    "backread.pytest_plugin",
    "backread.integrations.airflow",
    "backread.integrations.spark",
    "backread.integrations.mcp",
)
"""The modules whose names are public, those with the shortest paths first."""

NOT_CONSTRUCTED = {
    "backread._client.listing._BaseListing",
    "backread._client.resources._Resource",
    "backread.mirror.published.changes.Changes",
    "backread.mirror.published.table.MirrorTable",
    "backread.mirror.published.table.MirrorTables",
    "backread.testing.audit.Audit",
    "backread.testing.journal.Calls",
    "backread.testing.lane.Lane",
    "backread.testing.selection.Drift",
    "backread.testing.selection.Selection",
    "backread.testing.unexpected.UnexpectedRequestError",
}
"""Classes whose objects only backread makes."""

NAME = re.compile(r"(?<![`\w\[])`([A-Za-z_][\w.]*)(\(\))?`(?!`)")


PAGE = re.compile(r"`{0,2}\bdocs/([\w/-]+)\.md`{0,2}")
TO_ROOT = "../../"
"""From the pages of docs/reference/python, which alone show docstrings."""


class Docstrings(griffe.Extension):
    """Rewrites the docstrings of a package once all of it is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        """Called by griffe after the package was loaded."""
        public: dict[str, tuple[str, griffe.Object]] = {}
        for path, found in public_objects(pkg):
            public.setdefault(path.rpartition(".")[2], (path, found))
        for each in objects(pkg):
            if isinstance(each, griffe.Class):
                complete(each)
            if each.docstring is not None:
                text = re.sub(r"^Example:$", "Examples:", each.docstring.value, flags=re.MULTILINE)
                each.docstring.value = linked(text, each, public)


def complete(found: griffe.Class) -> None:
    """Gives a class the signatures that its reader needs, and no others."""
    if not is_constructed(found):
        found.members.pop("__init__", None)
    elif "__new__" in found.members and "__init__" not in found.members:
        # Classes of the native module have no other constructor.
        found.set_member("__init__", found.members["__new__"])
    for name, overloads in found.overloads.items():
        if overloads and name not in found.members:
            # A stub has no implementation below them.
            described = next((each for each in overloads if each.docstring), overloads[0])
            described.overloads = overloads
            found.set_member(name, described)


def is_constructed(found: griffe.Class) -> bool:
    """Whether a caller makes objects of the class. Nobody does of errors."""
    return found.path not in NOT_CONSTRUCTED and not found.path.startswith("backread.errors.")


def objects(parent: griffe.Object) -> Iterator[griffe.Object]:
    """An object and all below it; aliases are left out."""
    yield parent
    for member in parent.members.values():
        if not member.is_alias:
            yield from objects(member)


def public_objects(pkg: griffe.Module) -> Iterator[tuple[str, griffe.Object]]:
    """Each exported name with its object, modules left out, by the shortest path first."""
    for path in PUBLIC_MODULES:
        module = pkg if path == "backread" else pkg[path.removeprefix("backread.")]
        for name in map(str, module.exports or ()):
            member = module[name]
            target = member.final_target if member.is_alias else member
            if not target.is_module and not name.startswith("_"):
                yield f"{path}.{name}", target


def linked(text: str, owner: griffe.Object, public: dict[str, tuple[str, griffe.Object]]) -> str:
    """The text with links to what it names."""

    def link(match: re.Match[str]) -> str:
        target = resolve(match[1].removeprefix("backread."), owner, public)
        return match[0] if target in (None, owner.path) else f"[{match[0]}][{target}]"

    return NAME.sub(link, PAGE.sub(rf"[\1]({TO_ROOT}\1.html)", text))


def resolve(
    name: str, owner: griffe.Object, public: dict[str, tuple[str, griffe.Object]]
) -> str | None:
    """The path of a name in the docstring of ``owner``, if the reference has it."""
    scope = owner if owner.is_class else owner.parent
    if scope is not None and scope.is_class and shown(scope, name):
        return f"{scope.path}.{name}"
    first, _, member = name.partition(".")
    if first not in public:
        return None
    path, found = public[first]
    return f"{path}.{member}" if shown(found, member) else path


def shown(parent: griffe.Object, name: str) -> bool:
    """Whether the reference has a separate entry for a member."""
    member = parent.members.get(name)
    return member is not None and not name.startswith("_") and member.has_docstring
