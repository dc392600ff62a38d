"""A mirror in which every text is one of `strangers.HOSTILE`."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from backread import Mirror
from helpers.hostile_text import HOSTILE
from helpers.mirrors import BatchSource, batch

START = datetime(2024, 3, 4, 9, tzinfo=UTC)


def hostile_mirror(folder: Path) -> Mirror:
    """Names of users and operators, files and the reasons of lists; an answer in each."""
    users = [{"id": number, "name": text} for number, text in enumerate(HOSTILE)]
    messages = [
        {
            "user_id": number,
            "id": 2 * number + side,
            "created_at": START + timedelta(hours=number, minutes=side),
            "sender_type": who,
            "sender_id": number,
            "sender_forename": text,
            "sender_surname": text,
            "sender_name": text,
            "file_url": text,
        }
        for number, text in enumerate(HOSTILE)
        for side, who in enumerate(("user", "operator"))
    ]
    lists: Any = [
        {"user_id": number, "rows": 2, "requests": 1, "certificate": "uncertified", "reason": text,
         "kind": "whole", "started_at": START, "ended_at": START}
        for number, text in enumerate(HOSTILE)
    ]  # fmt: skip
    BatchSource(batch(users, messages, swept="uncertified", lists=lists)).sync_into(folder)
    return Mirror(folder)
