"""A profile without the service's vendor word."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backread.profile import ServiceProfile

__all__ = ["without_vendor"]

PLACEHOLDER = "vendor"
USUAL = {
    *("x", "rate", "limit", "ratelimit", "retry", "after", "remaining", "reset", "policy", "used"),
    *("second", "minute", "hour", "day", "requests"),
}
"""The words of usual headers about rate limits; others may name the service."""


def without_vendor(profile: ServiceProfile, vendor: str) -> ServiceProfile:
    """The profile with a placeholder in media types, and headers without unusual words."""
    word = re.compile(re.escape(vendor), re.IGNORECASE)

    def cleaned(value: Any) -> Any:
        if isinstance(value, list):
            return [cleaned(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {
            name: word.sub(PLACEHOLDER, held)
            if name == "content_type" and isinstance(held, str)
            else cleaned(held)
            for name, held in value.items()
        }

    record = cleaned(profile.to_dict())
    http = record["http"]
    http["rate_limit_headers"] = sorted({_usual(each) for each in http["rate_limit_headers"]})
    return type(profile).from_dict(record)


def _usual(header: str) -> str:
    words = [each for each in re.split("[-_]", header.lower()) if each in USUAL]
    return "-".join(words) or "ratelimit"
