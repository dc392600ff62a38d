"""Says which settings of the service are missing, all at once."""

from __future__ import annotations

import os
from collections.abc import Mapping

from backread.cli.exits import UnusableArgumentError

__all__ = ["refuse_missing"]

SETTINGS = {
    "base_url": (
        "BACKREAD_BASE_URL",
        "--base-url",
        "the service's address, such as https://chat.example.com",
    ),
    "api_secret": (
        "BACKREAD_API_SECRET",
        "--secret-file",
        "the API Secret Key, from the Integration (General) page of the service's console",
    ),
    "vendor": (
        "BACKREAD_VENDOR",
        "--vendor",
        "the vendor word of the service's media type, application/vnd.WORD.v1+json",
    ),
}


def refuse_missing(given: Mapping[str, object]) -> None:
    """Raises `UnusableArgumentError` if the service is not configured.

    Args:
        given: The client's arguments from the command line, by their names.
    """
    missing = [
        f"{variable} or {option} ({what})"
        for name, (variable, option, what) in SETTINGS.items()
        if not given.get(name) and not os.environ.get(variable, "").strip()
    ]
    if missing:
        *others, last = missing
        listed = f"{', '.join(others)} and {last}" if others else last
        raise UnusableArgumentError(
            f"the service is not configured: set {listed}; to try backread without a service, run "
            "backread demo"
        )
