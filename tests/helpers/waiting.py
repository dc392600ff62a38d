"""How long tests wait, on a machine that may have ten other busy processes."""

import time
from collections.abc import Callable

AT_ONCE = 10.0
"""Seconds that what does not wait may take; what tests rule out takes three times as long."""

PATIENCE = 60.0
"""Seconds to wait for what must happen."""


def eventually(check: Callable[[], None]) -> None:
    """Calls a check until its assertions hold; raises the last error when PATIENCE is over."""
    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > give_up:
                raise
        time.sleep(0.01)


def wait_for(condition: Callable[[], object]) -> None:
    """Waits until a condition holds."""

    def check() -> None:
        assert condition()

    eventually(check)
