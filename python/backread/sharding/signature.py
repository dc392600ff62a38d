"""The signature of a shard: proof that its planner had the API secret.

Others may be able to write to where the JSON is stored. The signature prevents a shard from being
read with settings that its plan did not give it.
"""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backread._client.client import Client

__all__ = ["sign", "signature_matches", "signing_key"]

LABEL = b"backread: signature of shards, format 2"
"""Domain separation: keys derived for other uses have other labels."""


def signing_key(secret: str | Client) -> bytes:
    """The signing key, derived from a secret, or by a client that does not reveal its secret."""
    if isinstance(secret, str):
        return hmac.digest(secret.encode(errors="surrogateescape"), LABEL, "sha256")
    return secret._native.derived_key(LABEL)


def sign(key: bytes, document: dict[str, Any]) -> str:
    """HMAC-SHA256 of the document as canonical JSON, in hexadecimal digits."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hmac.digest(key, text.encode("ascii"), "sha256").hex()


def signature_matches(key: bytes, document: dict[str, Any], signature: str) -> bool:
    """Whether the signature is that of the document, compared in constant time."""
    return hmac.compare_digest(
        sign(key, document).encode("ascii"), signature.encode("ascii", errors="replace")
    )
