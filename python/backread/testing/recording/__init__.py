"""Records a service with fake values instead of the real ones.

`draws` derives random numbers from a key; `text`, `identifiers` and `values` make fakes of single
values, `rows` of users and messages; `recorder` reads a service, `recorded` is the result.
"""

from __future__ import annotations

from backread.testing.recording.recorded import About, Record
from backread.testing.recording.recorder import record

__all__ = ["About", "Record", "record"]
