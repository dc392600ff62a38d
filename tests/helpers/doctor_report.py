"""What ``backread doctor`` reports."""

import json
from collections.abc import Callable

import pytest

from helpers.command_line import Done


@pytest.fixture
def doctor(backread: Callable[..., Done]) -> Callable[..., Done]:
    """Runs it; nothing but the report is written."""

    def run(*arguments: object) -> Done:
        done = backread("doctor", *arguments)
        assert done.error == ""
        return done

    return run


def findings(done: Done, topic: str) -> list[tuple[str, str]]:
    """The states and texts of one part of the report."""
    found = json.loads(done.out)
    assert found["exit_code"] == done.code
    return [
        (each["state"], f"{each['text']} -> {each['advice']}")
        for each in found["findings"]
        if each["topic"] == topic
    ]


def on_one_line(done: Done) -> str:
    return " ".join(done.out.split())
