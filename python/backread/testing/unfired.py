"""Faults and changes that a test set up and that never happened."""

from __future__ import annotations

__all__ = ["UnfiredError"]


class UnfiredError(AssertionError):
    """A test passed, but a fault or a change between pages that it had set up never happened.

    ``unfired`` lists these as text. The test did not test what it meant to: the fault matched none
    of the requests, or the change waited for a page that was not read.
    """

    def __init__(self, unfired: tuple[str, ...]) -> None:
        super().__init__(unfired)
        self.unfired = unfired

    def __str__(self) -> str:
        many = len(self.unfired) > 1
        lines = [f"{len(self.unfired)} {'faults or changes' if many else 'fault or change'} that "]
        lines[0] += "this test had set never happened: no request matched"
        lines += (f"    {each}" for each in self.unfired)
        lines.append(
            "correct or remove it, or call allow_unfired() of the lane if this is intended"
        )
        return "\n".join(lines)
