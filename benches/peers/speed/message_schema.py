"""What a message is as a row of a pyarrow table."""

import pyarrow as pa

SENDER = [("id", pa.int64())] + [
    (name, pa.string()) for name in ("name", "email", "forename", "surname", "picture_thumb_url")
]
FIELDS = [
    ("id", pa.int64()),
    ("body", pa.string()),
    ("read_by_user", pa.bool_()),
    ("read_by_operator", pa.bool_()),
    ("created_at", pa.string()),
    ("file_url", pa.string()),
    ("auto_invitation", pa.bool_()),
    ("sender_type", pa.string()),
    ("sender", pa.struct(SENDER)),
]
AS_SENT = pa.schema(FIELDS)
_PLACE = AS_SENT.get_field_index("created_at")
TYPED = AS_SENT.set(_PLACE, pa.field("created_at", pa.timestamp("us", "UTC")))
"""With the timestamp as such."""
