"""What a newcomer reads first: it names files that exist, and no address that does not."""

import re
import tomllib
from typing import Any

import pytest

from documents import IN_CHECKOUT, ROOT

if not IN_CHECKOUT:
    pytest.skip("the wheel check takes no such files along", allow_module_level=True)

yaml = pytest.importorskip("yaml")

TEMPLATES = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
FILES = [
    ROOT / "CITATION.cff",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "docs/reference/api-policy.md",
    *TEMPLATES,
]
CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["package"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read_yaml(path: Any) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_address_is_named(path):
    """The project has no address yet: each that stood here would lead nowhere."""
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"(?i)\bhttps?://\S+|\bwww\.\S+|\S+@\S+\.\w+", text) == []


def test_the_citation_is_of_this_version():
    citation = read_yaml(ROOT / "CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert citation["authors"] == [{"name": PROJECT["authors"][0]["name"]}]
    assert (citation["title"], citation["version"]) == (CARGO["name"], CARGO["version"])
    assert citation["license"] == CARGO["license"]
    assert {"message", "title", "authors", "type"} <= citation.keys()


def test_issue_forms_have_what_github_asks_for():
    assert [path.name for path in TEMPLATES] == ["bug.yml", "config.yml", "idea.yml"]
    for path in TEMPLATES:
        form = read_yaml(path)
        if path.name == "config.yml":
            assert form == {"blank_issues_enabled": True}
            continue
        assert {"name", "description", "body"} <= form.keys()
        inputs = [each for each in form["body"] if each["type"] != "markdown"]
        assert len({each["id"] for each in inputs}) == len(inputs) > 0
        for each in inputs:
            assert each["type"] in ("textarea", "dropdown")
            assert each["attributes"]["label"]
            assert ("options" in each["attributes"]) is (each["type"] == "dropdown")
            assert all(isinstance(one, str) for one in each["attributes"].get("options", ()))


def test_the_bug_form_asks_for_the_version_and_the_doctor():
    labels = [each["attributes"].get("label", "") for each in read_yaml(TEMPLATES[0])["body"]]
    for command in ("`backread --version`", "`backread doctor`"):
        assert any(command in label for label in labels)


def test_the_files_it_names_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    bases = [
        ROOT, ROOT / "src", ROOT / "src/core", ROOT / "python/backread",
        ROOT / "docs", ROOT / "src/core/decode",
    ]  # fmt: skip
    named = re.findall(r"`([\w./-]+(?:/|\.(?:py|rs|md|toml|txt|cff|json)))`", text)
    assert len(named) > 50
    missing = [each for each in named if not any((base / each).exists() for base in bases)]
    # Beside the file that is named before them.
    missing = [each for each in missing if each not in ("openapi.json", "report.py", "run.py")]
    assert missing == []


def test_the_make_targets_it_names_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    targets = {
        each
        for line in re.findall(r"^\.PHONY:(.*)$", makefile, re.MULTILINE)
        for each in line.split()
    }
    named = set(re.findall(r"(?:^ +|`)make ([a-z-]+)", text, re.MULTILINE))
    assert named - targets == set()
    assert len(named) > 8


def test_the_policy_agrees_with_the_package():
    text = (ROOT / "docs/reference/api-policy.md").read_text(encoding="utf-8")
    assert f"CPython from {PROJECT['requires-python'].removeprefix('>=')} on" in text
    assert "rust-version" in CARGO
