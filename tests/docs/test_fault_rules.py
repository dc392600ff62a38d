"""The fault rules in the docs, in help, docstrings and error texts, and in the inspector."""

import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from backread import BackreadError
from backread.testing import Fault

ROOT = Path(__file__).resolve().parents[2]
FAULTS = "|".join(name for name, _ in inspect.getmembers(Fault, inspect.ismethod))
RULE = re.compile(
    r"\b(?:any|users?|messages?)(?: [a-z]+=[\d.]+)*: "
    rf"(?:{FAULTS})\((?:[^()]|\([^()]*\))*\)(?: x\d+(?: each)?)?"
)


def shown() -> Iterator[str]:
    for pattern in ("README.md", "docs/**/*.md", "python/**/*.py", "src/mock/*/*.[hr]*"):
        for path in ROOT.glob(pattern):
            if path.parts[-2] != "tests":
                yield from RULE.findall(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("rule", sorted(set(shown())))
def test_each_fault_rule_that_is_shown_fires_when_everything_is_read(backread_mock, rule):
    backread_mock.clock.virtual()
    backread_mock.fault(rule)
    client = backread_mock.client()
    [number, *_] = backread_mock.world.message_ids(42)
    for read in (
        lambda: client.users.list().to_list(),
        lambda: client.users.get(42),
        lambda: client.messages.all().to_list(),
        lambda: client.messages.get(42, number),
    ):
        with suppress(BackreadError):
            read()
    assert backread_mock.fired[0] > 0
