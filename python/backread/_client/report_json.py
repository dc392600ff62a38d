"""Converts a `WalkReport` to JSON and back."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from backread._files.json import parse_json

if TYPE_CHECKING:
    from backread.models import WalkReport

__all__ = ["report_from_json", "report_to_json"]

TIMES = ("started_at", "ended_at")
IDS = ("uncertified_users", "unread_users")


def report_to_json(report: WalkReport) -> str:
    document = asdict(report)
    for name in TIMES:
        moment: datetime | None = document[name]
        document[name] = None if moment is None else moment.isoformat()
    return json.dumps(document)


def report_from_json(kind: type[WalkReport], text: str | bytes) -> WalkReport:
    document: dict[str, Any] = parse_json(text)
    try:
        known = {one.name: document[one.name] for one in fields(kind) if one.name in document}
        for name in TIMES:
            written = known[name]
            known[name] = None if written is None else datetime.fromisoformat(written)
        for name in IDS:
            known[name] = tuple(known.get(name, ()))
        return kind(**known)
    except (KeyError, TypeError) as error:
        raise ValueError(f"this JSON is no WalkReport: {error}") from None
