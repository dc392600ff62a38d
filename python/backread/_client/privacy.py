"""What is replaced in rows before they are stored, and the key for it.

``pseudonymise``, ``drop_bodies`` and ``redact`` mean the same in mirrors, landing, Spark and
Airflow; see ``docs/how-to/privacy.md``. The path of the key file travels to workers, the key
does not.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
import string
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from backread._files.access import RefusedFileError, read_private_file
from backread._files.dataclass_json import dataclass_from_json
from backread._files.json import parse_json
from backread._files.paths import local_path, shown
from backread.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from backread._backread import NativePrivacy


HIDDEN = "[e-mail address hidden]"

RULES = 1
"""Raised when pseudonyms change, or when rows stored before hold what is replaced now."""

LEAST_BYTES = 32
MOST_BYTES = 4096
LEAST_DISTINCT = 16
"""32 random bytes have fewer distinct values once in 10**13 times."""

FINGERPRINT = b"backread: fingerprint of a key for pseudonyms"

HOW_TO_MAKE_ONE = "make one with: (umask 077; openssl rand -base64 32 > FILE)"


@dataclass(frozen=True, slots=True)
class Choice:
    """What a mirror or a landed run stores of the choice: the key's fingerprint, not the key."""

    key: str | None
    drop_bodies: bool
    redact: bool
    rules: int = RULES

    def to_json(self) -> str:
        """The choice as JSON text; equal ones have equal text."""
        return json.dumps({"rules": self.rules, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> Choice:
        """The choice that `to_json` wrote; ValueError for anything else."""
        return dataclass_from_json(cls, parse_json(text), "choice")

    def in_words(self) -> str:
        """The arguments that make this choice."""
        parts = [
            f"pseudonymise=KEY_FILE (key {self.key})" if self.key else "",
            "drop_bodies=True" if self.drop_bodies else "",
            "redact=True" if self.redact else "",
        ]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class LoadedPrivacy:
    """A `Privacy` with its key, for this process."""

    native: NativePrivacy
    choice: Choice

    def __reduce__(self) -> Any:
        raise TypeError("a key does not travel; pickle the Privacy, which has the path of its file")


@dataclass(frozen=True, slots=True)
class Privacy:
    """The three arguments, checked; `load` reads the key file."""

    pseudonymise: str | None = None
    drop_bodies: bool = False
    redact: bool = False

    @classmethod
    def of(
        cls, pseudonymise: str | os.PathLike[str] | None, drop_bodies: bool, redact: bool
    ) -> Privacy | None:
        """The arguments, with an absolute path; None if nothing is to be replaced.

        Raises:
            ConfigurationError: The path cannot be one of a file on this machine.
            TypeError: ``drop_bodies`` or ``redact`` is no bool, or the path is no path.
        """
        for name, value in (("drop_bodies", drop_bodies), ("redact", redact)):
            if not isinstance(value, bool):
                raise TypeError(f"{name} must be True or False, not {type(value).__name__}")
        if pseudonymise is None:
            return cls(None, drop_bodies, redact) if drop_bodies or redact else None
        if isinstance(pseudonymise, (bool, bytes)):
            raise TypeError(
                "pseudonymise must be the path of a key file or None, not "
                f"{type(pseudonymise).__name__}; {HOW_TO_MAKE_ONE}"
            )
        try:
            path = local_path(pseudonymise, "copy the key file to this machine")
        except ValueError as error:
            raise ConfigurationError(f"pseudonymise: {error}") from None
        return cls(str(path.absolute()), drop_bodies, redact)

    def load(self) -> LoadedPrivacy:
        """Reads the key file.

        Raises:
            ConfigurationError: The key file is missing, too short, or not private.
        """
        from backread._backread import NativePrivacy

        if self.pseudonymise is None:
            native = NativePrivacy(None, self.drop_bodies, self.redact)
            return LoadedPrivacy(native, Choice(None, self.drop_bodies, self.redact))
        key = _read_key(self.pseudonymise)
        try:
            fingerprint = hmac.digest(key, FINGERPRINT, "sha256").hex()[:16]
            native = NativePrivacy(key, self.drop_bodies, self.redact)
        finally:
            # Traceback tools print local variables.
            del key
        choice = Choice(fingerprint, self.drop_bodies, self.redact)
        return LoadedPrivacy(native, choice)


def hide_emails(text: str) -> str:
    """The text with `HIDDEN` in place of each e-mail address, which ``redact`` would blank too."""
    from backread._backread import hide_emails as replaced

    # A message about a file may contain surrogates.
    return replaced(text.encode("utf-8", "replace").decode(), HIDDEN)


def loaded(privacy: Privacy | None) -> LoadedPrivacy | None:
    """`Privacy.load`; None for None."""
    return None if privacy is None else privacy.load()


def why_refused(stored: str | None, given: Choice | None, remedy: str) -> str | None:
    """Why rows may not join those stored with another choice, and what to do; None if they may.

    Args:
        stored: The JSON of the choice that rows are stored with; None if they are as sent.
        given: The choice of the rows to come.
        remedy: How to begin anew, such as "sync into a new folder".
    """
    if stored is None:
        if given is None:
            return None
        return (
            f"holds rows as the service sent them, which {given.in_words()} would not change; "
            f"{remedy}"
        )
    try:
        held = Choice.from_json(stored)
    except ValueError:
        return f"does not say how its rows were made private; {remedy}"
    if held.rules > RULES:
        return "was made private by the rules of a newer backread; upgrade backread"
    if given == held:
        return None
    if given is not None and given.key and held.key and given.key != held.key:
        return (
            f"has pseudonyms of another key (fingerprint {held.key}, that of the given file is "
            f"{given.key}); pass that key's file, or {remedy}"
        )
    asked = "none of these" if given is None else given.in_words()
    return (
        f"stores rows with {held.in_words()}, and this call has {asked}; pass the same, or {remedy}"
    )


def _read_key(file: str) -> bytes:
    """The key in a file: random bytes, raw or as hexadecimal or base64 text."""
    path, name = local_path(file, ""), f"the key file {shown(file)}"
    try:
        content = read_private_file(path, MOST_BYTES + 1)
    except RefusedFileError as error:
        raise ConfigurationError(f"pseudonymise: {error}") from None
    except OSError as error:
        if not isinstance(error, PermissionError) and _may_be_key(path):
            raise ConfigurationError(
                "pseudonymise: there is no such file, and its name may be a key, so it is not "
                f"shown; pass the path of a file that holds the key; {HOW_TO_MAKE_ONE}"
            ) from None
        lost = "restore it from its backup, since no other key gives the same pseudonyms, or "
        advice = lost if isinstance(error, FileNotFoundError) else ""
        raise ConfigurationError(
            f"pseudonymise: {name} cannot be read: {error.strerror}; {advice}{HOW_TO_MAKE_ONE}"
        ) from None
    key = None
    try:
        key = _decoded(content)
        if not content.strip():
            problem = "is empty"
        elif len(content) > MOST_BYTES:
            problem = f"has more than {MOST_BYTES:,} bytes"
        elif key is None:
            problem = "holds a text that is neither hexadecimal nor base64"
        elif len(key) < LEAST_BYTES:
            problem = f"holds {len(key)} bytes, and a key has {LEAST_BYTES} or more"
        elif len(set(key)) < LEAST_DISTINCT:
            problem = "is not random"
        else:
            return key
    finally:
        # Traceback tools print local variables.
        del content, key
    raise ConfigurationError(f"pseudonymise: {name} {problem}; {HOW_TO_MAKE_ONE}")


def _may_be_key(path: Path) -> bool:
    """Whether the end of the path that does not exist is the text of a key.

    That end, and not the last part alone, since base64 has slashes.
    """
    existing = path
    # Path.exists raises an error for a name that is too long.
    while not os.path.exists(existing) and existing != existing.parent:  # noqa: PTH110
        existing = existing.parent
    text = path.relative_to(existing).as_posix()
    # A raw key has other bytes, and is not passed as text.
    return set(text) <= {*string.printable} and len(_decoded(text.encode()) or b"") >= LEAST_BYTES


def _decoded(content: bytes) -> bytes | None:
    """The bytes of a key; None for a text that encodes none."""
    try:
        if not content or not all(chr(each) in string.printable for each in content):
            return content
        text = b"".join(content.split())
        try:
            return bytes.fromhex(text.decode("ascii"))
        except ValueError:
            padded = text.rstrip(b"=") + b"=" * (-len(text.rstrip(b"=")) % 4)
            return base64.b64decode(padded.translate(bytes.maketrans(b"-_", b"+/")), validate=True)
    except binascii.Error:
        return None
    finally:
        # As above.
        del content
