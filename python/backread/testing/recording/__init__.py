"""Records of a service, with fakes in place of what it holds.

`draws` is the key and what is drawn from it; `text`, `identifiers` and `values` make fakes of
single values, `rows` of users and messages; `recorder` reads a service, `recorded` is what is left.
"""

from __future__ import annotations

from backread.testing.recording.recorded import About, Record
from backread.testing.recording.recorder import record

__all__ = ["About", "Record", "record"]
