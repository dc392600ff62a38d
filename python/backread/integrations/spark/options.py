"""Parses the options of the data source, which Spark passes as text."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from backread._client.option_kinds import TEXT, read_switch, read_whole_number
from backread._client.options import ARGUMENTS
from backread._client.privacy import Privacy
from backread._client.secret import read_secret_file
from backread.errors import ConfigurationError
from backread.landing.storage import absolute_folder

if TYPE_CHECKING:
    from backread import Client

__all__ = ["LandedOptions", "ServiceOptions", "parse_options", "parse_registered"]

Resource: TypeAlias = Literal["users", "messages"]


def _at_least_one(given: str) -> int:
    if (number := read_whole_number(given)) < 1:
        raise ValueError("1 or more")
    return number


def _resource(given: str) -> str:
    if (word := given.strip().lower()) not in get_args(Resource):
        raise ValueError("users or messages")
    return word


# For each option, what reads its text; the text of its ValueError says what it must be.
CLIENT: dict[str, Callable[[str], Any]] = {
    name: option.kind.read for name, option in ARGUMENTS.items() if option.in_spark
}
SERVICE: dict[str, Callable[[str], Any]] = {
    "resource": _resource,
    **CLIENT,
    "shards": _at_least_one,
    "workers": _at_least_one,
    "strict": read_switch,
    "secret_file": TEXT.read,
    "pseudonymise": TEXT.read,
    "drop_bodies": read_switch,
    "redact": read_switch,
}
IN_CODE = (*(name for name in CLIENT if ARGUMENTS[name].guards_secret), "secret_file")
"""Options that affect which secret is sent where; only `register` accepts them."""
PRIVACY = ("pseudonymise", "drop_bodies", "redact")
"""Options that say what rows leave out; only `register` accepts them, so that no read has more."""
LANDED: dict[str, Callable[[str], Any]] = {
    "resource": _resource,
    # Executors have other working directories.
    "landing": absolute_folder,
    "run": _at_least_one,
    "max_runs_per_trigger": _at_least_one,
}
# Spark passes all keys in lower case, and its own options are camelCase.
NAMES = {name.replace("_", ""): name for name in {**SERVICE, **LANDED}}


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Options for reading from the service: resource, client, number of shards, privacy."""

    resource: Resource = "messages"
    shards: int | None = None
    workers: int | None = None
    strict: bool = False
    secret_file: str | os.PathLike[str] | None = None
    privacy: Privacy | None = None
    client: Mapping[str, Any] = field(default_factory=dict)

    def make_client(self) -> Client:
        """A client for the plan, with the secret from the file or the environment.

        Raises:
            ConfigurationError: If there is no secret, or an option is invalid.
        """
        from backread import Client

        # In no local variable, which traceback tools print.
        return Client(
            api_secret=None if self.secret_file is None else read_secret_file(self.secret_file),
            **self.client,
        )


@dataclass(frozen=True, slots=True)
class LandedOptions:
    """Options for reading landed rows: folder, run, maximum of runs per trigger."""

    landing: str
    resource: Resource = "messages"
    run: int | None = None
    max_runs_per_trigger: int | None = None


def parse_options(
    given: Mapping[str, str], registered: Mapping[str, str] | None = None
) -> ServiceOptions | LandedOptions:
    """The options of one read; with ``landing``, of a read of landed runs.

    Keys are case-insensitive, with or without underscores.

    Args:
        given: The options of this read. Untrusted, as they may come from a query or a notebook's
            parameter, so none of `IN_CODE` and `PRIVACY` is allowed.
        registered: The options that code set for all reads of the service; ``given`` overrides
            them.

    Raises:
        ConfigurationError: For the first option that is unknown or invalid, or may be a secret. Its
            text never shows a value that may be a secret.
    """
    landed = any(_plain(key) == "landing" for key in given)
    for key in given:
        name = NAMES.get(_plain(key))
        if name in (*IN_CODE, *PRIVACY) and not landed:
            what = "where the secret goes" if name in IN_CODE else "what rows leave out"
            raise ConfigurationError(
                f"option {key} decides {what}, so a read or a query may not set it; pass it in "
                f"code: register(spark, {name}=...)"
            )
    values = _values(given, landed=landed)
    if landed:
        return LandedOptions(**values)
    return _service_options({**_values(registered or {}, landed=False), **values})


def parse_registered(given: Mapping[str, str]) -> ServiceOptions:
    """The options of `register`, which are trusted; otherwise like `parse_options`."""
    return _service_options(_values(given, landed=False))


def _values(given: Mapping[str, str], *, landed: bool) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, text in given.items():
        name = NAMES.get(_plain(key))
        if name is None:
            raise ConfigurationError(
                f"there is no option {key}; the options are {', '.join(sorted(NAMES.values()))}. "
                "The secret is none, because Spark shows options in plans, logs and pages: set "
                "BACKREAD_API_SECRET in the environment of the driver and of each executor, or "
                "name a file that all of them can read: register(spark, secret_file=...)"
            )
        parse = (LANDED if landed else SERVICE).get(name)
        if parse is None:
            other = "reading the service" if landed else "reading landed runs, with option landing"
            raise ConfigurationError(f"option {name} is for {other}; leave it out")
        try:
            values[name] = parse(text)
        except ValueError as error:
            raise ConfigurationError(f"option {name} must be {error}, not {text!r:.80}") from None
    return values


def _service_options(values: dict[str, Any]) -> ServiceOptions:
    if "@" in values.get("proxy", ""):
        raise ConfigurationError(
            "option proxy may not hold a password, because Spark shows its options; leave it "
            "out and set HTTPS_PROXY in the environment of the driver and of each executor"
        )
    client = {name: values.pop(name) for name in CLIENT if name in values}
    chosen = [values.pop(name, None) for name in PRIVACY]
    privacy = Privacy.of(chosen[0], bool(chosen[1]), bool(chosen[2]))
    return ServiceOptions(**values, privacy=privacy, client=client)


def _plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()
