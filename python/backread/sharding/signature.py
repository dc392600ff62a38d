"""The signature of a shard: proof that whoever planned it held the API secret.

JSON may lie where others can write. Signed, a shard is only read with the settings that its plan
gave it.
"""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backread._client.client import Client

__all__ = ["is_signed", "key_of", "sign"]

LABEL = b"backread: signature of shards, format 2"
"""Keys derived for other uses have other labels, so no signature serves for two of them."""


def key_of(secret: str | Client) -> bytes:
    """The key that signs shards: of a secret, or of a client, which does not give its secret."""
    if isinstance(secret, str):
        return hmac.digest(secret.encode(errors="surrogateescape"), LABEL, "sha256")
    return secret._native.derived_key(LABEL)


def sign(key: bytes, document: dict[str, Any]) -> str:
    """HMAC-SHA256 of the document as canonical JSON, in hexadecimal digits."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hmac.digest(key, text.encode("ascii"), "sha256").hex()


def is_signed(key: bytes, document: dict[str, Any], signature: str) -> bool:
    """Whether the signature is that of the document, in a time that does not tell how much fits."""
    return hmac.compare_digest(
        sign(key, document).encode("ascii"), signature.encode("ascii", errors="replace")
    )
