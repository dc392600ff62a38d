"""Messages of the mirrors that the tests of `backread browse` read."""

from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2024, 3, 1, 12, tzinfo=UTC)


def message(user_id: int, number: int, body: str, **fields: Any) -> dict[str, Any]:
    return {
        "user_id": user_id,
        "id": number,
        "body": body,
        "created_at": START + timedelta(hours=number),
        "sender_type": "user",
        "sender_id": user_id,
        "sender_name": "Ada",
        "read_by_operator": True,
        "read_by_user": True,
    } | fields
