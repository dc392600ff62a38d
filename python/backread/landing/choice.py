"""Ties a landing folder to one choice of privacy: that of its committed runs."""

from __future__ import annotations

import re

from backread._client.privacy import Choice, why_refused
from backread._files.json import parse_json
from backread.errors import LandingError
from backread.landing.storage import Storage

__all__ = ["MANIFESTS", "manifest_name", "manifest_numbers", "refuse_other_choice"]

MANIFESTS = "manifests"
MANIFEST = re.compile(r"(\d{8})\.json", re.ASCII)


def manifest_numbers(storage: Storage) -> list[int]:
    """The numbers of the committed runs, in order."""
    found = [MANIFEST.fullmatch(name) for name in storage.names(MANIFESTS)]
    return [int(name[1]) for name in found if name is not None]


def manifest_name(number: int) -> str:
    """The file of a manifest, relative to the landing folder."""
    return f"{MANIFESTS}/{number:08}.json"


def refuse_other_choice(storage: Storage, given: Choice | None) -> None:
    """Raises `LandingError` if the newest run of the folder was landed with another choice."""
    numbers = manifest_numbers(storage)
    if not numbers:
        return
    name = manifest_name(numbers[-1])
    try:
        document = parse_json(storage.read(name) or b"")
        stored = document.get("privacy")
        if not (stored is None or isinstance(stored, str)):
            raise ValueError("its privacy is no text")
    except (ValueError, AttributeError) as error:
        raise LandingError(
            f"the landing folder {storage.folder}: {name} is damaged: {error}"
        ) from None
    why = why_refused(stored, given, "land into a new folder")
    if why is not None:
        raise LandingError(f"the landing folder {storage.folder} {why}")
