"""The outcome of a user's test suite that uses the fixtures of the wheel."""

from typing import Any

HEADER = """
import asyncio, sys
import pytest
"""


def outcome(pytester: Any, code: str, **expected: int) -> Any:
    """Runs the tests of ``code`` in a process; their counts are as expected."""
    pytester.makepyfile(HEADER + code)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-W", "error")
    done.assert_outcomes(**expected)
    return done
